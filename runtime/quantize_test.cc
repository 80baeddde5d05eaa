#include "laneshift/quantize.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/small_float.h"
#include "ir/block_quantizer.h"
#include "ir/element_type.h"

namespace laneshift {
namespace {

struct Quantized {
  std::vector<uint8_t> elements, factors;
};

Quantized QuantizeFloats(const QuantizedTensor& tensor, const std::vector<float>& numbers, float scale = 1) {
  const auto bytes = BytesOf(tensor);
  EXPECT_TRUE(bytes.has_value()) << bytes.error().message;
  Quantized result{std::vector<uint8_t>(bytes->elements, 0xff), std::vector<uint8_t>(bytes->factors, 0xff)};
  const Status done =
      Quantize(tensor, DataType::kF32, numbers.data(), scale, result.elements.data(), result.factors.data());
  EXPECT_TRUE(done.has_value()) << done.error().message;
  return result;
}

// The factor is the least power of two by which no element overflows, at every step of an amax around a boundary.
TEST(Quantize, FactorsOfMxRoundUp) {
  for (const DataType type : {DataType::kE4m3, DataType::kE5m2, DataType::kE2m1}) {
    const ir::BlockQuantizer quantizer(OutputScaling::kMx, type);
    const double largest = ir::LargestOf(type);
    for (int exponent = -120; exponent <= 100; exponent += 11) {
      const auto edge = static_cast<float>(std::ldexp(largest, exponent));
      const float above = std::nextafter(edge, std::numeric_limits<float>::infinity());
      EXPECT_EQ(quantizer.FactorOf(edge, 1), exponent + 127) << DataTypeName(type);
      EXPECT_EQ(quantizer.FactorOf(above, 1), exponent + 128) << DataTypeName(type);
      EXPECT_EQ(quantizer.FactorOf(std::nextafter(edge / 2, edge), 1), exponent + 127) << DataTypeName(type);
    }
    const float most = std::numeric_limits<float>::max(), infinity = std::numeric_limits<float>::infinity();
    EXPECT_EQ(quantizer.FactorOf(0, 1), 0);
    EXPECT_EQ(quantizer.FactorOf(std::numeric_limits<float>::denorm_min(), 1), 0);
    EXPECT_EQ(quantizer.FactorOf(infinity, 1), quantizer.FactorOf(most, 1));
    EXPECT_EQ(quantizer.FactorOf(std::numeric_limits<float>::quiet_NaN(), 1), 0xff);
    EXPECT_TRUE(std::isnan(quantizer.MultiplierOf(0xff, 1)));
    for (int factor = 0; factor <= 247; ++factor)
      EXPECT_EQ(quantizer.MultiplierOf(static_cast<uint8_t>(factor), 1), std::ldexp(1.0f, 127 - factor));
  }
}

TEST(Quantize, FactorsOfNv) {
  const ir::BlockQuantizer quantizer(OutputScaling::kNv, DataType::kE2m1);
  for (uint32_t code = 1; code < 0x7f; ++code) {
    const float factor = base::ToFloat(base::FloatFormat::kUe4m3, code);
    EXPECT_EQ(quantizer.FactorOf(6 * factor, 1), code);
    EXPECT_EQ(quantizer.FactorOf(6 * factor / 4, 4), code);
    EXPECT_EQ(quantizer.MultiplierOf(static_cast<uint8_t>(code), 4), 4 / factor);
  }
  EXPECT_EQ(quantizer.FactorOf(0, 1), 0);
  EXPECT_EQ(quantizer.MultiplierOf(0, 1), 0);
  EXPECT_EQ(quantizer.FactorOf(1e30f, 1), 0x7e);  // saturates
  EXPECT_EQ(quantizer.FactorOf(std::numeric_limits<float>::infinity(), 1), 0x7e);
  EXPECT_EQ(quantizer.FactorOf(std::numeric_limits<float>::quiet_NaN(), 1), 0x7f);
}

// Two blocks of a row; factors of what the tensor does not have are zero.
TEST(Quantize, PlacesFactors) {
  const QuantizedTensor tensor{.batch = 2, .rows = 130, .columns = 40, .type = DataType::kE4m3};
  std::vector<float> numbers(2 * 130 * 40, 0);
  const auto at = [&](int64_t batch, int64_t row, int64_t column) -> float& {
    return numbers[static_cast<size_t>((batch * 130 + row) * 40 + column)];
  };
  at(0, 0, 0) = 448;            // factor 2^0
  at(0, 33, 39) = -3.5f * 256;  // 2^1 of the second block
  at(1, 129, 5) = 448 * 16;
  const Quantized q = QuantizeFloats(tensor, numbers);
  ASSERT_EQ(q.factors.size(), 4u * 512);
  std::vector<uint8_t> wanted(q.factors.size(), 0);
  wanted[0] = 127;
  wanted[1 * 16 + 1 * 4 + 1] = 128;
  wanted[3 * 512 + 1 * 16] = 131;
  EXPECT_EQ(q.factors, wanted);
  EXPECT_EQ(q.elements[0], 0x7e);
  EXPECT_EQ(q.elements[33 * 40 + 39], 0x80 | 0x7e);
  EXPECT_EQ(q.elements[(130 + 129) * 40 + 5], 0x7e);
}

TEST(Quantize, PacksPairs) {
  const QuantizedTensor tensor{.rows = 1, .columns = 16, .type = DataType::kE2m1, .scaling = OutputScaling::kNv};
  std::vector<float> numbers(16, 0);
  numbers[0] = 6;
  numbers[1] = -0.5f;
  numbers[15] = 2.4f;
  const Quantized q = QuantizeFloats(tensor, numbers);
  EXPECT_EQ(q.factors[0], 0x38);  // 1
  EXPECT_EQ(q.elements[0], 0x97);
  EXPECT_EQ(q.elements[7], 0x40);
}

TEST(Quantize, NansAndInfinities) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> numbers(96, 1);
  numbers[3] = -infinity;
  numbers[40] = std::numeric_limits<float>::quiet_NaN();
  const Quantized q = QuantizeFloats({.rows = 1, .columns = 96, .type = DataType::kE4m3}, numbers);
  EXPECT_EQ(q.factors[0], 247);
  EXPECT_EQ(q.elements[3], 0x80 | 0x7e);
  EXPECT_EQ(q.factors[1], 0xff);
  EXPECT_EQ(q.elements[41], 0x7f);  // the block is NaN
  EXPECT_EQ(q.factors[2], 119);     // 1 = 256 * 2^-8
  EXPECT_EQ(q.elements[64], 0x78);
}

// What elements and factors hold exactly comes back, from each type and to each.
TEST(Quantize, RoundTrips) {
  struct Exact {
    DataType type;
    OutputScaling scaling;
    float scale;
  };
  for (const Exact& c :
       {Exact{DataType::kE4m3, OutputScaling::kMx, 1}, Exact{DataType::kE5m2, OutputScaling::kMx, 1},
        Exact{DataType::kE2m1, OutputScaling::kMx, 1}, Exact{DataType::kE2m1, OutputScaling::kNv, 8}}) {
    const QuantizedTensor tensor{.rows = 5, .columns = 72, .type = c.type, .scaling = c.scaling};
    std::vector<float> numbers;
    const float values[] = {0, 0.5f, -1, 1.5f, 2, -3, 4, 6};
    for (size_t i = 0; i < 360; ++i) numbers.push_back(std::ldexp(values[i * 5 % 8], static_cast<int>(i / 72) - 2));
    const Quantized q = QuantizeFloats(tensor, numbers, c.scale);
    std::vector<float> back(numbers.size());
    ASSERT_TRUE(Dequantize(tensor, q.elements.data(), q.factors.data(), c.scale, DataType::kF32, back.data()));
    EXPECT_EQ(back, numbers) << DataTypeName(c.type);
    for (const DataType narrow : {DataType::kF16, DataType::kBf16}) {
      std::vector<uint16_t> halves(numbers.size());
      ASSERT_TRUE(Dequantize(tensor, q.elements.data(), q.factors.data(), c.scale, narrow, halves.data()));
      Quantized again{std::vector<uint8_t>(q.elements.size()), std::vector<uint8_t>(q.factors.size())};
      ASSERT_TRUE(Quantize(tensor, narrow, halves.data(), c.scale, again.elements.data(), again.factors.data()));
      EXPECT_EQ(again.elements, q.elements) << DataTypeName(narrow);
      EXPECT_EQ(again.factors, q.factors) << DataTypeName(narrow);
    }
  }
}

TEST(Quantize, Refusals) {
  const float number = 1;
  uint8_t bytes[512];
  const auto message = [&](const QuantizedTensor& tensor, DataType from, float scale) {
    const Status done = Quantize(tensor, from, &number, scale, bytes, bytes);
    return done ? std::string() : done.error().message;
  };
  const QuantizedTensor one{.rows = 1, .columns = 1};
  EXPECT_EQ(message(one, DataType::kE4m3, 1), "numbers of e4m3 are not quantised; use f32, f16 or bf16");
  EXPECT_EQ(message(one, DataType::kF32, 2), "a scale of 2, which mx does not have; use 1, or nv");
  QuantizedTensor odd = one;
  odd.type = DataType::kE2m1;
  EXPECT_EQ(message(odd, DataType::kF32, 1), "rows of 1 e2m1 are not whole bytes; use an even number of columns");
  QuantizedTensor nv = one;
  nv.scaling = OutputScaling::kNv;
  EXPECT_EQ(message(nv, DataType::kF32, 1), "d_scale=nv quantises D to e2m1, not e4m3; use d=e2m1, or d_scale=mx");
  nv.type = DataType::kE2m1;
  nv.columns = 2;
  EXPECT_EQ(message(nv, DataType::kF32, 0), "a scale of 0 is not a positive number");
  EXPECT_EQ(message({.rows = 0, .columns = 1}, DataType::kF32, 1), "rows=0 is out of range; use 1 to 2147483647");
  EXPECT_FALSE(Quantize(one, DataType::kF32, nullptr, 1, bytes, bytes).has_value());
}

}  // namespace
}  // namespace laneshift
