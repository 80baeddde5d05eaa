// A problem that the same kernel serves, with so few tiles that the emulator is done soon.
//
// Thread-safety: pure functions.
#pragma once

#include "laneshift/problem.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::measure {

// Keeps what is left over at the edges of tiles in every direction, and as many K blocks as it takes to fill the rings
// and go on. The problem itself where it is small already, where its storage is not packed, or where a smaller one of
// the same kernel was not found. REQUIRES: the problem is complete and the schedule runs it.
Problem ReducedProblem(const Problem& problem, const Schedule& schedule, const target::Target& target);

}  // namespace laneshift::measure
