// Totals time: the time of the kernels that add the partial rows of deterministic reductions after the main kernel
// (compiler/plan/totals.h).
//
// Thread-safety: pure functions.
#pragma once

#include "autotune/machine.h"
#include "ir/program.h"
#include "laneshift/problem.h"
#include "laneshift/schedule.h"

namespace laneshift::autotune {

struct TotalsWork {
  int kernels = 0;
  double bytes = 0;  // that they read and write
};
// REQUIRES: the problem is complete, and `program` is the schedule's for it.
TotalsWork TotalsWorkOf(const Problem& problem, const Schedule& schedule, const ir::Program& program);
// No more than that of any schedule.
TotalsWork LeastTotalsWork(const Problem& problem);

// Microseconds after the main kernel.
double TotalsTime(const TotalsWork& work, const Machine& machine);

}  // namespace laneshift::autotune
