// The tensor core's arithmetic: D = A x B + C where every (m, n) is one fused, truncating sum.
//
// All K products and the accumulator are aligned to the largest exponent among them, cut toward zero to `keep` fraction
// bits, added exactly, and rounded once. Arithmetic::kHardware reproduces the recorded result words bit for bit (the
// vectors of tests/words); Arithmetic::kFast is a chain of f32 operations for runs that need speed only.
//
// Thread-safety: MultiplyAccumulate touches only its arguments.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/units/element.h"
#include "emulator/units/operand_rows.h"

namespace laneshift::emulator {

enum class SumArithmetic : uint8_t { kHardware, kFast };

// What MultiplyAccumulate must know of its operands.
inline OperandRows::Detail DetailFor(SumArithmetic arithmetic) {
  return arithmetic == SumArithmetic::kFast ? OperandRows::Detail::kValues : OperandRows::Detail::kValuesAndExponents;
}

// The adder's parameters.
struct AdderRule {
  int keep = 25;     // fraction bits kept below the top exponent
  int out = 23;      // fraction bits of an f32 result
  int floor = -133;  // least top exponent
  int group = 1;     // products summed exactly before scale factors are applied (the 4-bit kinds: 16)
  bool operator==(const AdderRule&) const = default;
};
AdderRule WgmmaAdder(ElementType a, AccumulatorType d);
AdderRule Tcgen05Adder(AccumulatorType d);
AdderRule Tcgen05FourBitAdder();  // kind::mxf4, kind::mxf4nvf4

// D as rows of 32-bit cells, f16 in the low half of its cell: row m begins at cells + m * pitch, or at rows[m] where
// these are given. Or as the registers of a warpgroup, as wgmma has them: registers[w * registers_per_thread + r] are
// the 32 lanes of register r of warp w, which of f16 hold two cells each.
struct AccumulatorTile {
  uint32_t* cells = nullptr;
  size_t pitch = 0;
  uint32_t* const* rows = nullptr;
  uint32_t* const* registers = nullptr;
  int registers_per_thread = 0;

  // REQUIRES: not in registers.
  uint32_t* Row(int m) const { return rows != nullptr ? rows[m] : cells + static_cast<size_t>(m) * pitch; }
};

struct SumOptions {
  AccumulatorType d = AccumulatorType::kF32;
  AdderRule adder;
  SumArithmetic arithmetic = SumArithmetic::kHardware;
  bool accumulate = true;  // else C counts as zero and the old cells are not looked at
  bool saturate = false;   // s32 only: clamp instead of wrapping
  int scale_d = 0;         // C is multiplied by 2^-scale_d before the sum
};

// D = A x B + (accumulate ? D : 0), for the whole tile. f16 results are written with a zero upper half.
// REQUIRES: a is side A, b is side B, equal K; s32 exactly for integers; scale factors on both or on neither.
void MultiplyAccumulate(const OperandRows& a, const OperandRows& b, const SumOptions& options, AccumulatorTile d);

// One sum by the definition, in integers: what MultiplyAccumulate falls back to where its vector path does not apply.
uint32_t SumOne(const OperandRows& a, int row_a, const OperandRows& b, int row_b, const SumOptions& options,
                uint32_t c);

}  // namespace laneshift::emulator
