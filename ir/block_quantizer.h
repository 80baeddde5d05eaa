// BlockQuantizer: how runs of numbers become elements of a narrow type and a scale factor each. The formulas of
// docs/quantized-outputs.md, once: the host computes with them, and emission takes its constants from them. Each
// operation is one of IEEE 754 in f32, or exact, so that the host and every target agree bit for bit.
//
// Thread-safety: values.
#pragma once

#include <cstdint>

#include "ir/stored_tensor.h"
#include "laneshift/problem.h"

namespace laneshift::ir {

class BlockQuantizer {
 public:
  // REQUIRES: CheckOutputScaling(type, scaling) is ok, and `scaling` is not kNone.
  BlockQuantizer(OutputScaling scaling, DataType type);

  DataType type() const { return type_; }
  const BlockScaling& factors() const { return factors_; }
  int run() const { return factors_.run; }

  // ue8m0: the least power of two by which no element of the block exceeds the largest number L of the type, 2^-127 at
  // least: max(0, (bits of amax + RoundUp()) / 2^23 - LargestExponent()) in integers. An infinity has the factor of the
  // largest f32.
  // ue4m3: amax * scale_d * SixthOf() to the nearest, saturated.
  // `amax` is the largest magnitude of the block, NaN if there is one; then the factor is NaN, too.
  uint8_t FactorOf(float amax, float scale_d) const;
  // By which elements are multiplied: 2^(127 - factor), or scale_d / factor; 0 for a factor that is 0.
  float MultiplierOf(uint8_t factor, float scale_d) const;
  // The bits of value * multiplier, to the nearest even, saturated.
  uint32_t ElementOf(float value, float multiplier) const;

  // The exponent of L, and what carries into the exponent of an amax whose significand is above that of L.
  int LargestExponent() const { return largest_exponent_; }
  uint32_t RoundUp() const { return round_up_; }
  // Of e2m1: 1 / L to the nearest f32.
  static constexpr float SixthOf() { return 1.0f / 6; }

 private:
  DataType type_;
  BlockScaling factors_;
  int largest_exponent_;
  uint32_t round_up_;
};

// The byte of the factor of row `row` and block `block` in the 128x4 layout of matrices of `rows` rows with `blocks`
// blocks each.
int64_t FactorOffset(int64_t rows, int64_t blocks, int64_t batch, int64_t row, int64_t block);

}  // namespace laneshift::ir
