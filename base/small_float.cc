#include "base/small_float.h"

#include <cmath>

namespace laneshift::base {
namespace {

constexpr FloatFormatInfo kFormats[kFloatFormats] = {
    // name, exponent, mantissa, bias, position, sign, specials, NaN, largest
    {"f16", 5, 10, 15, 0, true, Specials::kIeee, 0x7fff, 0x7bff},
    {"bf16", 8, 7, 127, 0, true, Specials::kIeee, 0x7fff, 0x7f7f},
    {"tf32", 8, 10, 127, 13, true, Specials::kIeee, 0x7fffe000, 0x7f7fe000},
    {"e4m3", 4, 3, 7, 0, true, Specials::kNanOnly, 0x7f, 0x7e},
    {"e5m2", 5, 2, 15, 0, true, Specials::kIeee, 0x7f, 0x7b},
    {"e2m3", 2, 3, 1, 0, true, Specials::kNone, 0, 0x1f},
    {"e3m2", 3, 2, 3, 0, true, Specials::kNone, 0, 0x1f},
    {"e2m1", 2, 1, 1, 0, true, Specials::kNone, 0, 0x07},
    {"ue8m0", 8, 0, 127, 0, false, Specials::kNanOnly, 0xff, 0xfe},
    {"ue4m3", 4, 3, 7, 0, false, Specials::kNanOnly, 0x7f, 0x7e},
};

// significand * 2^exponent.
float Scaled(uint32_t significand, int exponent) { return static_cast<float>(significand * PowerOfTwo(exponent)); }

// `magnitude` / 2^shift as an integer; `negative` gives the directed modes their direction.
uint64_t RoundedShift(uint64_t magnitude, int shift, Rounding rounding, bool negative) {
  if (shift <= 0) return magnitude << -shift;
  if (shift > 60) return magnitude != 0 && rounding == (negative ? Rounding::kDown : Rounding::kUp) ? 1 : 0;
  const uint64_t kept = magnitude >> shift, rest = magnitude & ((uint64_t{1} << shift) - 1);
  const uint64_t half = uint64_t{1} << (shift - 1);
  bool up = false;
  switch (rounding) {
    case Rounding::kNearestEven:
      up = rest > half || (rest == half && (kept & 1));
      break;
    case Rounding::kNearestAway:
      up = rest >= half;
      break;
    case Rounding::kTowardZero:
      break;
    case Rounding::kUp:
      up = rest != 0 && !negative;
      break;
    case Rounding::kDown:
      up = rest != 0 && negative;
      break;
  }
  return kept + up;
}

// A ue8m0 has neither sign nor zero: everything below its least number becomes that.
uint32_t ToUe8m0(uint32_t magnitude, Rounding rounding, Overflow overflow) {
  if (magnitude > 0x7f800000) return 0xff;
  if (magnitude == 0x7f800000) return overflow == Overflow::kSaturate ? 0xfe : 0xff;
  // Field and significand of a float are already those of a ue8m0; 2^-127 and below are float subnormals.
  const uint64_t code = RoundedShift(magnitude, 23, rounding, false);
  if (magnitude <= 0x00400000) return 0;
  if (code > 0xfe) return rounding == Rounding::kTowardZero || overflow == Overflow::kSaturate ? 0xfe : 0xff;
  return static_cast<uint32_t>(code);
}

uint32_t Infinity(const FloatFormatInfo& f) {
  switch (f.specials) {
    case Specials::kIeee:
      return ((1u << f.exponent_bits) - 1) << f.mantissa_bits << f.position;
    case Specials::kNanOnly:
      return f.nan;
    case Specials::kNone:
      return f.finite;
  }
  return f.finite;
}

}  // namespace

const FloatFormatInfo& InfoOf(FloatFormat format) { return kFormats[static_cast<size_t>(format)]; }

float ToFloat(FloatFormat format, uint32_t bits) {
  const FloatFormatInfo& f = InfoOf(format);
  const float nan = std::bit_cast<float>(0x7fffffffu);
  const uint32_t word = bits >> f.position;
  const uint32_t mantissa = word & ((1u << f.mantissa_bits) - 1);
  const uint32_t last = (1u << f.exponent_bits) - 1;
  const uint32_t field = word >> f.mantissa_bits & last;
  const bool negative = f.has_sign && (word >> (f.mantissa_bits + f.exponent_bits) & 1);
  if (format == FloatFormat::kUe8m0) return field == last ? nan : Scaled(1, static_cast<int>(field) - 127);
  if (field == last && f.specials == Specials::kIeee) {
    return mantissa != 0 ? nan : std::bit_cast<float>(negative ? 0xff800000u : 0x7f800000u);
  }
  if (f.specials == Specials::kNanOnly && field == last && mantissa == (1u << f.mantissa_bits) - 1) return nan;
  const uint32_t significand = field == 0 ? mantissa : mantissa | 1u << f.mantissa_bits;
  const int exponent = static_cast<int>(field == 0 ? 1 : field) - f.bias - f.mantissa_bits;
  const float magnitude = Scaled(significand, exponent);
  return negative ? -magnitude : magnitude;
}

uint32_t FromFloat(FloatFormat format, float value, Rounding rounding, Overflow overflow) {
  const FloatFormatInfo& f = InfoOf(format);
  const uint32_t word = std::bit_cast<uint32_t>(value), magnitude = word & 0x7fffffff;
  if (format == FloatFormat::kUe8m0) return ToUe8m0(magnitude, rounding, overflow);
  if (magnitude > 0x7f800000) return f.specials == Specials::kNone ? f.finite : f.nan;
  const bool negative = f.has_sign && word >> 31;
  const uint32_t sign = negative ? 1u << (f.position + f.exponent_bits + f.mantissa_bits) : 0;
  if (magnitude == 0x7f800000) return sign | (overflow == Overflow::kSaturate ? f.finite : Infinity(f));
  if (magnitude == 0) return sign;
  const uint32_t field = magnitude >> 23;
  const uint64_t significand = field == 0 ? magnitude : (magnitude & 0x7fffff) | 0x800000;
  const int unit = static_cast<int>(field == 0 ? 1 : field) - 127 - 23;  // value = significand * 2^unit
  const int exponent = std::bit_width(significand) - 1 + unit;
  const int least = 1 - f.bias, result_exponent = exponent < least ? least : exponent;
  const uint64_t rounded = RoundedShift(significand, result_exponent - f.mantissa_bits - unit, rounding, negative);
  // A carry out of the significand lands in the exponent field, as it should.
  const uint64_t code = (static_cast<uint64_t>(result_exponent - least) << f.mantissa_bits) + rounded;
  if (code > f.finite >> f.position) {
    const bool towards_zero =
        rounding == Rounding::kTowardZero || rounding == (negative ? Rounding::kUp : Rounding::kDown);
    return sign | (towards_zero || overflow == Overflow::kSaturate ? f.finite : Infinity(f));
  }
  return sign | static_cast<uint32_t>(code << f.position);
}

void F16ToFloat(const uint16_t* from, float* to, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = F16ToFloat(from[i]);
}
void Bf16ToFloat(const uint16_t* from, float* to, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = Bf16ToFloat(from[i]);
}
void FloatToF16(const float* from, uint16_t* to, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = FloatToF16(from[i]);
}
void FloatToBf16(const float* from, uint16_t* to, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = FloatToBf16(from[i]);
}

}  // namespace laneshift::base
