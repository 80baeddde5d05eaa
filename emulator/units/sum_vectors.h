// What the loops of the tensor core's arithmetic share. Included as fused_sum_loops.h is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "emulator/units/operand_rows.h"
#include "emulator/units/vector_targets.h"

namespace laneshift::emulator {
namespace {

LS_INLINE size_t Offset(int row, size_t pitch) { return static_cast<size_t>(row) * pitch; }

template <int kFloats>
using Floats = VectorOf<float, kFloats>;
template <int kFloats>
using Integers = VectorOf<int32_t, kFloats>;
template <int kFloats>
using Words = VectorOf<uint32_t, kFloats>;

// One by one: a copy of all of them would go through memory.
template <int kVectors, typename Vector, typename Element>
LS_INLINE void LoadVectors(const Element* from, Vector* vectors) {
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    std::memcpy(&vectors[v], from + static_cast<size_t>(v) * (sizeof(Vector) / sizeof(Element)), sizeof(Vector));
  }
}

// The lanes of a vector of columns that begins at column n and of which `all` are columns.
template <int kFloats>
LS_INLINE int LanesAt(int n, int all) {
  return std::clamp(all - n, 0, kFloats);
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

constexpr int kChunk = 16;  // products that an int32 can sum
constexpr int kTopLimit = -100, kTopGreatest = 100;

// Whether any bit of any lane is set.
template <int kFloats>
LS_INLINE bool AnyBit(const Integers<kFloats>& lanes) {
  uint64_t parts[kFloats / 2], any = 0;
  std::memcpy(parts, &lanes, sizeof(parts));
  for (const uint64_t part : parts) any |= part;
  return any != 0;
}

// Numbers kFloats * v and following.
template <int kFloats, typename Numbers>
LS_INLINE void PartOf(const Numbers& numbers, int v, Integers<kFloats>& part) {
  VectorOf<int16_t, kFloats> own;
  std::memcpy(&own, reinterpret_cast<const char*>(&numbers) + v * static_cast<int>(sizeof(own)), sizeof(own));
  part = __builtin_convertvector(own, Integers<kFloats>);
}

// kRows rows of A from row m0 on, which is a multiple of that; the last one again where there are fewer.
template <int kRows>
struct RowBlock {
  const float* values[kRows];
  const int16_t* exponents[kRows];
  OperandRows::Range range;
  int count;

  LS_INLINE RowBlock(const OperandRows& a, int m0) : count(std::min(kRows, a.rows() - m0)) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const int m = m0 + std::min(r, count - 1);
      values[r] = a.values() + a.At(m, 0);
      exponents[r] = a.exponents() + 2 * a.At(m, 0);
      if (r % OperandRows::kRangeRows == 0) range.Include(a.range(m));
    }
  }
  // Rows of zeros leave C and its rounding; without C they leave zeros.
  LS_INLINE int K(const OperandRows& a) const { return range.greatest == OperandRows::kZeroExponent ? 0 : a.k(); }
};

// The greatest exponents of the products of `kRows` rows with kColumns columns from n0 on.
template <int kColumns, int kRows>
LS_INLINE void TopExponents(const int16_t* const* rows, const OperandRows& b, int n0, int k,
                            VectorOf<int16_t, kColumns>* top) {
  using Exponents = VectorOf<int16_t, kColumns>;
  const int16_t* columns = b.exponents() + n0;
  Exponents own[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) own[r] = Exponents{} + OperandRows::kZeroExponent;
  for (int i = 0; i < k; ++i, columns += b.pitch()) {
    Exponents y;
    std::memcpy(&y, columns, sizeof(y));
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      int32_t pair;
      std::memcpy(&pair, rows[r] + 2 * i, sizeof(pair));
      const Exponents sum = reinterpret_cast<Exponents>(Integers<kColumns / 2>{} + pair) + y;
      own[r] = own[r] > sum ? own[r] : sum;
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) top[r] = own[r];
}

// Adds the products of elements `first` to `last` of rows of A and columns of B from n0 on.
template <int kFloats, int kVectors, int kRows>
LS_INLINE void AddProducts(const float* const* rows, const OperandRows& b, int n0, int first, int last,
                           Floats<kFloats> (*sum)[kVectors]) {
  // The compiler keeps these in registers, if every index is known.
  Floats<kFloats> own[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) own[r][v] = sum[r][v];
  }
  const float* columns = b.values() + n0 + Offset(first, static_cast<size_t>(b.pitch()));
  for (int i = first; i < last; ++i, columns += b.pitch()) {
    Floats<kFloats> y[kVectors];
    LoadVectors<kVectors>(columns, y);
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

// Adds the products of elements `first` to `last`, each cut to a multiple of 1 / scale, in units of that.
template <int kFloats, int kVectors, int kRows>
LS_INLINE void AddCutProducts(const float* const* rows, const OperandRows& b, int n0, int first, int last,
                              const Floats<kFloats> (*scales)[kVectors], Integers<kFloats> (*sum)[kVectors]) {
  // Without a sign: lanes that are left to SumOne may hold infinities, whose sums overflow and are looked at by
  // nobody.
  Words<kFloats> own[kRows][kVectors];
  Floats<kFloats> scale[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      scale[r][v] = scales[r][v];
      own[r][v] = reinterpret_cast<Words<kFloats>>(sum[r][v]);
    }
  }
  const float* columns = b.values() + n0 + Offset(first, static_cast<size_t>(b.pitch()));
  for (int i = first; i < last; ++i, columns += b.pitch()) {
    Floats<kFloats> y[kVectors];
    LoadVectors<kVectors>(columns, y);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        own[r][v] += reinterpret_cast<Words<kFloats>>(
            __builtin_convertvector(rows[r][i] * y[v] * scale[r][v], Integers<kFloats>));
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[r][v] = reinterpret_cast<Integers<kFloats>>(own[r][v]);
  }
}

// The scale factors of rows and columns (UE8M0, one factor for all of K): the whole sum is scaled by 2^(sa + sb), so
// the accumulator is scaled the other way and the result back. Beyond +-kScaleReach the floats could overflow.
constexpr int kScaleReach = 24;

LS_INLINE bool HasOneScale(const OperandRows& a) { return a.factors() == 1 && a.scale_type() == ScaleType::kUe8m0; }

// How far the scale factors scale the sums of a row. `top`: the greatest exponents of the products; where there are
// none, as in padding, whose factors are often 2^-127, only a NaN counts.
// REQUIRES: HasOneScale.
template <int kFloats>
LS_INLINE void Moves(const OperandRows& a, const OperandRows& b, int m, int n, const Integers<kFloats>& top,
                     Integers<kFloats>& moves, Integers<kFloats>& left) {
  VectorOf<uint8_t, kFloats> bytes;
  std::memcpy(&bytes, b.scales() + n, sizeof(bytes));
  const auto y = __builtin_convertvector(bytes, Integers<kFloats>);
  const int x = a.scale(m, 0);
  moves = (y + (x - 2 * 127)) & (top > int{OperandRows::kZeroExponent} / 2);
  const Integers<kFloats> out = (y == 255) | (x == 255 ? -1 : 0) | (moves > kScaleReach) | (moves < -kScaleReach);
  left |= out;
  moves &= ~out;
}

}  // namespace
}  // namespace laneshift::emulator
