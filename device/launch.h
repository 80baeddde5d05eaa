// Launch: runs a kernel on a stream. Checks what can be checked without the driver, so that the message names the
// number.
//
// Thread-safety: as cuLaunchKernelEx. Nothing is allocated and nothing is waited for.
#pragma once

#include <span>

#include "device/kernel.h"
#include "device/stream.h"

namespace laneshift::device {

struct Extent {
  unsigned x = 1, y = 1, z = 1;
  friend bool operator==(const Extent&, const Extent&) = default;
};

// Whether the kernel may start before the stream's previous kernel has ended (programmatic dependent launch).
enum class GridOverlap { kNone, kProgrammatic };

struct LaunchShape {
  Extent grid = {};   // in CTAs
  Extent block = {};  // in threads
  Extent cluster = {};
  unsigned dynamic_smem_bytes = 0;
  GridOverlap overlap = GridOverlap::kNone;
};

// `parameters` holds the address of each kernel parameter, in order; they are read before Launch returns.
Status Launch(const Kernel& kernel, const LaunchShape& shape, const Stream& stream, std::span<void* const> parameters);

// How many clusters of this shape run at one time on the whole device: GPC boundaries, which no cluster crosses, leave
// some SMs without one. kResourceExhausted if not even one does.
Result<int> ActiveClusters(const Kernel& kernel, const LaunchShape& shape);

}  // namespace laneshift::device
