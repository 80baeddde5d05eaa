// What the driver knows about the memory at an address. Costs some 50 ns, does not synchronise, and is allowed during a
// stream capture.
//
// Thread-safety: as the driver's.
#pragma once

#include <optional>

#include "device/context.h"

namespace laneshift::device {

struct MemoryRange {
  CuDevicePtr begin = 0;
  size_t bytes = 0;  // of the whole allocation, or of the reserved range that it lies in
};

// The allocation that holds the address: device memory, managed memory, or host memory that is mapped for devices.
// Nothing: the driver has none there. REQUIRES: the context is active.
Result<std::optional<MemoryRange>> FindMemory(const DriverApi& api, CuDevicePtr address);

}  // namespace laneshift::device
