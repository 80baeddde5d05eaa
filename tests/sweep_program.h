// The kernel that a case of a sweep runs.
#pragma once

#include <string_view>

#include "ir/program.h"
#include "laneshift/result.h"
#include "tests/sweep.h"

namespace laneshift::sweep {

// By the schedule that the engine chooses under the case's constraint on an emulated device, or under another one on
// the product that the target represents. An error says why nothing fits.
Result<ir::Program> ProgramOf(const Case& c, std::string_view constraint = {});

}  // namespace laneshift::sweep
