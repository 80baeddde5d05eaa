// Clocks that the steps of a pipeline take from the resource that they use. SimulateSm adds them up in the order in
// which they happen, BusyOf (autotune/simulation.h) for each resource.
//
// Thread-safety: pure functions.
#pragma once

#include "autotune/machine.h"
#include "autotune/pipeline.h"
#include "autotune/simulation.h"

namespace laneshift::autotune {

double GatherRate(GatherKind kind, const Machine& machine);
// Clocks for which a load occupies the path from L2, in addition to those of its rows outside, which are not read.
double LoadClocks(const Step& step, const Machine& machine, const SmShare& share);
// Of a thread, or of a warp, until all of a load is on its way.
double LoadIssueClocks(const Step& step, const Machine& machine);
double MemoryClocks(const Step& step, const SmShare& share);
double OutsideClocks(const Step& step, const SmShare& share);
// Of the path to memory.
double StoreClocks(const Step& step, const SmShare& share);
double ThreadStoreClocks(const Step& step, const Machine& machine, const SmShare& share);
// Of a thread that processes accumulators.
double AccumulatorReadClocks(const Step& step, const Machine& machine);
double StageClocks(const Step& step, const Machine& machine);
// Of the tensor core, for operations other than MMAs.
double CopyClocks(const Step& step, const Machine& machine);
double MoveClocks(const Step& step, const Machine& machine);
double TensorStoreClocks(const Step& step, const Machine& machine);
// Of arithmetic by threads.
double ArithmeticClocks(const Step& step, const Machine& machine);

}  // namespace laneshift::autotune
