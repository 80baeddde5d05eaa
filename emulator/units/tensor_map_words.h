// Tensor maps: the emulator's own 128-byte encoding, with the driver's argument rules.
//
// The bytes of a CUtensorMap are opaque on hardware; here they are a magic number, the fields and a checksum, so that a
// map that was copied badly or patched by hand is found out.
//
// Thread-safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "laneshift/result.h"

namespace laneshift::emulator {

// The enumerations have the driver API's values.
enum class TensorElement : uint8_t {
  kU8,
  kU16,
  kU32,
  kS32,
  kU64,
  kS64,
  kF16,
  kF32,
  kF64,
  kBf16,
  kF32Ftz,
  kTf32,
  kTf32Ftz,
  k16U4Align8B,
  k16U4Align16B,
  k16U6Align16B,
};
enum class TensorInterleave : uint8_t { kNone, k16B, k32B };
enum class TensorSwizzle : uint8_t { kNone, k32B, k64B, k128B, k128BAtom32B, k128BAtom32BFlip8B, k128BAtom64B };
enum class TensorFill : uint8_t { kZero, kNan };
enum class TensorMapMode : uint8_t { kTiled, kIm2col, kIm2colWide, kIm2colWide128 };

// What the device's encoder knows: kBlackwell adds swizzle modes 4 to 6, the packed types and the wide im2col modes.
enum class TensorMapDialect : uint8_t { kHopper, kBlackwell };

struct TensorMap {
  TensorMapMode mode = TensorMapMode::kTiled;
  TensorElement element = TensorElement::kU8;
  TensorInterleave interleave = TensorInterleave::kNone;
  TensorSwizzle swizzle = TensorSwizzle::kNone;
  TensorFill fill = TensorFill::kZero;
  uint8_t l2_promotion = 0;
  int rank = 0;
  uint64_t address = 0;
  std::array<uint64_t, 5> dims{};
  std::array<uint64_t, 5> strides{};  // bytes; strides[i] belongs to dimension i, strides[0] is unused
  std::array<uint32_t, 5> box{};      // tiled
  std::array<uint32_t, 5> element_strides{};
  std::array<int32_t, 3> lower_corner{}, upper_corner{};  // im2col: W, H, D
  uint32_t channels = 0, pixels = 0;                      // im2col: per pixel, per column
  bool operator==(const TensorMap&) const = default;
};

// Checks every rule of cuTensorMapEncodeTiled / Im2col / Im2colWide for the map's mode; the Error names the parameter.
Status ValidateTensorMap(const TensorMap& map, TensorMapDialect dialect);

using TensorMapBytes = std::array<uint8_t, 128>;
// REQUIRES: ValidateTensorMap said yes.
TensorMapBytes EncodeTensorMap(const TensorMap& map);
Result<TensorMap> DecodeTensorMap(std::span<const uint8_t, 128> bytes);

// Bytes of one element in global memory; the packed types count their logical bits: 4 or 6 per element.
int ElementBits(TensorElement element);

// The shared address after the TMA swizzle.
uint32_t SwizzleTensorAddress(TensorSwizzle swizzle, uint32_t address);

}  // namespace laneshift::emulator
