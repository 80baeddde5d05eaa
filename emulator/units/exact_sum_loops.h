// The adder's sums, bit for bit, as templates over the floats of a vector: those of any block, in which some lanes may
// be left to SumOne. regular_sum_loops.h has the blocks in which none is, which are nearly all.
//
// Why floats can do the adder's integer work exactly. With top the largest exponent, a product p of two elements (at
// most 11 significant bits each) is exact in f32, p * 2^(keep - top) only changes its exponent, and the conversion to
// int32 drops exactly the bits that the adder drops, toward zero. Sixteen such integers, each below 2^27, fit in 32
// bits. What could leave the range of normal floats (sums of exponents above 125, tops below -100 or above 100) and all
// infinities and NaNs go to SumOne.
//
// The floats are exact, so the host's rounding mode does not matter: sums of f32 run with the one that
// regular_sum_loops.h needs, sums of f16 with the nearest, by which they round.
//
// Included as fused_sum_loops.h is. Thread-safety: pure but for the tile.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include "emulator/units/cell_vectors.h"
#include "emulator/units/regular_sum_loops.h"
#include "emulator/units/sum_vectors.h"

namespace laneshift::emulator {
namespace {

constexpr int kSumLimit = 125;

template <typename Cells>
struct ExactSums {
  const OperandRows &a, &b;
  const SumOptions& o;
  const Cells cells;
  const bool scaled;
  const RegularSums<Cells> regular;

  ExactSums(const OperandRows& rows_a, const OperandRows& rows_b, const SumOptions& options,
            const AccumulatorTile& tile)
      : a(rows_a), b(rows_b), o(options), cells(tile), scaled(HasOneScale(a)), regular(a, b, options, tile) {}

  bool ByDefinition(int m) const {
    const int own = a.range(m).greatest, of_columns = b.range().greatest;
    return (a.factors() != 0 && !scaled) || own == OperandRows::kSpecialExponent ||
           of_columns == OperandRows::kSpecialExponent || own + of_columns > kSumLimit;
  }

  // One vector of sums: its accumulator, and what its top makes of the products.
  template <int kFloats>
  struct Lanes {
    Words<kFloats> old;
    Floats<kFloats> c, scale, unit;  // 2^(keep - top), and its inverse
    Integers<kFloats> left;          // not zero: for SumOne
  };

  // The exponents of the cells in l.old, and what they are as floats; those that are not finite are left to SumOne.
  template <int kFloats>
  LS_INLINE void DecodeAccumulator(Lanes<kFloats>& l, Integers<kFloats>& exponent) const {
    if constexpr (Cells::kHalf) {
      CellsToFloats<kFloats>(l.old, l.c);
    } else {
      std::memcpy(&l.c, &l.old, sizeof(l.c));
    }
    const auto word = reinterpret_cast<Integers<kFloats>>(l.c);
    const Integers<kFloats> field = word >> 23 & 0xff;
    constexpr int kLeast = Cells::kHalf ? -14 : -126;
    exponent = (field - 127 > kLeast ? field - 127 : Integers<kFloats>{} + kLeast) - o.scale_d;
    exponent = (word & 0x7fffffff) != 0 ? exponent : Integers<kFloats>{} + int{OperandRows::kZeroExponent};
    l.left = field == 255;
    l.c *= std::bit_cast<float>(static_cast<uint32_t>(127 - o.scale_d) << 23);
  }

  // `top`: the greatest exponents of the products.
  template <int kFloats>
  LS_INLINE void Align(int m, int n, Integers<kFloats> top, int by_definition, Lanes<kFloats>& l) const {
    Integers<kFloats> exponent, moves{};
    DecodeAccumulator<kFloats>(l, exponent);
    int limit = kTopLimit;
    if (scaled) {
      Moves<kFloats>(a, b, m, n, top, moves, l.left);
      l.left |= exponent > 100;
      const Words<kFloats> down = reinterpret_cast<Words<kFloats>>(127 - moves) << 23;
      l.c *= reinterpret_cast<Floats<kFloats>>(down);
      exponent -= moves;
      limit += kScaleReach;
    }
    top = top > exponent ? top : exponent;
    const Integers<kFloats> something = top > int{OperandRows::kZeroExponent} / 2;
    top = top > o.adder.floor ? top : Integers<kFloats>{} + o.adder.floor;
    l.left |= (something & (top < limit)) | (top + moves > kTopGreatest);
    l.left |= by_definition;
    top = top > limit ? top : Integers<kFloats>{} + limit;
    // A lane that is left to SumOne sums zeros: its products could outgrow the integers.
    const Integers<kFloats> scale = (127 + o.adder.keep - top) << 23 & ~l.left;
    const Integers<kFloats> unit = (127 - o.adder.keep + top + moves) << 23;
    l.scale = reinterpret_cast<Floats<kFloats>>(scale);
    l.unit = reinterpret_cast<Floats<kFloats>>(unit);
    l.c = reinterpret_cast<Floats<kFloats>>(reinterpret_cast<Integers<kFloats>>(l.c) & ~l.left);
  }

  // The words of half a vector: totals rounded as the adder does.
  template <int kHalf>
  LS_INLINE void Round(const VectorOf<double, kHalf>& total, const Floats<kHalf>& unit, Words<kHalf>& words) const {
    using Doubles = VectorOf<double, kHalf>;
    using Bits = VectorOf<uint64_t, kHalf>;
    const Doubles scaled_total = total * __builtin_convertvector(unit, Doubles);
    if constexpr (Cells::kHalf) {
      // Adding 1.5 * 2^52 ulps rounds to nearest even at f16's ulp; the subtraction gives the rounded value back.
      using Powers = VectorOf<int64_t, kHalf>;
      const Powers power = reinterpret_cast<Powers>(scaled_total) & 0x7ff0000000000000,
                   least = Powers{} + (int64_t{1023 - 14} << 52);
      // Without a sign: the exponent of an infinity overflows.
      const Bits raised = reinterpret_cast<Bits>(power > least ? power : least) + (uint64_t{42} << 52);
      const Doubles big = reinterpret_cast<Doubles>(raised) * 1.5;
      FloatsToCells<kHalf>(__builtin_convertvector(scaled_total + big - big, Floats<kHalf>), words);
      words = (words & 0x7fff) == 0 ? Words<kHalf>{} : words;
      return;
    }
    const uint64_t keep_mask = ~((uint64_t{1} << (52 - o.adder.out)) - 1);
    const auto cut = reinterpret_cast<Doubles>(reinterpret_cast<Bits>(scaled_total) & keep_mask);
    words = reinterpret_cast<Words<kHalf>>(__builtin_convertvector(cut, Floats<kHalf>));
  }

  // The sums of one vector, given the integer sums of each chunk of K.
  template <int kFloats>
  LS_INLINE void Finish(const Lanes<kFloats>& l, const Integers<kFloats>* sums, size_t step, int chunks,
                        Words<kFloats>& words) const {
    constexpr int kHalf = kFloats / 2;
    const auto c = __builtin_convertvector(l.c * l.scale, Integers<kFloats>);
    for (int h = 0; h < 2; ++h) {
      const auto part = [&](const Integers<kFloats>& from, VectorOf<double, kHalf>& to) {
        Integers<kHalf> own;
        std::memcpy(&own, reinterpret_cast<const char*>(&from) + h * static_cast<int>(sizeof(own)), sizeof(own));
        to = __builtin_convertvector(own, VectorOf<double, kHalf>);
      };
      VectorOf<double, kHalf> total, more;
      part(c, total);
      for (int chunk = 0; chunk < chunks; ++chunk) {
        part(sums[static_cast<size_t>(chunk) * step], more);
        total += more;
      }
      Floats<kHalf> unit;
      std::memcpy(&unit, reinterpret_cast<const char*>(&l.unit) + h * static_cast<int>(sizeof(unit)), sizeof(unit));
      Words<kHalf> own;
      Round<kHalf>(total, unit, own);
      std::memcpy(reinterpret_cast<char*>(&words) + h * static_cast<int>(sizeof(own)), &own, sizeof(own));
    }
  }

  // The lanes that the vectors could not do.
  template <int kFloats>
  void SumLeft(int m, int n, const Lanes<kFloats>& l, Words<kFloats>& words) const {
    for (int j = 0; j < LanesAt<kFloats>(n, b.rows()); ++j) {
      if (l.left[j] != 0) words[j] = SumOne(a, m, b, n + j, o, l.old[j]);
    }
  }

  template <int kFloats, int kVectors, int kRows>
  LS_INLINE void Run(int m0, int n0) const {
    if (!regular.template Run<kFloats, kVectors, kRows>(m0, n0)) RunAny<kFloats, kVectors, kRows>(m0, n0);
  }

 private:
  template <int kFloats, int kVectors, int kRows>
  __attribute__((noinline)) void RunAny(int m0, int n0) const {
    const RowBlock<kRows> block(a, m0);
    const int k = block.K(a);
    VectorOf<int16_t, kFloats * kVectors> top[kRows];
    TopExponents<kFloats * kVectors, kRows>(block.exponents, b, n0, k, top);
    Lanes<kFloats> lanes[kRows][kVectors];
    LoadBlock<kFloats, kVectors, kRows>(m0, n0, lanes);
    Integers<kFloats> left{};
    Floats<kFloats> scales[kRows][kVectors];
    for (int r = 0; r < kRows; ++r) {
      const int m = m0 + std::min(r, block.count - 1);
      const int by_definition = ByDefinition(m) ? -1 : 0;
      for (int v = 0; v < kVectors; ++v) {
        Integers<kFloats> own;
        PartOf<kFloats>(top[r], v, own);
        Align<kFloats>(m, n0 + v * kFloats, own, by_definition, lanes[r][v]);
        left |= lanes[r][v].left;
        scales[r][v] = lanes[r][v].scale;
      }
    }
    Integers<kFloats> sums[OperandRows::kMaxK / kChunk][kRows][kVectors] = {};
    int chunks = 0;
    for (int first = 0; first < k; first += kChunk, ++chunks) {
      AddCutProducts<kFloats, kVectors, kRows>(block.values, b, n0, first, std::min(first + kChunk, k), scales,
                                               sums[chunks]);
    }
    const bool any = AnyBit<kFloats>(left);
    for (int r = 0; r < block.count; ++r) {
      for (int v = 0; v < kVectors; ++v) {
        const int n = n0 + v * kFloats;
        Words<kFloats> words{};
        Finish<kFloats>(lanes[r][v], &sums[0][r][v], kRows * kVectors, chunks, words);
        if (any) SumLeft<kFloats>(m0 + r, n, lanes[r][v], words);
        cells.template Store<kFloats>(m0, r, n, LanesAt<kFloats>(n, b.rows()), words);
      }
    }
  }

  template <int kFloats, int kVectors, int kRows>
  LS_INLINE void LoadBlock(int m0, int n0, Lanes<kFloats> (*lanes)[kVectors]) const {
    const int rows = std::min(kRows, a.rows() - m0);
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) {
        const int n = n0 + v * kFloats;
        lanes[r][v].old = Words<kFloats>{};
        if (!o.accumulate) continue;
        cells.template Load<kFloats>(m0, std::min(r, rows - 1), n, LanesAt<kFloats>(n, b.rows()), lanes[r][v].old);
      }
    }
  }
};

}  // namespace
}  // namespace laneshift::emulator
