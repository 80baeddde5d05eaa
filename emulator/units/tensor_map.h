// Tensor maps: the emulator's own 128-byte encoding, with the driver's argument rules, and the walks that a TMA copy
// makes over global and shared memory.
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
// `blackwell`: the device knows swizzle modes 4 to 6, the packed types and the wide im2col modes.
Status ValidateTensorMap(const TensorMap& map, bool blackwell);

using TensorMapBytes = std::array<uint8_t, 128>;
// REQUIRES: ValidateTensorMap said yes.
TensorMapBytes EncodeTensorMap(const TensorMap& map);
Result<TensorMap> DecodeTensorMap(std::span<const uint8_t, 128> bytes);

// Bytes of one element in global memory; the packed types count their logical bits: 4 or 6 per element.
int ElementBits(TensorElement element);

// One contiguous piece of a copy: `bytes` bytes between global memory and the shared window. A fill run has no global
// address: a load stores the map's fill pattern there. For the padded sub-byte types global_bytes differs from bytes.
struct CopyRun {
  uint64_t global = 0;
  uint32_t shared = 0;
  uint16_t bytes = 0;
  uint16_t global_bytes = 0;  // 0: fill
};

enum class CopyForm : uint8_t { kTile, kIm2col, kGather4 };  // kGather4 is .tile::gather4 and .tile::scatter4

struct TensorCopy {
  CopyForm form = CopyForm::kTile;
  std::array<int32_t, 5> coordinates{};  // innermost first; gather4: column, row 0 .. row 3
  std::array<uint32_t, 3> offsets{};     // im2col: W, H, D; wide: halo, offset
  uint32_t shared = 0;                   // window offset (without the CTA rank)
};

struct CopyPlan {
  std::vector<CopyRun> runs;
  uint32_t transaction_bytes = 0;  // what complete_tx counts in one destination CTA
};
// The plan replaces `plan`'s contents and reuses its storage. Error codes: kInvalidArgument for what is an illegal
// instruction on hardware, with the rule; the message says "misaligned" for address faults.
Status PlanTensorLoad(const TensorMap& map, const TensorCopy& copy, CopyPlan& plan);
// Stores and reductions: runs are what is written to global memory (dimension 0 clips at 16 bytes, see async rules).
Status PlanTensorStore(const TensorMap& map, const TensorCopy& copy, CopyPlan& plan);

// One run of a load: `global` points to the run's bytes (unused for fills), `shared` to the destination.
void LoadRun(const TensorMap& map, const CopyRun& run, const uint8_t* global, uint8_t* shared);
// One run of a store.
void StoreRun(const TensorMap& map, const CopyRun& run, uint8_t* global, const uint8_t* shared);

// The shared address after the TMA swizzle.
uint32_t SwizzleTensorAddress(TensorSwizzle swizzle, uint32_t address);

}  // namespace laneshift::emulator
