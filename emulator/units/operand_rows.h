// One operand of one tensor-core instruction, decomposed for the adder: per element its exact value as a float and the
// exponent that the adder counts for it; per row what a fast path must know.
//
// A "row" is a row of A or a column of B. A is stored row-major, B with K outermost and rows padded to whole vectors,
// so that the adder's inner loops run over columns of B.
//
// Thread-safety: a plain buffer owned by its user.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/units/element.h"
#include "emulator/units/line_vector.h"

namespace laneshift::emulator {

class OperandRows {
 public:
  enum class Side : uint8_t { kA, kB };
  static constexpr int kMaxK = 128;
  static constexpr int kPadding = 32;   // rows of B are padded to a multiple of this
  static constexpr int kRangeRows = 4;  // neighbouring rows of A that share a range of exponents

  // What is kept of an element: its value is enough for Arithmetic::kFast.
  enum class Detail : uint8_t { kValues, kValuesAndExponents };

  // The exponent of zeros: the sum of two is still a 16-bit number, and below every other exponent and their sums.
  static constexpr int16_t kZeroExponent = -0x4000;
  // The exponent of infinities and NaNs.
  static constexpr int16_t kSpecialExponent = 128;
  // The exponents of elements other than zero; of none, the greatest is below the least.
  struct Range {
    int16_t greatest = kZeroExponent, least = -kZeroExponent;
    void Include(const Range& other) {
      greatest = greatest > other.greatest ? greatest : other.greatest;
      least = least < other.least ? least : other.least;
    }
  };

  // For what is loaded from now on.
  void set_detail(Detail detail) { detail_ = detail; }
  // `bytes` holds `rows` rows of K packed elements, `row_bytes` apart. Old contents are dropped, storage is reused.
  // REQUIRES: k <= kMaxK.
  void Load(Side side, ElementType type, Packing packing, int rows, int k, const uint8_t* bytes, size_t row_bytes,
            bool negate);
  // The same from element bits, one word per element, rows one after another.
  void LoadCodes(Side side, ElementType type, int rows, int k, const uint32_t* codes, bool negate);
  // The scale factors of a block-scaled instruction: `factors` bytes per row, each covering k / factors elements.
  void LoadScales(ScaleType type, int factors, const uint8_t* bytes);
  // Multiplies the elements by their scale factors and drops these: for Arithmetic::kFast, whose sums have no scale
  // factors.
  void FoldScales();

  Side side() const { return side_; }
  ElementType type() const { return type_; }
  int rows() const { return rows_; }
  int k() const { return k_; }
  // A: elements (row, 0 .. k-1) are contiguous. B: elements (0 .. pitch-1, k) are.
  size_t At(int row, int k) const { return static_cast<size_t>(side_ == Side::kA ? row * k_ + k : k * pitch_ + row); }
  int pitch() const { return pitch_; }
  const float* values() const { return values_.data(); }
  // Side A has each exponent twice, so that one 32-bit load fills a vector with it; the padding of side B is of zeros.
  const int16_t* exponents() const { return exponents_.data(); }
  int exponent(int row, int k) const { return exponents_[At(row, k) * copies()]; }
  const int32_t* integers() const { return integers_.data(); }
  // Of the rows of A that share a range with this one, and of all rows. With Detail::kValues they mean nothing.
  const Range& range(int row) const { return row_ranges_[static_cast<size_t>(row / kRangeRows)]; }
  const Range& range() const { return range_; }
  int factors() const { return factors_; }
  ScaleType scale_type() const { return scale_type_; }
  uint8_t scale(int row, int factor) const { return scales_[static_cast<size_t>(row * factors_ + factor)]; }
  // All of them, row by row, and after them as many more as a vector may read.
  const uint8_t* scales() const { return scales_.data(); }

 private:
  void Prepare(Side side, ElementType type, int rows, int k);
  // Stores all rows; codes_of(row) gives the element bits of one, good until the next call.
  template <typename CodesOf>
  void StoreRows(CodesOf codes_of, bool negate);
  void StoreIntegers(int row, const uint32_t* codes);
  // The elements of one row, and their exponents where they are wanted.
  void Decode(int row, const uint32_t* codes, bool negate, float* values, int16_t* exponents);
  size_t copies() const { return side_ == Side::kA ? 2 : 1; }

  Detail detail_ = Detail::kValuesAndExponents;
  Side side_ = Side::kA;
  ElementType type_ = ElementType::kF16;
  int rows_ = 0, k_ = 0, pitch_ = 0;
  LineVector<float> values_;  // NaN and infinities as such
  LineVector<int16_t> exponents_;
  LineVector<int32_t> integers_;  // s8 and u8, instead of the two above
  std::vector<Range> row_ranges_;
  Range range_;
  ScaleType scale_type_ = ScaleType::kUe8m0;
  int factors_ = 0;
  std::vector<uint8_t> scales_;
};

// What the executions of tensor-core instructions use one after another; contents are of no interest to the next one.
struct OperandBuffers {
  OperandRows a, b;
  std::vector<uint8_t> bytes_a, bytes_b;
  std::vector<uint32_t*> rows_d;
  std::array<std::vector<uint32_t>, 2> results;  // of each CTA: cells of D
};

}  // namespace laneshift::emulator
