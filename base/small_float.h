// The small floating-point formats of tensor cores, and their conversions to and from float.
//
// A value of any format travels as its bits in the low end of an integer (tf32: in the upper 19 bits of a 32-bit
// container, as the hardware holds it). Conversions follow the PTX rules: NaN results are the format's canonical NaN,
// formats without a NaN turn NaN into their largest number, nothing is flushed.
//
// Thread-safety: pure functions.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace laneshift::base {

enum class FloatFormat : uint8_t { kF16, kBf16, kTf32, kE4m3, kE5m2, kE2m3, kE3m2, kE2m1, kUe8m0, kUe4m3 };
inline constexpr int kFloatFormats = 10;

// What the largest exponent field means.
enum class Specials : uint8_t {
  kIeee,     // infinities and NaNs
  kNanOnly,  // the all-ones pattern is NaN, the rest are numbers (e4m3, ue4m3, ue8m0)
  kNone,     // every pattern is a number
};

struct FloatFormatInfo {
  std::string_view name;
  uint8_t exponent_bits, mantissa_bits;
  int16_t bias;
  uint8_t position;  // of the value's least bit inside its container
  bool has_sign;
  Specials specials;
  uint32_t nan;     // canonical, kNone: unused
  uint32_t finite;  // the largest positive number
};

const FloatFormatInfo& InfoOf(FloatFormat format);

enum class Rounding : uint8_t { kNearestEven, kNearestAway, kTowardZero, kUp, kDown };
// What a finite value beyond the largest number, or an infinity, becomes. kInfinity gives NaN where there is no
// infinity; directed roundings that may not reach infinity give the largest number.
enum class Overflow : uint8_t { kInfinity, kSaturate };

// Exact; NaN becomes 0x7fffffff. ue4m3 ignores bit 7, tf32 its low 13 bits.
float ToFloat(FloatFormat format, uint32_t bits);
// ue8m0 and ue4m3 take the magnitude of `value`.
uint32_t FromFloat(FloatFormat format, float value, Rounding rounding = Rounding::kNearestEven,
                   Overflow overflow = Overflow::kInfinity);

// A normal double. REQUIRES: -1023 < exponent < 1024.
inline double PowerOfTwo(int exponent) { return std::bit_cast<double>(static_cast<uint64_t>(1023 + exponent) << 52); }

// The cheap ones, fit for whole tensors.
inline float Bf16ToFloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
inline float F16ToFloat(uint16_t bits) {
  // The exponent and mantissa move up 13 bits; the product with 2^112 fixes the bias and normalises subnormals.
  const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fff) << 13;
  uint32_t word = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  if (magnitude >= 0x0f800000) word = magnitude == 0x0f800000 ? 0x7f800000u : 0x7fffffffu;
  return std::bit_cast<float>(word | static_cast<uint32_t>(bits & 0x8000) << 16);
}
inline uint16_t FloatToBf16(float value) {  // to nearest even
  const uint32_t word = std::bit_cast<uint32_t>(value);
  if ((word & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return static_cast<uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16);
}
inline uint16_t FloatToF16(float value) {  // to nearest even
  const uint32_t word = std::bit_cast<uint32_t>(value), magnitude = word & 0x7fffffff;
  const uint32_t sign = word >> 16 & 0x8000;
  if (magnitude >= 0x47800000) return static_cast<uint16_t>(magnitude > 0x7f800000 ? 0x7fff : sign | 0x7c00);
  if (magnitude < 0x38800000) {  // subnormal: an addition of 2^-1 leaves the rounded bits at the low end
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000));
  }
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13));
}
// f32 to tf32 as `cvt.rna.tf32.f32` does: nearest, ties away from zero; and as the tensor core reads its container.
inline float RoundTf32Away(float value) {
  const uint32_t word = std::bit_cast<uint32_t>(value);
  if ((word & 0x7f800000) == 0x7f800000) return (word & 0x7fffff) ? std::bit_cast<float>(0x7fffffffu) : value;
  return std::bit_cast<float>((word + 0x1000) & 0xffffe000u);
}
inline float TruncateTf32(float value) { return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xffffe000u); }

// Whole arrays, `count` elements each.
void F16ToFloat(const uint16_t* from, float* to, size_t count);
void Bf16ToFloat(const uint16_t* from, float* to, size_t count);
void FloatToF16(const float* from, uint16_t* to, size_t count);
void FloatToBf16(const float* from, uint16_t* to, size_t count);

}  // namespace laneshift::base
