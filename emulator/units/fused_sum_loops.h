// The loops of fused_sum_vector.h, as templates over the floats of a vector.
//
// Why floats can do the adder's integer work exactly. With top the largest exponent, a product p of two elements (at
// most 11 significant bits each) is exact in f32, p * 2^(keep - top) only changes its exponent, and the conversion to
// int32 drops exactly the bits that the adder drops, toward zero. Sixteen such integers, each below 2^27, fit in 32
// bits. What could leave the range of normal floats (sums of exponents above 125, tops below -100) and all infinities
// and NaNs go to SumOne.
//
// A block of rows and columns of D at a time, as many as the registers of the processor hold: two vectors of columns
// while there are enough of them, one at the end.
//
// Included by one source file of each vector instruction set, between its pragmas (vector_targets.h), after everything
// that it includes itself. Thread-safety: pure but for the tile.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include "emulator/units/cell_vectors.h"
#include "emulator/units/fused_sum_vector.h"
#include "emulator/units/group_sum_loops.h"
#include "emulator/units/sum_vectors.h"
#include "emulator/units/vector_targets.h"

namespace laneshift::emulator {
namespace {

constexpr int kChunk = 16;  // products that an int32 can sum
constexpr int kTopLimit = -100, kSumLimit = 125;

// Calls block(m0, n0) with the number of vectors for blocks of `kSums` vectors that cover D. A vector of 16 floats is
// replaced by one of 8 where no more columns are left.
template <int kFloats, int kSums, typename Block>
LS_INLINE void ForEachBlock(int rows, int columns, const Block& block) {
  for (int n0 = 0; n0 < columns;) {
    const int left = columns - n0;
    if (kFloats > 4 && left <= 8) {
      for (int m0 = 0; m0 < rows; m0 += kSums) block.template Run<8, 1, kSums>(m0, n0);
      n0 += 8;
    } else if (kFloats > 4 && left <= kFloats) {
      for (int m0 = 0; m0 < rows; m0 += kSums) block.template Run<kFloats, 1, kSums>(m0, n0);
      n0 += kFloats;
    } else {
      for (int m0 = 0; m0 < rows; m0 += kSums / 2) block.template Run<kFloats, 2, kSums / 2>(m0, n0);
      n0 += 2 * kFloats;
    }
  }
}

// The values of f16 cells. NaN payloads are not kept.
template <int kFloats>
LS_INLINE void CellsToFloats(const Words<kFloats>& words, Floats<kFloats>& values) {
  // Subnormals become normal in the multiplication; infinities and NaNs get the greatest exponent.
  const Words<kFloats> magnitude = (words & 0x7fff) << 13;
  const auto scaled = reinterpret_cast<Words<kFloats>>(reinterpret_cast<Floats<kFloats>>(magnitude) * 0x1p112f);
  const auto special = reinterpret_cast<Words<kFloats>>(magnitude >= 0x0f800000u) & 0x7f800000u;
  values = reinterpret_cast<Floats<kFloats>>((words & 0x8000) << 16 | scaled | special);
}
// To nearest even, as base::FloatToF16.
template <int kFloats>
LS_INLINE void FloatsToCells(const Floats<kFloats>& values, Words<kFloats>& words) {
  const auto word = reinterpret_cast<Words<kFloats>>(values);
  const Words<kFloats> magnitude = word & 0x7fffffff, sign = word >> 16 & 0x8000, none = Words<kFloats>{};
  const Words<kFloats> normal = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
  // An addition of 2^-1 leaves the rounded bits at the low end.
  const Words<kFloats> subnormal =
      reinterpret_cast<Words<kFloats>>(reinterpret_cast<Floats<kFloats>>(magnitude) + 0.5f) - 0x3f000000;
  words = magnitude < 0x38800000u ? subnormal : normal;
  words = (magnitude >= 0x47800000u ? none + 0x7c00u : words) | sign;
  words = magnitude > 0x7f800000u ? none + 0x7fffu : words;
}

// The scale factors of rows and columns (UE8M0, one factor for all of K): the whole sum is scaled by 2^(sa + sb), so
// the accumulator is scaled the other way and the result back. Beyond +-kScaleReach the floats could overflow.
constexpr int kScaleReach = 24;

// Shared by the vectors of the exact path.
template <typename Cells>
struct ExactSums {
  const OperandRows &a, &b;
  const SumOptions& o;
  const Cells cells;
  const bool scaled;

  ExactSums(const OperandRows& rows_a, const OperandRows& rows_b, const SumOptions& options,
            const AccumulatorTile& tile)
      : a(rows_a),
        b(rows_b),
        o(options),
        cells(tile),
        scaled(a.factors() == 1 && a.scale_type() == ScaleType::kUe8m0) {}

  bool ByDefinition(int m) const {
    return (a.factors() != 0 && !scaled) || a.greatest(m) == OperandRows::kSpecialExponent ||
           b.greatest() == OperandRows::kSpecialExponent || a.greatest(m) + b.greatest() > kSumLimit;
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

  // How far the scale factors scale the sums of a row. `top`: the greatest exponents of the products; where there are
  // none, as in padding, whose factors are often 2^-127, only a NaN counts.
  template <int kFloats>
  LS_INLINE void LoadMoves(int m, int n, const Integers<kFloats>& top, Integers<kFloats>& moves,
                           Integers<kFloats>& left) const {
    for (int j = 0; j < kFloats; ++j) {
      const int x = a.scale(m, 0), y = n + j < b.rows() ? b.scale(n + j, 0) : 127;
      const int exponent = top[j] > int{OperandRows::kZeroExponent} / 2 ? x + y - 2 * 127 : 0;
      const bool out = x == 255 || y == 255 || exponent > kScaleReach || exponent < -kScaleReach;
      left[j] |= out ? -1 : 0;
      moves[j] = out ? 0 : exponent;
    }
  }

  // `top`: the greatest exponents of the products.
  template <int kFloats>
  LS_INLINE void Align(int m, int n, Integers<kFloats> top, int by_definition, Lanes<kFloats>& l) const {
    Integers<kFloats> exponent, moves{};
    DecodeAccumulator<kFloats>(l, exponent);
    int limit = kTopLimit;
    if (scaled) {
      LoadMoves<kFloats>(m, n, top, moves, l.left);
      l.left |= exponent > 100;
      const Words<kFloats> down = reinterpret_cast<Words<kFloats>>(127 - moves) << 23;
      l.c *= reinterpret_cast<Floats<kFloats>>(down);
      exponent -= moves;
      limit += kScaleReach;
    }
    top = top > exponent ? top : exponent;
    const Integers<kFloats> something = top > int{OperandRows::kZeroExponent} / 2;
    top = top > o.adder.floor ? top : Integers<kFloats>{} + o.adder.floor;
    l.left |= something & (top < limit);
    l.left |= by_definition;
    top = top > limit ? top : Integers<kFloats>{} + limit;
    // A lane that is left to SumOne sums zeros: its products could outgrow the integers.
    const Integers<kFloats> scale = (127 + o.adder.keep - top) << 23 & ~l.left;
    const Integers<kFloats> unit = (127 - o.adder.keep + top + moves) << 23;
    l.scale = reinterpret_cast<Floats<kFloats>>(scale);
    l.unit = reinterpret_cast<Floats<kFloats>>(unit);
    l.c = reinterpret_cast<Floats<kFloats>>(reinterpret_cast<Integers<kFloats>>(l.c) & ~l.left);
  }

  // The greatest exponents of the products of `kRows` rows with kColumns columns.
  template <int kColumns, int kRows>
  LS_INLINE void TopExponents(const int16_t* const* rows, const int16_t* columns, int k,
                              VectorOf<int16_t, kColumns>* top) const {
    using Exponents = VectorOf<int16_t, kColumns>;
    for (int r = 0; r < kRows; ++r) top[r] = Exponents{} + OperandRows::kZeroExponent;
    for (int i = 0; i < k; ++i, columns += b.pitch()) {
      Exponents y;
      std::memcpy(&y, columns, sizeof(y));
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        int32_t pair;
        std::memcpy(&pair, rows[r] + 2 * i, sizeof(pair));
        const Exponents sum = reinterpret_cast<Exponents>(Integers<kColumns / 2>{} + pair) + y;
        top[r] = top[r] > sum ? top[r] : sum;
      }
    }
  }

  // The cut products of elements `first` to `last`, in units of 1 / scale.
  template <int kFloats, int kVectors, int kRows>
  LS_INLINE void SumProducts(const float* const* rows, const float* columns, int first, int last,
                             const Lanes<kFloats> (*lanes)[kVectors], Integers<kFloats> (*sum)[kVectors]) const {
    // Without a sign: lanes that are left to SumOne may hold infinities, whose sums overflow and are looked at by
    // nobody.
    Words<kFloats> own[kRows][kVectors] = {};
    Floats<kFloats> scale[kRows][kVectors];
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) scale[r][v] = lanes[r][v].scale;
    }
    columns += Offset(first, static_cast<size_t>(b.pitch()));
    for (int i = first; i < last; ++i, columns += b.pitch()) {
      Floats<kFloats> y[kVectors];
      std::memcpy(y, columns, sizeof(y));
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          own[r][v] += reinterpret_cast<Words<kFloats>>(
              __builtin_convertvector(rows[r][i] * y[v] * scale[r][v], Integers<kFloats>));
        }
      }
    }
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) sum[r][v] = reinterpret_cast<Integers<kFloats>>(own[r][v]);
    }
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
    constexpr int kColumns = kFloats * kVectors;
    const int rows = std::min(kRows, a.rows() - m0);
    const float* values[kRows];
    const int16_t* exponents[kRows];
    int greatest = OperandRows::kZeroExponent;
    for (int r = 0; r < kRows; ++r) {
      const int m = m0 + std::min(r, rows - 1);
      values[r] = a.values() + a.At(m, 0);
      exponents[r] = a.exponents() + 2 * a.At(m, 0);
      greatest = std::max(greatest, a.greatest(m));
      cells.Prefetch(std::min(m + kRows, a.rows() - 1), n0);
      if constexpr (kColumns > 16) cells.Prefetch(std::min(m + kRows, a.rows() - 1), n0 + 16);
    }
    // Rows of zeros leave C and its rounding; without C they leave zeros.
    const int k = greatest == OperandRows::kZeroExponent ? 0 : a.k();
    VectorOf<int16_t, kColumns> top[kRows];
    TopExponents<kColumns, kRows>(exponents, b.exponents() + n0, k, top);
    Lanes<kFloats> lanes[kRows][kVectors];
    LoadBlock<kFloats, kVectors, kRows>(m0, n0, lanes);
    Integers<kFloats> left{};
    for (int r = 0; r < kRows; ++r) {
      const int m = m0 + std::min(r, rows - 1);
      const int by_definition = ByDefinition(m) ? -1 : 0;
      for (int v = 0; v < kVectors; ++v) {
        VectorOf<int16_t, kFloats> own;
        std::memcpy(&own, reinterpret_cast<const char*>(&top[r]) + v * static_cast<int>(sizeof(own)), sizeof(own));
        Align<kFloats>(m, n0 + v * kFloats, __builtin_convertvector(own, Integers<kFloats>), by_definition,
                       lanes[r][v]);
        left |= lanes[r][v].left;
      }
    }
    Integers<kFloats> sums[OperandRows::kMaxK / kChunk][kRows][kVectors];
    int chunks = 0;
    for (int first = 0; first < k; first += kChunk, ++chunks) {
      SumProducts<kFloats, kVectors, kRows>(values, b.values() + n0, first, std::min(first + kChunk, k), lanes,
                                            sums[chunks]);
    }
    uint64_t parts[kFloats / 2], any = 0;
    std::memcpy(parts, &left, sizeof(parts));
    for (const uint64_t part : parts) any |= part;
    for (int r = 0; r < rows; ++r) {
      for (int v = 0; v < kVectors; ++v) {
        const int n = n0 + v * kFloats;
        Words<kFloats> words{};
        Finish<kFloats>(lanes[r][v], &sums[0][r][v], kRows * kVectors, chunks, words);
        if (any != 0) SumLeft<kFloats>(m0 + r, n, lanes[r][v], words);
        cells.template Store<kFloats>(m0, r, n, LanesAt<kFloats>(n, b.rows()), words);
      }
    }
  }

 private:
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

// Plain f32: a few rows of A at a time, so that each load of B feeds as many chains.
template <typename Cells>
struct PlainSums {
  const OperandRows &a, &b;
  const SumOptions& o;
  Cells cells;

  PlainSums(const OperandRows& rows_a, const OperandRows& rows_b, const SumOptions& options,
            const AccumulatorTile& tile)
      : a(rows_a), b(rows_b), o(options), cells(tile) {}

  template <int kFloats>
  LS_INLINE void Load(int m0, int r, int n, int lanes, Floats<kFloats>& sum) const {
    Words<kFloats> words;
    cells.template Load<kFloats>(m0, r, n, lanes, words);
    if constexpr (Cells::kHalf) {
      CellsToFloats<kFloats>(words, sum);
    } else {
      std::memcpy(&sum, &words, sizeof(sum));
    }
  }
  template <int kFloats>
  LS_INLINE void Store(int m0, int r, int n, int lanes, const Floats<kFloats>& sum) const {
    Words<kFloats> words;
    if constexpr (Cells::kHalf) {
      FloatsToCells<kFloats>(sum, words);
    } else {
      std::memcpy(&words, &sum, sizeof(words));
    }
    cells.template Store<kFloats>(m0, r, n, lanes, words);
  }

  template <int kFloats, int kVectors, int kRows>
  LS_INLINE void AddProducts(const float* const* rows, const float* columns, Floats<kFloats> (*sum)[kVectors]) const {
    // The compiler keeps these in registers, if every index is known.
    Floats<kFloats> own[kRows][kVectors];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) own[r][v] = sum[r][v];
    }
    for (int i = 0; i < a.k(); ++i, columns += b.pitch()) {
      Floats<kFloats> y[kVectors];
      std::memcpy(y, columns, sizeof(y));
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) own[r][v] += rows[r][i] * y[v];
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[r][v] = own[r][v];
    }
  }

  // A block that lies in D as a whole goes without a question for each row.
  template <int kFloats, int kVectors, int kRows>
  LS_INLINE void LoadBlock(int m0, int n0, Floats<kFloats> (*sum)[kVectors]) const {
    const int rows = std::min(kRows, a.rows() - m0);
    if (o.accumulate && rows == kRows && n0 + kVectors * kFloats <= b.rows()) {
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) Load<kFloats>(m0, r, n0 + v * kFloats, kFloats, sum[r][v]);
      }
    } else {
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVectors; ++v) {
          const int n = n0 + v * kFloats;
          sum[r][v] = Floats<kFloats>{};
          if (o.accumulate) {
            Load<kFloats>(m0, std::min(r, rows - 1), n, LanesAt<kFloats>(n, b.rows()), sum[r][v]);
          }
        }
      }
    }
    if (o.scale_d == 0) return;
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v)
        sum[r][v] *= std::bit_cast<float>(static_cast<uint32_t>(127 - o.scale_d) << 23);
    }
  }
  template <int kFloats, int kVectors, int kRows>
  LS_INLINE void StoreBlock(int m0, int n0, const Floats<kFloats> (*sum)[kVectors]) const {
    const int rows = std::min(kRows, a.rows() - m0);
    if (rows == kRows && n0 + kVectors * kFloats <= b.rows()) {
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) Store<kFloats>(m0, r, n0 + v * kFloats, kFloats, sum[r][v]);
      }
      return;
    }
    for (int r = 0; r < rows; ++r) {
      for (int v = 0; v < kVectors; ++v) {
        const int n = n0 + v * kFloats;
        Store<kFloats>(m0, r, n, LanesAt<kFloats>(n, b.rows()), sum[r][v]);
      }
    }
  }

  template <int kFloats, int kVectors, int kRows>
  LS_INLINE void Run(int m0, int n0) const {
    const int last = a.rows() - 1;
    const float* values[kRows];
    for (int r = 0; r < kRows; ++r) {
      values[r] = a.values() + a.At(std::min(m0 + r, last), 0);
      cells.Prefetch(std::min(m0 + r + kRows, last), n0);
      if constexpr (kFloats * kVectors > 16) cells.Prefetch(std::min(m0 + r + kRows, last), n0 + 16);
    }
    Floats<kFloats> sum[kRows][kVectors];
    LoadBlock<kFloats, kVectors, kRows>(m0, n0, sum);
    AddProducts<kFloats, kVectors, kRows>(values, b.values() + n0, sum);
    StoreBlock<kFloats, kVectors, kRows>(m0, n0, sum);
  }
};

template <typename Cells>
struct IntegerSums {
  const OperandRows &a, &b;
  const SumOptions& o;
  Cells cells;

  IntegerSums(const OperandRows& rows_a, const OperandRows& rows_b, const SumOptions& options,
              const AccumulatorTile& tile)
      : a(rows_a), b(rows_b), o(options), cells(tile) {}

  template <int kFloats, int kVectors, int kRows>
  LS_INLINE void Run(int m0, int n0) const {
    const int rows = std::min(kRows, a.rows() - m0);
    const int32_t* values[kRows];
    Integers<kFloats> sum[kRows][kVectors] = {};
    for (int r = 0; r < kRows; ++r) values[r] = a.integers() + a.At(m0 + std::min(r, rows - 1), 0);
    const int32_t* columns = b.integers() + n0;
    for (int i = 0; i < a.k(); ++i, columns += b.pitch()) {
      Integers<kFloats> y[kVectors];
      std::memcpy(y, columns, sizeof(y));
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sum[r][v] += values[r][i] * y[v];
      }
    }
    for (int r = 0; r < rows; ++r) {
      for (int v = 0; v < kVectors; ++v) Store<kFloats>(m0, r, n0 + v * kFloats, sum[r][v]);
    }
  }

 private:
  template <int kFloats>
  LS_INLINE void Store(int m0, int r, int n, const Integers<kFloats>& sum) const {
    const int lanes = LanesAt<kFloats>(n, b.rows());
    Words<kFloats> words{};
    if (o.accumulate) cells.template Load<kFloats>(m0, r, n, lanes, words);
    if (o.saturate) {
      for (int j = 0; j < kFloats; ++j) {
        const int64_t total = int64_t{sum[j]} + static_cast<int32_t>(words[j]);
        words[j] = static_cast<uint32_t>(std::clamp<int64_t>(total, INT32_MIN, INT32_MAX));
      }
    } else {
      words += reinterpret_cast<Words<kFloats>>(sum);
    }
    cells.template Store<kFloats>(m0, r, n, lanes, words);
  }
};

// D in rows of cells, or in registers.
template <template <typename> typename Sums, int kFloats, int kSums>
LS_INLINE void OnTile(const OperandRows& a, const OperandRows& b, const SumOptions& o, const AccumulatorTile& d) {
  const bool half = o.d == AccumulatorType::kF16;
  const auto run = [&](const auto& sums) { ForEachBlock<kFloats, kSums>(a.rows(), b.rows(), sums); };
  if (d.registers == nullptr)
    return half ? run(Sums<RowCells<true>>(a, b, o, d)) : run(Sums<RowCells<false>>(a, b, o, d));
  half ? run(Sums<FragmentCells<true>>(a, b, o, d)) : run(Sums<FragmentCells<false>>(a, b, o, d));
}

// kSums: vectors of sums at a time; of plain sums and integers there is room for twice as many.
template <int kFloats, int kSums>
constexpr VectorSums SumsOf(const char* name) {
  using A = const OperandRows&;
  using O = const SumOptions&;
  return {[](A a, A b, O o, AccumulatorTile d) { OnTile<ExactSums, kFloats, kSums>(a, b, o, d); },
          [](A a, A b, O o, AccumulatorTile d) { OnTile<PlainSums, kFloats, 2 * kSums>(a, b, o, d); },
          [](A a, A b, O o, AccumulatorTile d) { OnTile<IntegerSums, kFloats, 2 * kSums>(a, b, o, d); },
          kGroupSumsOf<kFloats>, name};
}

}  // namespace
}  // namespace laneshift::emulator
