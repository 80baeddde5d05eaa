#include "ir/block_quantizer.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/small_float.h"
#include "ir/element_type.h"

namespace laneshift::ir {
namespace {

constexpr int kFractionBits = 23, kBias = 127;
constexpr uint32_t kFraction = (1u << kFractionBits) - 1, kInfinity = 0x7f800000;
constexpr uint8_t kNanUe8m0 = 0xff;

}  // namespace

BlockQuantizer::BlockQuantizer(OutputScaling scaling, DataType type) : type_(type) {
  const auto blocks = BlockScalingOf(scaling);
  LS_CHECK(blocks.has_value(), "D has no blocks");
  factors_ = *blocks;
  const auto largest = std::bit_cast<uint32_t>(static_cast<float>(LargestOf(type)));
  largest_exponent_ = static_cast<int>(largest >> kFractionBits) - kBias;
  round_up_ = kFraction - (largest & kFraction);
}

uint8_t BlockQuantizer::FactorOf(float amax, float scale_d) const {
  if (factors_.type == DataType::kUe4m3) {
    const float scaled = amax * scale_d, factor = scaled * SixthOf();
    return static_cast<uint8_t>(
        base::FromFloat(base::FloatFormat::kUe4m3, factor, base::Rounding::kNearestEven, base::Overflow::kSaturate));
  }
  const uint32_t bits = std::bit_cast<uint32_t>(amax) & 0x7fffffff;
  if (bits > kInfinity) return kNanUe8m0;
  return static_cast<uint8_t>(std::max(0, static_cast<int>((bits + round_up_) >> kFractionBits) - largest_exponent_));
}

float BlockQuantizer::MultiplierOf(uint8_t factor, float scale_d) const {
  if (factors_.type == DataType::kUe4m3) {
    const float value = base::ToFloat(base::FloatFormat::kUe4m3, factor);
    return value == 0 ? 0 : scale_d / value;
  }
  // Factors of numbers are far below 2^127, so that the reciprocal is not subnormal.
  if (factor == kNanUe8m0) return std::bit_cast<float>(0x7fffffffu);
  return std::ldexp(1.0f, kBias - factor);
}

uint32_t BlockQuantizer::ElementOf(float value, float multiplier) const {
  return base::FromFloat(*InfoOf(type_).format, value * multiplier, base::Rounding::kNearestEven,
                         base::Overflow::kSaturate);
}

int64_t FactorOffset(int64_t rows, int64_t blocks, int64_t batch, int64_t row, int64_t block) {
  constexpr int64_t kRows = ScaleBlock::kRows, kFactors = ScaleBlock::kFactors, kLines = ScaleBlock::kLines;
  const int64_t of_rows = batch * ScaleBlock::Count(rows, kRows) + row / kRows;
  const int64_t number = of_rows * ScaleBlock::Count(blocks, kFactors) + block / kFactors;
  return number * ScaleBlock::kBytes + row % kLines * ScaleBlock::kLineBytes + row % kRows / kLines * kFactors +
         block % kFactors;
}

}  // namespace laneshift::ir
