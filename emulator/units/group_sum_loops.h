// The loops of the kinds whose products are summed exactly in groups before scale factors are applied (the 4-bit
// kinds).
//
// Why doubles can do the adder's integer work exactly. The sum of a group is an integer below 2^14 (in quarters), and a
// product of two scale factors has at most 8 significant bits. In units of 2^(top - keep) a term is below 2^53, so its
// integer part is exact, and so are sums of a few. What could leave the range of normal floats goes to SumOne.
//
// Included as fused_sum_loops.h is. Thread-safety: pure but for the tile.
#pragma once

#include <bit>
#include <cstring>

#include "emulator/units/cell_vectors.h"
#include "emulator/units/fused_sum_vector.h"
#include "emulator/units/sum_vectors.h"

namespace laneshift::emulator {
namespace {

// Sums of a row, kFloats at a time, in halves as doubles.
template <int kFloats>
class GroupSums {
 public:
  GroupSums(const OperandRows& a, const OperandRows& b, const GroupFactors& factors_a, const GroupFactors& factors_b,
            const SumOptions& o, const AccumulatorTile& d)
      : a_(a), b_(b), factors_a_(factors_a), factors_b_(factors_b), o_(o), cells_(d), groups_(a.k() / o.adder.group) {}

  LS_INLINE void Run() const {
    for (int n0 = 0; n0 < b_.rows(); n0 += kFloats) {
      for (int m0 = 0; m0 < a_.rows(); m0 += kRows) SumRows(m0, n0);
    }
  }

 private:
  static constexpr int kRows = 8;  // at a time: additions to one sum wait for each other
  static constexpr int64_t kTopRange = 100;
  static constexpr int kLeastGroup = 16, kHalf = std::max(4, kFloats / 2);

  using Doubles = VectorOf<double, kHalf>;
  using Longs = VectorOf<int64_t, kHalf>;

  LS_INLINE void SumRows(int m0, int n0) const {
    const auto pitch = static_cast<size_t>(b_.pitch());
    const int rows = std::min(kRows, a_.rows() - m0);
    const float* values[kRows];
    for (int r = 0; r < kRows; ++r) values[r] = a_.values() + a_.At(m0 + std::min(r, rows - 1), 0);
    const float* columns = b_.values() + n0;
    Floats<kFloats> sums[kRows][OperandRows::kMaxK / kLeastGroup];
    for (int g = 0, k = 0; g < groups_; ++g) {
      Floats<kFloats> own[kRows] = {};  // products of e2m1 and their sums are exact
      for (int i = 0; i < o_.adder.group; ++i, ++k, columns += pitch) {
        Floats<kFloats> y;
        std::memcpy(&y, columns, sizeof(y));
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) own[r] += values[r][k] * y;
      }
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) sums[r][g] = own[r];
    }
    for (int r = 0; r < rows; ++r) {
      for (int first = 0; first < kFloats; first += kHalf)
        Join(m0 + r, n0 + first, reinterpret_cast<const float*>(sums[r]) + first);
    }
  }

  // Adds groups and accumulator. `sums`: of the first group; those of the next one are kFloats later.
  LS_INLINE void Join(int m, int n, const float* sums) const {
    const int lanes = LanesAt<kHalf>(n, b_.rows());
    Words<kHalf> old{};
    if (o_.accumulate) cells_.Load<kHalf>(m, 0, n, lanes, old);
    Floats<kHalf> cell;
    std::memcpy(&cell, &old, sizeof(cell));
    const Longs word = __builtin_convertvector(old, Longs), field = word >> 23 & 0xff, none = {};
    const Longs exponent = (field > 1 ? field : none + 1) - 127 - o_.scale_d;
    Longs left = field == 255;
    Longs something = (word & 0x7fffffff) != 0, top = none + o_.adder.floor;
    top = something & (exponent > top) ? exponent : top;
    Doubles terms[OperandRows::kMaxK / kLeastGroup + 1];
    terms[0] = __builtin_convertvector(cell, Doubles) * std::bit_cast<double>(int64_t{1023 - o_.scale_d} << 52);
    size_t of_row = Offset(m, static_cast<size_t>(groups_)), of_columns = static_cast<size_t>(n);
    for (int g = 0; g < groups_; ++g, ++of_row, of_columns += static_cast<size_t>(b_.pitch())) {
      Floats<kHalf> sum;
      Doubles factor;
      Longs scale;
      std::memcpy(&sum, sums + g * kFloats, sizeof(sum));
      std::memcpy(&factor, factors_b_.value.data() + of_columns, sizeof(factor));
      std::memcpy(&scale, factors_b_.exponent.data() + of_columns, sizeof(scale));
      const Doubles term = __builtin_convertvector(sum, Doubles) * factor * factors_a_.value[of_row];
      scale += factors_a_.exponent[of_row];
      left |= scale > kTopRange;  // also those of NaN factors
      something |= term != 0;
      top = (term != 0) & (scale > top) ? scale : top;
      terms[g + 1] = term;
    }
    // Where nothing is to be added the top says nothing.
    left |= (something & (top < -kTopRange)) | (top > kTopRange);
    top = top > -kTopRange ? top : none - kTopRange;
    top = top < kTopRange ? top : none + kTopRange;
    const Doubles inverse = reinterpret_cast<Doubles>((1023 + o_.adder.keep - top) << 52);
    const Doubles unit = reinterpret_cast<Doubles>((1023 - o_.adder.keep + top) << 52);
    Doubles total{};
    for (int g = 0; g <= groups_; ++g) {
      Doubles scaled = terms[g] * inverse;
      for (int j = 0; j < kHalf; ++j) scaled[j] = __builtin_trunc(scaled[j]);
      total += scaled;
    }
    const uint64_t keep_mask = ~((uint64_t{1} << (52 - o_.adder.out)) - 1);
    const auto bits = reinterpret_cast<VectorOf<uint64_t, kHalf>>(total * unit) & keep_mask;
    const auto result = __builtin_convertvector(reinterpret_cast<Doubles>(bits), Floats<kHalf>);
    Words<kHalf> words;
    std::memcpy(&words, &result, sizeof(words));
    for (int j = 0; j < lanes; ++j) {
      if (left[j] != 0) words[j] = SumOne(a_, m, b_, n + j, o_, old[j]);
    }
    cells_.Store<kHalf>(m, 0, n, lanes, words);
  }

  const OperandRows &a_, &b_;
  const GroupFactors &factors_a_, &factors_b_;
  const SumOptions& o_;
  const RowCells<false> cells_;
  const int groups_;
};

template <int kFloats>
constexpr VectorSums::OfGroups kGroupSumsOf =
    [](const OperandRows& a, const OperandRows& b, const GroupFactors& factors_a, const GroupFactors& factors_b,
       const SumOptions& o, AccumulatorTile d) { GroupSums<kFloats>(a, b, factors_a, factors_b, o, d).Run(); };

}  // namespace
}  // namespace laneshift::emulator
