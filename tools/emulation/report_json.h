// The report of emulated launches as JSON, in the form that docs/emulating.md describes.
//
// Thread-safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "emulator/driver/driver.h"

namespace laneshift::tools {

nlohmann::ordered_json ReportJson(const emulator::Report& report, const emulator::Options& options);

}  // namespace laneshift::tools
