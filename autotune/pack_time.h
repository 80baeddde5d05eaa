// Pack time: the time of the kernel that packs operands before the main kernel (compiler/plan/packing.h).
//
// Thread-safety: pure functions.
#pragma once

#include "autotune/machine.h"
#include "laneshift/problem.h"
#include "laneshift/schedule.h"

namespace laneshift::autotune {

struct PackWork {
  double bytes = 0;  // read and written; 0: there is no such kernel
};
// REQUIRES: the problem is complete.
PackWork PackWorkOf(const Problem& problem, const Schedule& schedule);

// Microseconds before the main kernel may begin.
double PackTime(const PackWork& work, const Machine& machine);

}  // namespace laneshift::autotune
