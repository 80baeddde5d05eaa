// The vectorised inner loops of fused_sum.h, compiled for several instruction sets and chosen at run time.
//
// Thread-safety: pure functions; the choice is made once.
#pragma once

#include "emulator/units/fused_sum.h"

namespace laneshift::emulator {

struct VectorSums {
  using Function = void (*)(const OperandRows& a, const OperandRows& b, const SumOptions& options, AccumulatorTile d);
  Function exact, fast, integers;
  const char* name;
};
// The best one for this processor.
const VectorSums& SelectVectorSums();
// The one that every processor can run: what tests compare the best one with.
const VectorSums& PortableVectorSums();

}  // namespace laneshift::emulator
