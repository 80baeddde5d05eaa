// The loops of operand_vector.h, as templates over the floats of a vector.
//
// Included as fused_sum_loops.h is. Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "emulator/units/operand_rows.h"
#include "emulator/units/operand_vector.h"
#include "emulator/units/vector_targets.h"

namespace laneshift::emulator {
namespace {

LS_INLINE size_t BitsOfPacked(ElementType type) {
  if (type == ElementType::kTf32) return 32;
  if (type == ElementType::kBf16 || type == ElementType::kF16) return 16;
  return type == ElementType::kE2m1 ? 4 : 8;
}
LS_INLINE size_t BytesOfPacked(ElementType type, size_t count) { return count * BitsOfPacked(type) / 8; }

// Codes of kFloats elements of 4 bits, the first of two in the low half of a byte.
template <int kFloats, size_t... kIndex>
LS_INLINE void LoadNibbles(const uint8_t* bytes, VectorOf<uint8_t, kFloats>& codes, std::index_sequence<kIndex...>) {
  using Pairs = VectorOf<uint8_t, kFloats / 2>;
  Pairs pairs;
  std::memcpy(&pairs, bytes, sizeof(pairs));
  const Pairs first = pairs & 15, second = pairs >> 4;
  codes = __builtin_shufflevector(first, second, (kIndex / 2 + (kIndex % 2) * kFloats / 2)...);
}

// Floats of 8 and 4 bits. Subnormals are exact differences of normal numbers.
template <int kFloats>
LS_INLINE void WidenSmall(const PackedRows& from, const uint8_t* bytes, VectorOf<uint32_t, kFloats>& words) {
  using Words = VectorOf<uint32_t, kFloats>;
  VectorOf<uint8_t, kFloats> narrow;
  if (from.type == ElementType::kE2m1) {
    LoadNibbles<kFloats>(bytes, narrow, std::make_index_sequence<kFloats>());
  } else {
    std::memcpy(&narrow, bytes, sizeof(narrow));
  }
  const int sign = from.type == ElementType::kE2m1 ? 3 : 7;
  const int mantissa = from.type == ElementType::kE4m3 ? 3 : from.type == ElementType::kE5m2 ? 2 : 1;
  const uint32_t least = static_cast<uint32_t>(127 + from.least_exponent) << 23;  // of normal numbers
  const auto codes = __builtin_convertvector(narrow, Words);
  const Words code = codes & ((1u << sign) - 1), magnitude = code << (23 - mantissa);
  const auto subnormal = reinterpret_cast<Words>(reinterpret_cast<VectorOf<float, kFloats>>(magnitude + least) -
                                                 std::bit_cast<float>(least));
  words = magnitude < 1u << 23 ? subnormal : magnitude + (least - (1u << 23));
  words |= (codes >> sign) << 31;
  if (from.type == ElementType::kE2m1) return;
  if (from.type == ElementType::kE5m2) words = code == 0x7c ? words | 0x7f800000 : words;
  words = code > (from.type == ElementType::kE5m2 ? 0x7cu : 0x7eu) ? Words{} + 0x7fffffff : words;
}

// kFloats elements from `bytes` as the bits of their values.
template <int kFloats>
LS_INLINE void Widen(const PackedRows& from, const uint8_t* bytes, uint32_t flip, VectorOf<uint32_t, kFloats>& words) {
  using Words = VectorOf<uint32_t, kFloats>;
  using Halves = VectorOf<uint16_t, kFloats>;
  if (from.type == ElementType::kTf32) {
    std::memcpy(&words, bytes, sizeof(words));
    words &= 0xffffe000u;
  } else if (from.type == ElementType::kBf16 || from.type == ElementType::kF16) {
    Halves halves;
    std::memcpy(&halves, bytes, sizeof(halves));
    words = __builtin_convertvector(halves, Words);
    if (from.type == ElementType::kBf16) {
      words <<= 16;
    } else {
      // Subnormals become normal in the multiplication; infinities and NaNs get the greatest exponent.
      using Floats = VectorOf<float, kFloats>;
      const Words magnitude = (words & 0x7fff) << 13;
      Floats scaled;
      std::memcpy(&scaled, &magnitude, sizeof(scaled));
      scaled *= 0x1p112f;
      Words value;
      std::memcpy(&value, &scaled, sizeof(value));
      const Words special = reinterpret_cast<Words>(magnitude >= 0x0f800000u);
      words = (words & 0x8000) << 16 | value | (special & 0x7f800000u);
    }
  } else {
    WidenSmall<kFloats>(from, bytes, words);
  }
  words ^= flip;
}

// The exponents that the adder counts for the values.
template <int kFloats>
LS_INLINE void ExponentsOf(const VectorOf<uint32_t, kFloats>& words, int least, VectorOf<int32_t, kFloats>& exponents) {
  using Exponents = VectorOf<int32_t, kFloats>;
  const auto field = reinterpret_cast<Exponents>(words >> 23 & 0xff) - 127;
  const Exponents counted = field > least ? field : Exponents{} + least;
  exponents = (words & 0x7fffffff) != 0 ? counted : Exponents{} + OperandRows::kZeroExponent;
}

// The ranges of exponents that pass by, of kFloats elements at a time, one for each lane. Each exponent comes kCopies
// times in a row.
template <int kFloats, int kCopies>
struct LaneRanges {
  using Exponents = VectorOf<int16_t, kFloats * kCopies>;
  static constexpr int16_t kZero = OperandRows::kZeroExponent;
  Exponents greatest = Exponents{} + kZero, least = Exponents{} - kZero;

  LS_INLINE void Include(const Exponents& exponents) {
    greatest = greatest > exponents ? greatest : exponents;
    const Exponents counted = exponents != kZero ? exponents : Exponents{} - kZero;
    least = least < counted ? least : counted;
  }
  // Of all lanes.
  LS_INLINE OperandRows::Range Join() const {
    constexpr auto kPairs = std::make_index_sequence<2 * kFloats>();
    // Alternating: the greatest, and the complement of the least. Of both the greatest is wanted.
    auto both = Pairs(greatest, ~least, kPairs);
    Fold<kFloats>(both, kPairs);
    return {both[0], static_cast<int16_t>(~both[1])};
  }

 private:
  template <size_t... kIndex>
  static LS_INLINE VectorOf<int16_t, 2 * kFloats> Pairs(const Exponents& first, const Exponents& second,
                                                        std::index_sequence<kIndex...>) {
    constexpr auto kFrom = [](size_t i) { return i / 2 * kCopies + i % 2 * (kCopies * kFloats + kCopies - 1); };
    return __builtin_shufflevector(first, second, kFrom(kIndex)...);
  }
  // The greatest of each half to all its elements.
  template <int kDistance, typename Both, size_t... kIndex>
  static LS_INLINE void Fold(Both& both, std::index_sequence<kIndex...> indices) {
    const Both other = __builtin_shufflevector(both, both, (kIndex ^ kDistance)...);
    both = both > other ? both : other;
    if constexpr (kDistance > 2) Fold<kDistance / 2>(both, indices);
  }
};

template <int kFloats, bool kExponents>
LS_INLINE OperandRows::Range Rows(const PackedRows& rows, float* values, int16_t* exponents,
                                  OperandRows::Range* ranges) {
  const PackedRows from = rows;  // apart from what is written
  if constexpr (kFloats > 4) {
    if (from.k % kFloats != 0) return Rows<kFloats / 2, kExponents>(from, values, exponents, ranges);
  }
  using Exponents = VectorOf<int32_t, kFloats>;
  const size_t step = BytesOfPacked(from.type, kFloats);
  const uint32_t flip = from.negate ? 0x80000000u : 0;
  OperandRows::Range all;
  LaneRanges<kFloats, 2> of_rows;
  const uint8_t* bytes = from.bytes;
  // One loop over all vectors: a row often is a single one.
  for (int row = 0, i = 0; row < from.rows; values += kFloats, bytes += step) {
    VectorOf<uint32_t, kFloats> words;
    Widen<kFloats>(from, bytes, flip, words);
    std::memcpy(values, &words, sizeof(words));
    if constexpr (kExponents) {
      Exponents own;
      ExponentsOf<kFloats>(words, from.least_exponent, own);
      const Exponents pairs = (own & 0xffff) | own << 16;
      of_rows.Include(reinterpret_cast<VectorOf<int16_t, 2 * kFloats>>(pairs));
      std::memcpy(exponents, &pairs, sizeof(pairs));
      exponents += 2 * kFloats;
    }
    i += kFloats;
    if (i < from.k) continue;
    i = 0;
    bytes += from.row_bytes - BytesOfPacked(from.type, static_cast<size_t>(from.k));
    ++row;
    if (kExponents && (row % OperandRows::kRangeRows == 0 || row == from.rows)) {
      *ranges = of_rows.Join();
      all.Include(*ranges++);
      of_rows = {};
    }
  }
  return all;
}

// Exchanges the upper `kHalf` of each 2 * kHalf elements of `a` with the lower ones of `b`.
template <int kFloats, int kHalf, size_t... kIndex>
LS_INLINE void Exchange(VectorOf<float, kFloats>& a, VectorOf<float, kFloats>& b, std::index_sequence<kIndex...>) {
  constexpr auto kLow = [](int j) { return (j & kHalf) != 0 ? kFloats + j - kHalf : j; };
  constexpr auto kHigh = [](int j) { return (j & kHalf) != 0 ? kFloats + j : j + kHalf; };
  const VectorOf<float, kFloats> low = __builtin_shufflevector(a, b, kLow(kIndex)...);
  b = __builtin_shufflevector(a, b, kHigh(kIndex)...);
  a = low;
}

template <int kFloats, int kHalf>
LS_INLINE void ExchangeAll(VectorOf<float, kFloats> (&block)[kFloats]) {
#pragma GCC unroll 16
  for (int i = 0; i < kFloats; ++i) {
    if ((i & kHalf) == 0) {
      Exchange<kFloats, kHalf>(block[i], block[i + kHalf], std::make_index_sequence<kFloats>());
    }
  }
  if constexpr (kHalf > 1) ExchangeAll<kFloats, kHalf / 2>(block);
}

// kFloats rows at a time, transposed in squares.
template <int kFloats, bool kExponents>
LS_INLINE OperandRows::Range Columns(const PackedRows& rows, size_t pitch, float* values, int16_t* exponents) {
  const PackedRows from = rows;  // apart from what is written
  if constexpr (kFloats > 4) {
    if (from.k % kFloats != 0) return Columns<kFloats / 2, kExponents>(from, pitch, values, exponents);
  }
  using Vector = VectorOf<float, kFloats>;
  using Words = VectorOf<uint32_t, kFloats>;
  using Exponents = VectorOf<int32_t, kFloats>;
  const uint32_t flip = from.negate ? 0x80000000u : 0;
  LaneRanges<kFloats, 1> of_all;
  for (int first = 0; first < from.rows; first += kFloats) {
    const int count = std::min(kFloats, from.rows - first);
    const uint8_t* bytes = from.bytes + static_cast<size_t>(first) * from.row_bytes;
    for (int k = 0; k < from.k; k += kFloats) {
      const size_t of_k = BytesOfPacked(from.type, static_cast<size_t>(k));
      Words square[kFloats] = {};
      for (int r = 0; r < count; ++r) {
        Widen<kFloats>(from, bytes + static_cast<size_t>(r) * from.row_bytes + of_k, flip, square[r]);
      }
      Vector block[kFloats];
      std::memcpy(block, square, sizeof(block));
      ExchangeAll<kFloats, kFloats / 2>(block);
      for (int i = 0; i < kFloats; ++i) {
        const size_t at = static_cast<size_t>(k + i) * pitch + static_cast<size_t>(first);
        std::memcpy(values + at, &block[i], sizeof(Vector));
        if constexpr (kExponents) {
          Exponents own;
          ExponentsOf<kFloats>(reinterpret_cast<Words>(block[i]), from.least_exponent, own);
          const auto narrow = __builtin_convertvector(own, VectorOf<int16_t, kFloats>);
          of_all.Include(narrow);
          std::memcpy(exponents + at, &narrow, sizeof(narrow));
        }
      }
    }
  }
  return of_all.Join();
}

template <int kFloats>
constexpr VectorLoads LoadsOf(const char* name) {
  return {[](const PackedRows& from, float* values, int16_t* exponents, OperandRows::Range* ranges) {
            return exponents != nullptr ? Rows<kFloats, true>(from, values, exponents, ranges)
                                        : Rows<kFloats, false>(from, values, exponents, ranges);
          },
          [](const PackedRows& from, size_t pitch, float* values, int16_t* exponents) {
            return exponents != nullptr ? Columns<kFloats, true>(from, pitch, values, exponents)
                                        : Columns<kFloats, false>(from, pitch, values, exponents);
          },
          name};
}

}  // namespace
}  // namespace laneshift::emulator
