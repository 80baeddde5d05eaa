#include "device/memory_range.h"

#include <array>

#include "device/driver_error.h"

namespace laneshift::device {

Result<std::optional<MemoryRange>> FindMemory(const DriverApi& api, CuDevicePtr address) {
  // The driver leaves values that it does not know unchanged.
  unsigned type = 0;
  MemoryRange range;
  std::array attributes = {kCuPointerMemoryType, kCuPointerRangeStart, kCuPointerRangeSize};
  std::array<void*, attributes.size()> values = {&type, &range.begin, &range.bytes};
  LS_TRY(DriverStatus(api, api.PointerGetAttributes(attributes.size(), attributes.data(), values.data(), address),
                      "cuPointerGetAttributes"));
  if (type == 0) return std::optional<MemoryRange>();
  return std::optional(range);
}

}  // namespace laneshift::device
