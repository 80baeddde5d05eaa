// The adder's sums of the blocks that lie in D as a whole and whose sums are all regular: of f32, finite, and with
// exponents far from the ends of f32.
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

  // False: nothing was written, some sum is not regular or not in D.
  // REQUIRES: the host rounds toward zero.
  template <int kFloats, int kVectors, int kRows>
  LS_INLINE bool Run(int m0, int n0) const {
    if (!applies_ || m0 + kRows > a_.rows() || n0 + kVectors * kFloats > b_.rows()) return false;
    const RowBlock<kRows> block(a_, m0);
    if (block.range.greatest == OperandRows::kSpecialExponent) return false;
    const int greatest = block.range.greatest + b_.range().greatest;
    if (greatest > kGreatestProduct) return false;
    Prefetch<kFloats, kVectors, kRows>(m0, n0);
    if (scaled_) return RunAs<true, kFloats, kVectors, kRows>(block, m0, n0, greatest);
    return RunAs<false, kFloats, kVectors, kRows>(block, m0, n0, greatest);
  }

 private:
  static constexpr int kGreatestProduct = 64, kChunkBits = 4, kBias = 127;
  static constexpr int kLeast = kTopLimit + kScaleReach;  // of products
  static constexpr int kLeastTop = kLeast + kBias;
  static_assert(1 << kChunkBits == kChunk);

  // The sums of a block.
  template <int kFloats, int kVectors, int kRows>
  struct Sums {
    Integers<kFloats> total[kRows][kVectors];  // in units of 1 / scale
    Floats<kFloats> scale[kRows][kVectors];    // 2^(keep - top)
    // What scale factors move them by, as bits of an exponent. Only where there are any.
    Integers<kFloats> moves[kRows][kVectors];
  };

  // What is odd about some lane of a block.
  template <int kFloats>
  struct Odd {
    Integers<kFloats> any = {};                                       // not zero: a lane is not regular
    Integers<kFloats> greatest = {};                                  // magnitudes of accumulators
    Words<kFloats> least_less_one = Words<kFloats>{} + ~uint32_t{0};  // the same, which excludes zeros

    LS_INLINE void IncludeCells(const Integers<kFloats>& magnitude) {
      greatest = greatest > magnitude ? greatest : magnitude;
      const auto less_one = reinterpret_cast<Words<kFloats>>(magnitude - 1);
      least_less_one = least_less_one < less_one ? least_less_one : less_one;
    }
    // Accumulators that are not zero must be above the least top, also where scale factors lower them.
    LS_INLINE bool None() const {
      constexpr uint32_t kLeastCell = static_cast<uint32_t>(kLeastTop + kScaleReach) << 23;
      constexpr int kGreatestCell = (kGreatestProduct + kBias) << 23;
      return !AnyBit<kFloats>(any | (greatest > kGreatestCell) | (least_less_one < kLeastCell - 1));
    }
  };

  template <int kFloats, int kVectors, int kRows>
  LS_INLINE void Prefetch(int m0, int n0) const {
    const int next = std::min(m0 + kRows, a_.rows() - 1);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      cells_.Prefetch(std::min(next + r, a_.rows() - 1), n0);
      if constexpr (kFloats * kVectors > 16) cells_.Prefetch(std::min(next + r, a_.rows() - 1), n0 + 16);
    }
  }

  template <bool kScaled, int kFloats, int kVectors, int kRows>
  LS_INLINE bool RunAs(const RowBlock<kRows>& block, int m0, int n0, int greatest) const {
    const int k = block.K(a_), least = block.range.least + b_.range().least;
    const int last_bit = least - fraction_bits_;
    Sums<kFloats, kVectors, kRows> sums;
    VectorOf<int16_t, kFloats * kVectors> top[kRows];
    if (greatest + 2 + kChunkBits <= last_bit + 24 && greatest <= last_bit + o_.adder.keep) {
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) top[r] = VectorOf<int16_t, kFloats * kVectors>{} + static_cast<int16_t>(greatest);
      if (Align<kScaled, true, kFloats, kVectors, kRows>(m0, n0, least, top, sums, last_bit + o_.adder.keep)) {
        return Finish<kScaled, true, kFloats, kVectors, kRows>(block, k, m0, n0, sums);
      }
    }
    TopExponents<kFloats * kVectors, kRows>(block.exponents, b_, n0, k, top);
    return Align<kScaled, false, kFloats, kVectors, kRows>(m0, n0, least, top, sums) &&
           Finish<kScaled, false, kFloats, kVectors, kRows>(block, k, m0, n0, sums);
  }

  // The accumulators in units. `least`: no product that is not zero has a lower exponent. `top`: the greatest exponents
  // of the products; or, if no product is to be cut, a bound, and `limit` is the greatest top of which none is. False
  // if a sum is not regular, or something would be cut that is to remain whole.
  template <bool kScaled, bool kWhole, int kFloats, int kVectors, int kRows>
  LS_INLINE bool Align(int m0, int n0, int least, VectorOf<int16_t, kFloats * kVectors>* top,
                       Sums<kFloats, kVectors, kRows>& sums, int limit = 0) const {
    using Tops = VectorOf<int16_t, kFloats * kVectors>;
    Odd<kFloats> odd;
    Tops low{};
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      if (least < kLeast) low |= (top[r] < kLeast) & (top[r] > OperandRows::kZeroExponent / 2);
      Tops biased = top[r] + kBias;
      biased = biased > kLeastTop ? biased : Tops{} + kLeastTop;
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        Integers<kFloats> moves{}, products;
        PartOf<kFloats>(biased, v, products);
        if constexpr (kScaled) {
          Integers<kFloats> exponents;
          PartOf<kFloats>(top[r], v, exponents);
          Moves<kFloats>(a_, b_, m0 + r, n0 + v * kFloats, exponents, moves, odd.any);
        }
        AlignVector<kScaled, kWhole, kFloats>(m0, r, n0 + v * kFloats, products, moves, sums.total[r][v],
                                              sums.scale[r][v], odd, limit);
        if constexpr (kScaled) sums.moves[r][v] = moves << 23;
      }
    }
    if (least < kLeast) {
      constexpr int kParts = sizeof(Tops) / sizeof(uint64_t);
      uint64_t parts[kParts], any = 0;
      std::memcpy(parts, &low, sizeof(parts));
      for (const uint64_t part : parts) any |= part;
      if (any != 0) return false;
    }
    return odd.None();
  }

  template <bool kScaled, bool kWhole, int kFloats>
  LS_INLINE void AlignVector(int m0, int r, int n, const Integers<kFloats>& products, const Integers<kFloats>& moves,
                             Integers<kFloats>& total, Floats<kFloats>& scale, Odd<kFloats>& odd, int limit) const {
    Words<kFloats> cells{};
    if (o_.accumulate) cells_.template Load<kFloats>(m0, r, n, kFloats, cells);
    const auto magnitude = reinterpret_cast<Integers<kFloats>>(cells & 0x7fffffff);
    odd.IncludeCells(magnitude);
    Integers<kFloats> top = magnitude >> 23;
    if constexpr (kScaled) top -= moves;
    top = top > products ? top : products;
    Integers<kFloats> bits = (2 * kBias + o_.adder.keep - top) << 23;
    scale = reinterpret_cast<Floats<kFloats>>(bits);
    if constexpr (kScaled) bits -= moves << 23;
    Floats<kFloats> c;
    std::memcpy(&c, &cells, sizeof(c));
    c *= reinterpret_cast<Floats<kFloats>>(bits);
    total = __builtin_convertvector(c, Integers<kFloats>);
    if constexpr (kWhole) odd.any |= (top > limit + kBias) | (__builtin_convertvector(total, Floats<kFloats>) != c);
  }

  // Sums that have left 32 bits wrap around: Finish saw them leave, and nobody reads what they became.
  template <int kFloats>
  LS_INLINE static void AddWrapping(const Integers<kFloats>& more, Integers<kFloats>& total) {
    total = reinterpret_cast<Integers<kFloats>>(reinterpret_cast<Words<kFloats>>(total) +
                                                reinterpret_cast<Words<kFloats>>(more));
  }

  // Adds the products, rounds and stores. False if a sum may have left 32 bits: between chunks, of which one adds less
  // than 2^31, it must be within 2^30, so that no wrong one comes back there.
  template <bool kScaled, bool kWhole, int kFloats, int kVectors, int kRows>
  LS_INLINE bool Finish(const RowBlock<kRows>& block, int k, int m0, int n0,
                        Sums<kFloats, kVectors, kRows>& sums) const {
    Integers<kFloats> out{};
    for (int first = 0; first < k; first += kChunk) {
      const int last = std::min(first + kChunk, k);
      if constexpr (kWhole) {
        Floats<kFloats> own[kRows][kVectors] = {};
        AddProducts<kFloats, kVectors, kRows>(block.values, b_, n0, first, last, own);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v)
            AddWrapping<kFloats>(__builtin_convertvector(own[r][v] * sums.scale[r][v], Integers<kFloats>),
                                 sums.total[r][v]);
        }
      } else {
        AddCutProducts<kFloats, kVectors, kRows>(block.values, b_, n0, first, last, sums.scale, sums.total);
      }
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          out |= reinterpret_cast<Integers<kFloats>>(reinterpret_cast<Words<kFloats>>(sums.total[r][v]) + (1u << 30));
        }
      }
    }
    if (AnyBit<kFloats>(out < 0)) return false;
    Store<kScaled, kFloats, kVectors, kRows>(m0, n0, sums);
    return true;
  }

  template <bool kScaled, int kFloats, int kVectors, int kRows>
  LS_INLINE void Store(int m0, int n0, const Sums<kFloats, kVectors, kRows>& sums) const {
    const uint32_t kept = ~0u << (23 - o_.adder.out);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        Integers<kFloats> unit = (2 * kBias << 23) - reinterpret_cast<Integers<kFloats>>(sums.scale[r][v]);
        if constexpr (kScaled) unit += sums.moves[r][v];
        const Floats<kFloats> sum =
            __builtin_convertvector(sums.total[r][v], Floats<kFloats>) * reinterpret_cast<Floats<kFloats>>(unit);
        Words<kFloats> words;
        std::memcpy(&words, &sum, sizeof(words));
        words &= kept;
        cells_.template Store<kFloats>(m0, r, n0 + v * kFloats, kFloats, words);
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
