// The adder's sums of the blocks whose sums are all regular: of f32, finite, and with exponents far from the ends of
// f32.
//
// Why one conversion rounds as the adder does. Such a block's terms, cut and in units of 2^(top - keep), are integers
// whose sum fits in 32 bits (a block in which one does not is not regular). The host rounds toward zero meanwhile, so
// the conversion to f32 keeps the first 24 bits of the sum, and the scaling back is exact.
//
// Where no product is cut, plain f32 sums are exact: if the last bits of all products are above what the adder cuts
// off, and at most 24 bits below what sixteen of them can sum up to. So it is for many operands of few bits (8-bit
// floats, whole numbers). The adder's top matters only for C then: any bound will do that does not cut C either.
//
// Included as fused_sum_loops.h is. Thread-safety: pure but for the tile.
#pragma once

#include <algorithm>
#include <cfenv>
#include <cstring>

#include "base/small_float.h"
#include "emulator/units/cell_vectors.h"
#include "emulator/units/sum_vectors.h"

namespace laneshift::emulator {
namespace {

// The host's rounding mode while it lives.
class TowardZero {
 public:
  TowardZero() : before_(std::fegetround()) { std::fesetround(FE_TOWARDZERO); }
  ~TowardZero() { std::fesetround(before_); }
  TowardZero(const TowardZero&) = delete;
  TowardZero& operator=(const TowardZero&) = delete;

 private:
  const int before_;
};

// The uncut products of elements `first` to `last`, summed.
template <int kFloats, int kVectors, int kRows>
LS_INLINE void SumProducts(const float* const* rows, const OperandRows& b, int n0, int first, int last,
                           Floats<kFloats> (*sum)[kVectors]) {
  Floats<kFloats> own[kRows][kVectors] = {};
  const float* columns = b.values() + n0 + Offset(first, static_cast<size_t>(b.pitch()));
  for (int i = first; i < last; ++i, columns += b.pitch()) {
    Floats<kFloats> y[kVectors];
    LoadVectors<kVectors>(columns, y);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) own[r][v] += rows[r][i] * y[v];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[r][v] = own[r][v];
  }
}

template <typename Cells>
class RegularSums {
 public:
  RegularSums(const OperandRows& a, const OperandRows& b, const SumOptions& o, const AccumulatorTile& tile)
      : a_(a),
        b_(b),
        o_(o),
        cells_(tile),
        scaled_(HasOneScale(a)),
        applies_(!Cells::kHalf && o.scale_d == 0 && (a.factors() == 0 || scaled_) &&
                 b.range().greatest != OperandRows::kSpecialExponent),
        fraction_bits_(base::InfoOf(FormatOf(a.type())).mantissa_bits +
                       base::InfoOf(FormatOf(b.type())).mantissa_bits) {}

  // False: nothing was written, some sum is not regular.
  // REQUIRES: the host rounds toward zero.
  template <int kFloats, int kVectors, int kRows>
  LS_INLINE bool Run(int m0, int n0) const {
    if (!applies_) return false;
    const RowBlock<kRows> block(a_, m0);
    if (block.range.greatest == OperandRows::kSpecialExponent) return false;
    const int greatest = block.range.greatest + b_.range().greatest;
    if (greatest > kGreatestProduct) return false;
    Aligned<kFloats> lanes[kRows][kVectors];
    Load<kFloats, kVectors, kRows>(block, m0, n0, lanes);
    const int k = block.K(a_), least = block.range.least + b_.range().least - fraction_bits_;
    VectorOf<int16_t, kFloats * kVectors> top[kRows];
    bool whole = greatest + 2 + kChunkBits <= least + 24 && greatest <= least + o_.adder.keep;
    if (whole) {
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) top[r] = VectorOf<int16_t, kFloats * kVectors>{} + static_cast<int16_t>(greatest);
      whole = Align<true, kFloats, kVectors, kRows>(block.count, m0, n0, top, lanes, least + o_.adder.keep);
    }
    if (!whole) {
      TopExponents<kFloats * kVectors, kRows>(block.exponents, b_, n0, k, top);
      if (!Align<false, kFloats, kVectors, kRows>(block.count, m0, n0, top, lanes)) return false;
    }
    Integers<kFloats> overflow{};
    for (int first = 0; first < k; first += kChunk) {
      AddChunk<kFloats, kVectors, kRows>(block.values, whole, n0, first, std::min(first + kChunk, k), lanes, overflow);
    }
    if (AnyBit<kFloats>(overflow < 0)) return false;
    Store<kFloats, kVectors, kRows>(block.count, m0, n0, lanes);
    return true;
  }

 private:
  static constexpr int kGreatestProduct = 64, kChunkBits = 4, kBias = 127;
  static_assert(1 << kChunkBits == kChunk);

  // One vector of sums.
  template <int kFloats>
  struct Aligned {
    Words<kFloats> cells;          // the accumulators as they were
    Words<kFloats> total;          // in units of 1 / scale
    Floats<kFloats> scale;         // 2^(keep - top)
    Integers<kFloats> cell_scale;  // the bits of what makes an accumulator so many units
  };

  template <int kFloats, int kVectors, int kRows>
  LS_INLINE void Load(const RowBlock<kRows>& block, int m0, int n0, Aligned<kFloats> (*lanes)[kVectors]) const {
    const int next = std::min(m0 + kRows, a_.rows() - 1);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      cells_.Prefetch(std::min(next + r, a_.rows() - 1), n0);
      if constexpr (kFloats * kVectors > 16) cells_.Prefetch(std::min(next + r, a_.rows() - 1), n0 + 16);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const int n = n0 + v * kFloats;
        lanes[r][v].cells = Words<kFloats>{};
        if (!o_.accumulate) continue;
        cells_.template Load<kFloats>(m0, std::min(r, block.count - 1), n, LanesAt<kFloats>(n, b_.rows()),
                                      lanes[r][v].cells);
      }
    }
  }

  // `top`: the greatest exponents of the products; or, if no product is to be cut, a bound, and `limit` is the greatest
  // top of which none is. False if a sum is not regular, or something would be cut that is to remain whole.
  template <bool kWhole, int kFloats, int kVectors, int kRows>
  LS_INLINE bool Align(int rows, int m0, int n0, const VectorOf<int16_t, kFloats * kVectors>* top,
                       Aligned<kFloats> (*lanes)[kVectors], int limit = 0) const {
    if (scaled_) return AlignAs<true, kWhole, kFloats, kVectors, kRows>(rows, m0, n0, top, lanes, limit);
    return AlignAs<false, kWhole, kFloats, kVectors, kRows>(rows, m0, n0, top, lanes, limit);
  }

  template <bool kScaled, bool kWhole, int kFloats, int kVectors, int kRows>
  LS_INLINE bool AlignAs(int rows, int m0, int n0, const VectorOf<int16_t, kFloats * kVectors>* top,
                         Aligned<kFloats> (*lanes)[kVectors], int limit) const {
    const int keep = o_.adder.keep;
    Integers<kFloats> odd{};
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        Aligned<kFloats>& l = lanes[r][v];
        Integers<kFloats> products, moves{}, biased_top;
        PartOf<kFloats>(top[r], v, products);
        if constexpr (kScaled)
          Moves<kFloats>(a_, b_, m0 + std::min(r, rows - 1), n0 + v * kFloats, products, moves, odd);
        AlignVector<kScaled, kFloats>(keep, products, moves, l, biased_top, odd);
        if constexpr (kWhole) {
          const auto total = reinterpret_cast<Integers<kFloats>>(l.total);
          Floats<kFloats> c;
          CellsOf<kFloats>(l, c);
          odd |= (biased_top > limit + kBias) | (__builtin_convertvector(total, Floats<kFloats>) != c);
        }
      }
    }
    return !AnyBit<kFloats>(odd);
  }

  // The accumulators in units.
  template <int kFloats>
  static LS_INLINE void CellsOf(const Aligned<kFloats>& l, Floats<kFloats>& c) {
    std::memcpy(&c, &l.cells, sizeof(c));
    c *= reinterpret_cast<Floats<kFloats>>(l.cell_scale);
  }

  // Accumulators and products that are not zero must be above the least top, and accumulators also where scale factors
  // lower them.
  template <bool kScaled, int kFloats>
  static LS_INLINE void AlignVector(int keep, const Integers<kFloats>& products, const Integers<kFloats>& moves,
                                    Aligned<kFloats>& l, Integers<kFloats>& biased_top, Integers<kFloats>& odd) {
    constexpr int kLeast = kTopLimit + kScaleReach;
    constexpr int kLeastTop = kLeast + kBias, kLeastCell = (kLeastTop + kScaleReach) << 23;
    constexpr int kGreatestCell = (kGreatestProduct + kBias) << 23;
    const auto magnitude = reinterpret_cast<Integers<kFloats>>(l.cells & 0x7fffffff);
    odd |= (magnitude > kGreatestCell) | ((magnitude < kLeastCell) & (magnitude != 0)) |
           ((products < kLeast) & (products > int{OperandRows::kZeroExponent} / 2));
    Integers<kFloats> top = magnitude >> 23;
    if constexpr (kScaled) top -= moves;
    top = top > products + kBias ? top : products + kBias;
    top = top > kLeastTop ? top : Integers<kFloats>{} + kLeastTop;
    biased_top = top;
    const Integers<kFloats> scale = (2 * kBias + keep - top) << 23;
    l.scale = reinterpret_cast<Floats<kFloats>>(scale);
    l.cell_scale = scale;
    if constexpr (kScaled) l.cell_scale -= moves << 23;
    Floats<kFloats> c;
    CellsOf<kFloats>(l, c);
    l.total = reinterpret_cast<Words<kFloats>>(__builtin_convertvector(c, Integers<kFloats>));
  }

  template <int kFloats, int kVectors, int kRows>
  LS_INLINE void AddChunk(const float* const* rows, bool whole, int n0, int first, int last,
                          Aligned<kFloats> (*lanes)[kVectors], Integers<kFloats>& overflow) const {
    Integers<kFloats> sums[kRows][kVectors];
    if (whole) {
      Floats<kFloats> own[kRows][kVectors];
      SumProducts<kFloats, kVectors, kRows>(rows, b_, n0, first, last, own);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v)
          sums[r][v] = __builtin_convertvector(own[r][v] * lanes[r][v].scale, Integers<kFloats>);
      }
    } else {
      Floats<kFloats> scales[kRows][kVectors];
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) scales[r][v] = lanes[r][v].scale;
      }
      SumCutProducts<kFloats, kVectors, kRows>(rows, b_, n0, first, last, scales, sums);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const auto own = reinterpret_cast<Words<kFloats>>(sums[r][v]), before = lanes[r][v].total;
        lanes[r][v].total += own;
        overflow |= reinterpret_cast<Integers<kFloats>>((before ^ lanes[r][v].total) & (own ^ lanes[r][v].total));
      }
    }
  }

  template <int kFloats, int kVectors, int kRows>
  LS_INLINE void Store(int rows, int m0, int n0, const Aligned<kFloats> (*lanes)[kVectors]) const {
    const uint32_t kept = ~0u << (23 - o_.adder.out);
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const int n = n0 + v * kFloats;
        const Integers<kFloats> unit = (2 * kBias << 23) - lanes[r][v].cell_scale;
        const auto total = reinterpret_cast<Integers<kFloats>>(lanes[r][v].total);
        const Floats<kFloats> sum =
            __builtin_convertvector(total, Floats<kFloats>) * reinterpret_cast<Floats<kFloats>>(unit);
        Words<kFloats> words;
        std::memcpy(&words, &sum, sizeof(words));
        words &= kept;
        cells_.template Store<kFloats>(m0, r, n, LanesAt<kFloats>(n, b_.rows()), words);
      }
    }
  }

  const OperandRows &a_, &b_;
  const SumOptions& o_;
  const Cells cells_;
  const bool scaled_, applies_;
  const int fraction_bits_;
};

}  // namespace
}  // namespace laneshift::emulator
