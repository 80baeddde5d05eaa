// The vectorised inner loops of fused_sum.h, compiled for several instruction sets and chosen at run time.
//
// Thread-safety: pure functions; the choice is made once.
#pragma once

#include <vector>

#include "emulator/units/fused_sum.h"

namespace laneshift::emulator {

// The scale factors of rows, one for each group of K: of a in rows of groups, of b in a row of its pitch for each
// group. `value` has the exponent in it, which the adder also needs by itself: it aligns terms by it.
struct GroupFactors {
  static constexpr int64_t kNan = 1 << 20;  // the exponent of NaN
  std::vector<double> value;
  std::vector<int64_t> exponent;
};

struct VectorSums {
  using Function = void (*)(const OperandRows& a, const OperandRows& b, const SumOptions& options, AccumulatorTile d);
  using OfGroups = void (*)(const OperandRows& a, const OperandRows& b, const GroupFactors& factors_a,
                            const GroupFactors& factors_b, const SumOptions& options, AccumulatorTile d);
  Function exact, fast, integers;
  OfGroups groups;  // exact, of adders that sum groups
  const char* name;
};
// By `vector`, of an adder that sums groups.
void SumGroups(const VectorSums& vector, const OperandRows& a, const OperandRows& b, const SumOptions& options,
               AccumulatorTile d);

// The best one for this processor.
const VectorSums& SelectVectorSums();
// All that this processor can run: tests compare them.
std::vector<const VectorSums*> RunnableVectorSums();

}  // namespace laneshift::emulator
