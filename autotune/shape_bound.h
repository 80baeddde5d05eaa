// A lower bound on the time of a shape, from its numbers only: no program is built for it.
//
// Thread-safety: pure functions.
#pragma once

#include <vector>

#include "autotune/machine.h"
#include "laneshift/problem.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::autotune {

// A lower bound in microseconds of PredictTime for the schedule, whatever its rings; it need not be legal. It counts
// MMAs, bytes of bulk copies, gathered pixels and accumulators, and nothing that depends on how the kernel overlaps
// them.
// REQUIRES: `problem` is complete.
double LeastTime(const Problem& problem, const Schedule& shape, const target::Target& target, const Machine& machine);
// Of each of them.
std::vector<double> LeastTimes(const Problem& problem, const std::vector<Schedule>& shapes,
                               const target::Target& target, const Machine& machine);

}  // namespace laneshift::autotune
