#include "base/small_float.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace laneshift::base {
namespace {

constexpr FloatFormat kAll[] = {FloatFormat::kF16,   FloatFormat::kBf16, FloatFormat::kTf32, FloatFormat::kE4m3,
                                FloatFormat::kE5m2,  FloatFormat::kE2m3, FloatFormat::kE3m2, FloatFormat::kE2m1,
                                FloatFormat::kUe8m0, FloatFormat::kUe4m3};

int WidthOf(const FloatFormatInfo& f) { return f.has_sign + f.exponent_bits + f.mantissa_bits; }

// The value of a code by the textbook formula in double; NaN and infinity as such.
double Value(FloatFormat format, uint32_t code) {
  const FloatFormatInfo& f = InfoOf(format);
  const double scale = std::pow(2.0, f.mantissa_bits);
  const uint32_t fraction = code % (1u << f.mantissa_bits);
  const uint32_t field = code / (1u << f.mantissa_bits) % (1u << f.exponent_bits);
  const bool negative = f.has_sign && code / (1u << (f.mantissa_bits + f.exponent_bits)) % 2 == 1;
  const bool top = field + 1 == 1u << f.exponent_bits;
  double v = 0;
  if (format == FloatFormat::kUe8m0) {
    v = top ? std::nan("") : std::pow(2.0, static_cast<double>(field) - 127);
  } else if (top && f.specials == Specials::kIeee) {
    v = fraction == 0 ? std::numeric_limits<double>::infinity() : std::nan("");
  } else if (top && f.specials == Specials::kNanOnly && fraction + 1 == 1u << f.mantissa_bits) {
    v = std::nan("");
  } else if (field == 0) {
    v = fraction / scale * std::pow(2.0, 1 - f.bias);
  } else {
    v = (1 + fraction / scale) * std::pow(2.0, static_cast<int>(field) - f.bias);
  }
  return negative ? -v : v;
}

TEST(SmallFloat, EveryCodeHasItsTextbookValue) {
  for (FloatFormat format : kAll) {
    const FloatFormatInfo& f = InfoOf(format);
    for (uint32_t code = 0; code < 1u << WidthOf(f); ++code) {
      const double want = Value(format, code);
      const float got = ToFloat(format, code << f.position);
      if (std::isnan(want)) {
        ASSERT_EQ(std::bit_cast<uint32_t>(got), 0x7fffffffu) << f.name << " " << code;
      } else {
        ASSERT_EQ(got, want) << f.name << " " << code;
        ASSERT_EQ(std::signbit(got), std::signbit(want)) << f.name << " " << code;
      }
    }
  }
}

TEST(SmallFloat, EveryCodeSurvivesTheRoundTripInEveryRounding) {
  for (FloatFormat format : kAll) {
    const FloatFormatInfo& f = InfoOf(format);
    for (uint32_t code = 0; code < 1u << WidthOf(f); ++code) {
      const float value = ToFloat(format, code << f.position);
      for (Rounding r : {Rounding::kNearestEven, Rounding::kTowardZero, Rounding::kUp, Rounding::kDown}) {
        const uint32_t want = std::isnan(value) ? f.nan : code << f.position;
        ASSERT_EQ(FromFloat(format, value, r), want) << f.name << " " << code;
      }
    }
  }
}

// Rounds by searching the sorted list of all magnitudes of the format.
class Nearest {
 public:
  explicit Nearest(FloatFormat format) {
    const FloatFormatInfo& f = InfoOf(format);
    for (uint32_t code = 0; code <= f.finite >> f.position; ++code) values_.push_back(Value(format, code));
  }
  // The code of the magnitude nearest to v; SIZE_MAX: beyond the largest by half a step or more.
  size_t Even(double v) const {
    size_t below = Below(v);
    const double step = values_[values_.size() - 1] - values_[values_.size() - 2];
    const double above = below + 1 < values_.size() ? values_[below + 1] : values_.back() + step;
    const double to_below = v - values_[below], to_above = above - v;
    if (to_above < to_below || (to_above == to_below && below % 2 == 1)) ++below;
    return below < values_.size() ? below : SIZE_MAX;
  }
  size_t Below(double v) const {
    return static_cast<size_t>(std::upper_bound(values_.begin(), values_.end(), v) - values_.begin()) - 1;
  }

 private:
  std::vector<double> values_;
};

TEST(SmallFloat, RoundsToTheNearestAndTowardZero) {
  std::mt19937 random(7);
  for (FloatFormat format : kAll) {
    if (format == FloatFormat::kUe8m0) continue;  // no zero below its least number: its own test
    const FloatFormatInfo& f = InfoOf(format);
    const Nearest nearest(format);
    for (int i = 0; i < 40000; ++i) {
      // Half of the values lie within an ulp of a code or of the middle of two, half anywhere near the range.
      float v = ToFloat(format, (random() % ((f.finite >> f.position) + 1)) << f.position);
      if (i % 2 == 0) {
        v = std::ldexp(1.0f + static_cast<float>(random() % (1 << 23)) * 0x1p-23f,
                       static_cast<int>(random() % (2u << f.exponent_bits)) - (1 << f.exponent_bits));
      } else {
        v *= 1 + std::ldexp(1.0f, -1 - f.mantissa_bits);
        for (int n = static_cast<int>(random() % 3); n > 0; --n) v = std::nextafter(v, i % 4 == 1 ? 0.0f : 1e30f);
      }
      if (!std::isfinite(v)) continue;
      const size_t even = nearest.Even(v);
      const uint32_t got = FromFloat(format, v, Rounding::kNearestEven, Overflow::kSaturate);
      ASSERT_EQ(got, even == SIZE_MAX ? f.finite : static_cast<uint32_t>(even) << f.position) << f.name << " " << v;
      const uint32_t cut = FromFloat(format, v, Rounding::kTowardZero);
      ASSERT_EQ(cut, static_cast<uint32_t>(nearest.Below(v)) << f.position) << f.name << " " << v;
      if (f.has_sign) {
        const uint32_t sign = 1u << (WidthOf(f) - 1 + f.position);
        ASSERT_EQ(FromFloat(format, -v, Rounding::kNearestEven, Overflow::kSaturate), got | sign);
      }
    }
  }
}

TEST(SmallFloat, OverflowAndSpecials) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  EXPECT_EQ(FromFloat(FloatFormat::kF16, 65519.0f), 0x7bffu);
  EXPECT_EQ(FromFloat(FloatFormat::kF16, 65520.0f), 0x7c00u);
  EXPECT_EQ(FromFloat(FloatFormat::kF16, 1e9f, Rounding::kTowardZero), 0x7bffu);
  EXPECT_EQ(FromFloat(FloatFormat::kF16, -1e9f, Rounding::kUp), 0xfbffu);
  EXPECT_EQ(FromFloat(FloatFormat::kE4m3, 464.0f), 0x7eu);  // a tie between 448 and the absent 480
  EXPECT_EQ(FromFloat(FloatFormat::kE4m3, 465.0f), 0x7fu);
  EXPECT_EQ(FromFloat(FloatFormat::kE4m3, -inf, Rounding::kNearestEven, Overflow::kSaturate), 0xfeu);
  EXPECT_EQ(FromFloat(FloatFormat::kE5m2, inf), 0x7cu);
  EXPECT_EQ(FromFloat(FloatFormat::kE5m2, nan, Rounding::kNearestEven, Overflow::kSaturate), 0x7fu);
  EXPECT_EQ(FromFloat(FloatFormat::kE2m1, nan), 0x07u);
  EXPECT_EQ(FromFloat(FloatFormat::kE2m1, -100.0f), 0x0fu);
  EXPECT_EQ(FromFloat(FloatFormat::kUe4m3, -1.0f), 0x38u);
}

TEST(SmallFloat, Ue8m0) {
  EXPECT_EQ(FromFloat(FloatFormat::kUe8m0, 1.0f), 127u);
  EXPECT_EQ(FromFloat(FloatFormat::kUe8m0, 1.9f, Rounding::kTowardZero), 127u);
  EXPECT_EQ(FromFloat(FloatFormat::kUe8m0, 1.01f, Rounding::kUp), 128u);
  EXPECT_EQ(FromFloat(FloatFormat::kUe8m0, 0.0f, Rounding::kUp), 0u);
  EXPECT_EQ(FromFloat(FloatFormat::kUe8m0, 3e38f, Rounding::kUp), 0xffu);
  EXPECT_EQ(FromFloat(FloatFormat::kUe8m0, 3e38f, Rounding::kUp, Overflow::kSaturate), 0xfeu);
  EXPECT_EQ(FromFloat(FloatFormat::kUe8m0, std::nanf("")), 0xffu);
}

TEST(SmallFloat, CheapPathsEqualTheGeneralOnes) {
  for (uint32_t code = 0; code < 65536; ++code) {
    const auto half = static_cast<uint16_t>(code);
    if ((code & 0x7fff) <= 0x7c00) {
      ASSERT_EQ(std::bit_cast<uint32_t>(F16ToFloat(half)), std::bit_cast<uint32_t>(ToFloat(FloatFormat::kF16, code)));
    } else {
      ASSERT_TRUE(std::isnan(F16ToFloat(half)));
    }
    if ((code & 0x7fff) <= 0x7f80) {
      ASSERT_EQ(Bf16ToFloat(half), ToFloat(FloatFormat::kBf16, code));
    }
  }
  std::mt19937 random(3);
  for (int i = 0; i < 2000000; ++i) {
    float v = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (i % 2 == 0) v = std::ldexp(std::fmod(v, 4.0f), static_cast<int>(random() % 40) - 26);
    ASSERT_EQ(FloatToF16(v), FromFloat(FloatFormat::kF16, v)) << v;
    ASSERT_EQ(FloatToBf16(v), FromFloat(FloatFormat::kBf16, v)) << v;
    if (!std::isnan(v)) {
      ASSERT_EQ(std::bit_cast<uint32_t>(RoundTf32Away(v)), FromFloat(FloatFormat::kTf32, v, Rounding::kNearestAway));
    }
  }
}

TEST(SmallFloat, ArraysEqualTheSingleConversions) {
  std::vector<uint16_t> codes(1000), back(1000);
  std::vector<float> values(1000);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint16_t>(i * 31 + 7);
  F16ToFloat(codes.data(), values.data(), codes.size());
  for (size_t i = 0; i < codes.size(); ++i) EXPECT_EQ(values[i], F16ToFloat(codes[i]));
  FloatToF16(values.data(), back.data(), codes.size());
  EXPECT_EQ(back, codes);
  Bf16ToFloat(codes.data(), values.data(), codes.size());
  FloatToBf16(values.data(), back.data(), codes.size());
  EXPECT_EQ(back, codes);
}

}  // namespace
}  // namespace laneshift::base
