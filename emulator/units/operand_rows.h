// One operand of one tensor-core instruction, decomposed for the adder: per element its exact value as a float and the
// power of two that the adder counts as its exponent; per row what a fast path must know.
//
// A "row" is a row of A or a column of B. A is stored row-major, B with K outermost and rows padded to whole vectors,
// so that the adder's inner loops run over columns of B.
//
// Thread-safety: a plain buffer owned by its user.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/units/element.h"

namespace laneshift::emulator {

class OperandRows {
 public:
  enum class Side : uint8_t { kA, kB };
  static constexpr int kMaxK = 128;
  static constexpr int kPadding = 32;  // rows of B are padded to a multiple of this

  // What is kept of an element: its value alone is enough for Arithmetic::kFast.
  enum class Detail : uint8_t { kValues, kValuesAndPowers };

  struct RowFacts {
    bool zero = true;                      // every element is zero
    bool special = false;                  // an infinity or a NaN is among them
    int16_t least = 512, greatest = -512;  // exponents of the nonzero elements
  };

  // For what is loaded from now on. Without powers there are no facts of rows either.
  void set_detail(Detail detail) { detail_ = detail; }
  // `bytes` holds `rows` rows of K packed elements, `row_bytes` apart. Old contents are dropped, storage is reused.
  // REQUIRES: k <= kMaxK.
  void Load(Side side, ElementType type, Packing packing, int rows, int k, const uint8_t* bytes, size_t row_bytes,
            bool negate);
  // The same from element bits, one word per element, rows one after another.
  void LoadCodes(Side side, ElementType type, int rows, int k, const uint32_t* codes, bool negate);
  // The scale factors of a block-scaled instruction: `factors` bytes per row, each covering k / factors elements.
  void LoadScales(ScaleType type, int factors, const uint8_t* bytes);
  // Multiplies the elements by their scale factors and forgets these: for Arithmetic::kFast, whose sums know none.
  void FoldScales();

  Side side() const { return side_; }
  ElementType type() const { return type_; }
  int rows() const { return rows_; }
  int k() const { return k_; }
  // A: elements (row, 0 .. k-1) are contiguous. B: elements (0 .. pitch-1, k) are.
  size_t At(int row, int k) const { return static_cast<size_t>(side_ == Side::kA ? row * k_ + k : k * pitch_ + row); }
  int pitch() const { return pitch_; }
  const float* values() const { return values_.data(); }
  const float* powers() const { return powers_.data(); }
  const int32_t* integers() const { return integers_.data(); }
  const RowFacts& facts(int row) const { return facts_[static_cast<size_t>(row)]; }
  // Over all rows; padding rows of B are zero rows.
  const RowFacts& all() const { return all_; }
  int factors() const { return factors_; }
  ScaleType scale_type() const { return scale_type_; }
  uint8_t scale(int row, int factor) const { return scales_[static_cast<size_t>(row * factors_ + factor)]; }

 private:
  void Prepare(Side side, ElementType type, int rows, int k);
  // Stores all rows; codes_of(row) gives the element bits of one, good until the next call.
  template <typename CodesOf>
  void StoreRows(CodesOf codes_of, bool negate);
  void StoreIntegers(int row, const uint32_t* codes);
  // The elements of one row, and their powers where they are wanted.
  void Decode(int row, const uint32_t* codes, bool negate, float* values, float* powers);

  Detail detail_ = Detail::kValuesAndPowers;
  Side side_ = Side::kA;
  ElementType type_ = ElementType::kF16;
  int rows_ = 0, k_ = 0, pitch_ = 0;
  std::vector<float> values_;      // NaN and infinities as such
  std::vector<float> powers_;      // 2^exponent, 0 for zeros
  std::vector<int32_t> integers_;  // s8 and u8, instead of the two above
  std::vector<RowFacts> facts_;
  RowFacts all_;
  ScaleType scale_type_ = ScaleType::kUe8m0;
  int factors_ = 0;
  std::vector<uint8_t> scales_;
};

// What the executions of tensor-core instructions use one after another; contents are of no interest to the next one.
struct OperandBuffers {
  OperandRows a, b;
  std::vector<uint8_t> bytes_a, bytes_b;
  std::vector<uint32_t> cells;
  std::vector<uint32_t*> rows_d;
};

}  // namespace laneshift::emulator
