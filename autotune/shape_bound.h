// A bound on the time of a shape, from its numbers alone: no program is built for it.
//
// Thread-safety: pure functions.
#pragma once

#include <vector>

#include "autotune/machine.h"
#include "laneshift/problem.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::autotune {

// Microseconds below which PredictTime never is for the schedule, whatever its rings; it need not be legal. Counted are
// products, bytes of bulk copies, gathered pixels and sums, none of what depends on how the kernel overlaps them.
// REQUIRES: `problem` is complete.
double LeastTime(const Problem& problem, const Schedule& shape, const target::Target& target, const Machine& machine);
// Of each of them.
std::vector<double> LeastTimes(const Problem& problem, const std::vector<Schedule>& shapes,
                               const target::Target& target, const Machine& machine);

}  // namespace laneshift::autotune
