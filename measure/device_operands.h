// DeviceOperands: one set of a problem's operands in device memory.
//
// Thread-safety: none.
#pragma once

#include <optional>
#include <vector>

#include "device/buffer.h"
#include "laneshift/engine.h"
#include "measure/host_reference.h"

namespace laneshift::measure {

class DeviceOperands {
 public:
  // Copies the operands; every byte of D is 0xff, so that an element that is never written is NaN.
  static Result<DeviceOperands> Upload(device::Context context, const device::Stream& stream, const Problem& problem,
                                       const HostOperands& operands);
  // Another set with the same contents.
  Result<DeviceOperands> Clone(device::Context context, const device::Stream& stream) const;

  Arguments arguments() const;
  size_t bytes() const;
  // D as it is now, and what the epilogue wrote; waits for the stream.
  Status Download(const device::Stream& stream, HostTensor& d, std::vector<HostTensor>& epilogue) const;

 private:
  DeviceOperands(Problem problem, std::vector<device::Buffer> buffers);

  static constexpr size_t kRoles = static_cast<size_t>(Role::kBias) + 1;
  Problem problem_;
  std::vector<device::Buffer> buffers_;  // by role, then those of the epilogue
};

}  // namespace laneshift::measure
