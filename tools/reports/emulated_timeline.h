// The time line of an emulated run: the emulator's own order of events.
//
// Thread-safety: pure functions.
#pragma once

#include <vector>

#include "emulator/driver/driver.h"
#include "ir/program.h"
#include "tools/reports/timeline.h"

namespace laneshift::tools {

// Of the main kernel, whose lowered program names the roles of warps.
Timeline EmulatedTimeline(const std::vector<emulator::EmulatedEvent>& events, const ir::Program& program);

}  // namespace laneshift::tools
