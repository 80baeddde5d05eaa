// Fat binaries, as nvcc embeds them: PTX and machine code for several targets in one image.
//
// Only the PTX is of use to an emulator. It may be compressed by LZ4 or by zstd; for the latter the build needs
// libzstd. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "laneshift/result.h"

namespace laneshift::emulator {

inline constexpr uint64_t kMaxPtxBytes = uint64_t{1} << 28;  // of one module, decompressed

struct FatEntry {
  enum class Kind : uint8_t { kPtx, kMachineCode };
  Kind kind = Kind::kPtx;
  uint32_t compute_capability = 0;  // 100 for sm_100, sm_100a and sm_100f
  const uint8_t* bytes = nullptr;
  uint64_t size = 0;          // stored
  uint64_t decompressed = 0;  // 0: not compressed
};

// Whether the image is a fat binary, or the record that a host program keeps of one.
bool IsFatBinary(const void* image);
// Its entries in their order. REQUIRES: IsFatBinary. The image carries its own size, as the driver's callers give none.
Result<std::vector<FatEntry>> ReadFatBinary(const void* image);
// The text of an entry of kind kPtx.
Result<std::string> PtxOf(const FatEntry& entry);

}  // namespace laneshift::emulator
