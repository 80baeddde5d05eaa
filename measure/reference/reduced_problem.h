// A problem for the same kernel, with few enough tiles to run quickly in the emulator.
//
// Thread-safety: pure functions.
#pragma once

#include "laneshift/problem.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::measure {

// Keeps the remainders at the edges of tiles in every direction, and enough K blocks to fill the rings and
// continue. The problem itself if it is small already, if its storage is not packed, or if no smaller one of
// the same kernel was found. REQUIRES: the problem is complete and the schedule runs it.
Problem ReducedProblem(const Problem& problem, const Schedule& schedule, const target::Target& target);

}  // namespace laneshift::measure
