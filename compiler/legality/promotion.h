// Promotion: where the tensor core's accumulator has too few bits, or where blocks of K have their own scale factors,
// the products of a block of K are summed in the accumulator and that sum is added to an f32 register
// (docs/adr/0013-accumulation-precision-is-the-problems.md).
//
// Thread-safety: pure functions.
#pragma once

#include "compiler/contraction/contraction.h"
#include "ir/element_type.h"
#include "ir/stored_tensor.h"
#include "target/target.h"

namespace laneshift::compiler {

constexpr int kWholeSumBits = 23;  // fraction bits of an f32

inline bool Promotes(DataType operand, SumPrecision sum, Scaling scale, const target::Target& target) {
  if (scale == Scaling::kBlock) return true;
  if (ir::BlockScalingOf(scale)) return false;  // the tensor core has whole f32 sums
  return ir::IsFloat8(operand) && sum == SumPrecision::kF32 && target.eight_bit_sum_bits < kWholeSumBits;
}
inline bool Promotes(const Contraction& contraction, const target::Target& target) {
  return Promotes(contraction.a.type(), contraction.sum, contraction.scale, target);
}

}  // namespace laneshift::compiler
