// What a kernel with stamps (compiler/plan/stamps.h) leaves in memory: for each warp of the CTAs of the first cluster,
// a header and records. Little-endian; written by the kernel, read by the host.
//
// Thread-safety: values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ir/program.h"

namespace laneshift::ir {

struct StampRecord {
  uint32_t clock = 0;  // low word of %clock, of the warp's SM
  uint32_t id = 0;     // StampAttrs::id
};

// At the warp's stamps `begin` and `end`: the same moment on the clock of the SM and on the timer of the device.
struct StampHeader {
  uint64_t begin_ns = 0, end_ns = 0;  // %globaltimer; 0: the warp has no role, or has not come so far
  uint32_t begin_clock = 0, end_clock = 0;
  uint32_t records_end = 0;  // from the start of the buffer; records that found no room are missing
};

struct StampBuffer {
  // Of a warp. A power of two: a position that is a multiple of it has no room.
  static constexpr size_t kWarpBytes = 64 * 1024;
  static constexpr size_t kHeaderBytes = 64;

  static size_t Warps(const Program& program) {
    return static_cast<size_t>(program.ClusterSize()) * static_cast<size_t>(program.threads / 32);
  }
  static size_t Bytes(const Program& program) { return Warps(program) * kWarpBytes; }
};
static_assert(sizeof(StampHeader) <= StampBuffer::kHeaderBytes);
static_assert(StampBuffer::kHeaderBytes % sizeof(StampRecord) == 0);

}  // namespace laneshift::ir
