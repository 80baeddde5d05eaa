// The vectorised inner loops of fused_sum.h, compiled for several instruction sets and chosen at run time.
//
// Thread-safety: pure functions; the choice is made once.
#pragma once

#include <vector>

#include "emulator/units/fused_sum.h"

namespace laneshift::emulator {

struct VectorSums {
  using Function = void (*)(const OperandRows& a, const OperandRows& b, const SumOptions& options, AccumulatorTile d);
  Function exact, fast, integers;
  // Four times the sums of the products of row m in groups: sums[g * b.pitch() + n].
  void (*groups)(const OperandRows& a, int m, const OperandRows& b, int group, int32_t* sums);
  const char* name;
};
// The best one for this processor.
const VectorSums& SelectVectorSums();
// All that this processor can run: tests compare them.
std::vector<const VectorSums*> RunnableVectorSums();

}  // namespace laneshift::emulator
