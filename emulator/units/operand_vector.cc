#include "emulator/units/operand_vector.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "emulator/units/vector_targets.h"

namespace laneshift::emulator {
namespace {

template <typename Word, int kWords>
using VectorOf [[gnu::vector_size(kWords * sizeof(Word))]] = Word;

// kFloats elements from `bytes` as the bits of their values.
template <int kFloats>
LS_INLINE void Widen(const PackedRows& from, const uint8_t* bytes, uint32_t flip, float* to) {
  using Words = VectorOf<uint32_t, kFloats>;
  using Halves = VectorOf<uint16_t, kFloats>;
  Words words;
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
    for (int i = 0; i < kFloats; ++i) words[i] = std::bit_cast<uint32_t>(from.table[bytes[i]]);
  }
  words ^= flip;
  std::memcpy(to, &words, sizeof(words));
}

LS_INLINE size_t BytesOf(ElementType type) {
  return type == ElementType::kTf32 ? 4 : type == ElementType::kBf16 || type == ElementType::kF16 ? 2 : 1;
}

template <int kFloats>
LS_INLINE void Rows(const PackedRows& from, float* to) {
  if constexpr (kFloats > 4) {
    if (from.k % kFloats != 0) return Rows<kFloats / 2>(from, to);
  }
  const size_t step = kFloats * BytesOf(from.type);
  const uint32_t flip = from.negate ? 0x80000000u : 0;
  for (int row = 0; row < from.rows; ++row) {
    const uint8_t* bytes = from.bytes + static_cast<size_t>(row) * from.row_bytes;
    for (int i = 0; i < from.k; i += kFloats, bytes += step, to += kFloats) Widen<kFloats>(from, bytes, flip, to);
  }
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
template <int kFloats>
LS_INLINE void Columns(const PackedRows& from, size_t pitch, float* to) {
  if constexpr (kFloats > 4) {
    if (from.k % kFloats != 0) return Columns<kFloats / 2>(from, pitch, to);
  }
  using Vector = VectorOf<float, kFloats>;
  const size_t step = BytesOf(from.type);
  const uint32_t flip = from.negate ? 0x80000000u : 0;
  for (int first = 0; first < from.rows; first += kFloats) {
    const int count = std::min(kFloats, from.rows - first);
    const uint8_t* bytes = from.bytes + static_cast<size_t>(first) * from.row_bytes;
    for (int k = 0; k < from.k; k += kFloats) {
      float square[kFloats][kFloats] = {};
      for (int r = 0; r < count; ++r) {
        Widen<kFloats>(from, bytes + static_cast<size_t>(r) * from.row_bytes + static_cast<size_t>(k) * step, flip,
                       square[r]);
      }
      Vector block[kFloats];
      std::memcpy(block, square, sizeof(block));
      ExchangeAll<kFloats, kFloats / 2>(block);
      for (int i = 0; i < kFloats; ++i) {
        std::memcpy(to + static_cast<size_t>(k + i) * pitch + static_cast<size_t>(first), &block[i], sizeof(Vector));
      }
    }
  }
}

#define LS_VECTOR_LOADS(NAME, FLOATS, TARGET)                                                                      \
  TARGET void Rows##NAME(const PackedRows& from, float* to) { Rows<FLOATS>(from, to); }                            \
  TARGET void Columns##NAME(const PackedRows& from, size_t pitch, float* to) { Columns<FLOATS>(from, pitch, to); } \
  constexpr VectorLoads kLoads##NAME = {Rows##NAME, Columns##NAME, #NAME};

LS_VECTOR_LOADS(Portable, 4, )
#if defined(__x86_64__)
LS_VECTOR_LOADS(Avx2, 8, LS_AVX2)
LS_VECTOR_LOADS(Avx512, 16, LS_AVX512)
#endif

}  // namespace

bool LoadsInVectors(ElementType type) {
  switch (type) {
    case ElementType::kF16:
    case ElementType::kBf16:
    case ElementType::kTf32:
    case ElementType::kE4m3:
    case ElementType::kE5m2:
      return true;
    case ElementType::kE2m3:
    case ElementType::kE3m2:
    case ElementType::kE2m1:
    case ElementType::kS8:
    case ElementType::kU8:
      break;
  }
  return false;
}

std::vector<const VectorLoads*> RunnableVectorLoads() {
  std::vector<const VectorLoads*> runnable = {&kLoadsPortable};
#if defined(__x86_64__)
  if (BestVectorSet() >= VectorSet::kAvx2) runnable.push_back(&kLoadsAvx2);
  if (BestVectorSet() >= VectorSet::kAvx512) runnable.push_back(&kLoadsAvx512);
#endif
  return runnable;
}

const VectorLoads& SelectVectorLoads() {
  static const VectorLoads& chosen = *RunnableVectorLoads().back();
  return chosen;
}

}  // namespace laneshift::emulator
