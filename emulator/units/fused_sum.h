// The tensor core's arithmetic: D = A x B + C where every (m, n) is one fused, truncating sum.
//
// All K products and the accumulator are aligned to the largest exponent among them, cut toward zero to `keep` fraction
// bits, added exactly, and rounded once. Arithmetic::kHardware reproduces the recorded result words bit for bit (the
// vectors of tests/words); Arithmetic::kFast is a chain of f32 operations for tests that need speed only.
//
// Thread-safety: OperandRows is a plain buffer owned by its user; MultiplyAccumulate touches only its arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/units/element.h"

namespace laneshift::emulator {

enum class Arithmetic : uint8_t { kHardware, kFast };

// The adder's parameters: fraction bits kept below the top exponent, fraction bits of an f32 result, least top
// exponent.
struct AdderRule {
  int keep = 25, out = 23, floor = -133;
  bool operator==(const AdderRule&) const = default;
};
AdderRule WgmmaAdder(ElementType a, AccumulatorType d);
AdderRule Tcgen05Adder(ElementType a, AccumulatorType d);

// One operand of one instruction, decomposed for the adder. A "row" is a row of A or a column of B.
class OperandRows {
 public:
  enum class Side : uint8_t { kA, kB };

  // `bytes` holds `rows` rows of K packed elements, `row_bytes` apart. Old contents are dropped, storage is reused.
  // REQUIRES: k <= 128.
  void Load(Side side, ElementType type, Packing packing, int rows, int k, const uint8_t* bytes, size_t row_bytes,
            bool negate);
  // The same from element bits, one word per element (sparse A, tests).
  void LoadCodes(Side side, ElementType type, int rows, int k, const uint32_t* codes, bool negate);
  // The scale factors of a block-scaled instruction: `factors` bytes per row, each covering k/factors elements.
  void LoadScales(ScaleType type, int factors, const uint8_t* bytes);

  int rows() const { return rows_; }
  int k() const { return k_; }
  ElementType type() const { return type_; }

 private:
  friend class FusedSum;
  struct RowFacts {
    int8_t zero;              // every element is zero
    int8_t special;           // an infinity or NaN is among them
    int16_t least, greatest;  // exponents of the nonzero elements
  };
  // Index of element (row, k): A is row-major, B is K-major with rows padded to whole vectors.
  size_t At(int row, int k) const {
    return side_ == Side::kA ? static_cast<size_t>(row) * k_ + k : static_cast<size_t>(k) * pitch_ + row;
  }

  Side side_ = Side::kA;
  ElementType type_ = ElementType::kF16;
  int rows_ = 0, k_ = 0, pitch_ = 0;
  std::vector<float> value_;  // the element; NaN and infinities as such
  std::vector<float> power_;  // 2^exponent as the adder counts it, 0 for zeros
  std::vector<RowFacts> facts_;
  std::vector<int32_t> integer_;  // s8 and u8 elements, or nothing
  bool negate_ = false;
  ScaleType scale_type_ = ScaleType::kUe8m0;
  int factors_ = 0;
  std::vector<uint8_t> scales_;  // rows_ x factors_
};

// D as rows of 32-bit cells: element (m, n) at cells[m * pitch + n]; f16 in the low half of its cell.
struct AccumulatorTile {
  uint32_t* cells = nullptr;
  size_t pitch = 0;
};

struct SumOptions {
  AccumulatorType d = AccumulatorType::kF32;
  AdderRule adder;
  Arithmetic arithmetic = Arithmetic::kHardware;
  bool accumulate = true;  // else C counts as zero and the old cells are not looked at
  bool saturate = false;   // s32 only: clamp instead of wrapping
  int scale_d = 0;         // C is multiplied by 2^-scale_d before the sum
};

// D = A x B + (accumulate ? D : 0), all of it. f16 results are written with a zero upper half.
// REQUIRES: a is Side::kA, b is Side::kB, equal K; both integer or neither; scale factors on both or neither.
void MultiplyAccumulate(const OperandRows& a, const OperandRows& b, const SumOptions& options, AccumulatorTile d);

// One sum by the definition, in plain integers: what MultiplyAccumulate falls back to, and is tested against.
uint32_t SumOne(const OperandRows& a, int row_a, const OperandRows& b, int row_b, const SumOptions& options,
                uint32_t c);

}  // namespace laneshift::emulator
