// DeviceOperands: one set of a problem's operands in device memory.
//
// Thread-safety: none.
#pragma once

#include <array>

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
  // D as it is now; waits for the stream.
  Status Download(const device::Stream& stream, HostTensor& d) const;

 private:
  using Buffers = std::array<device::Buffer, ir::kRoles>;  // by role; empty where the problem has none

  DeviceOperands(Problem problem, Buffers buffers);
  const device::Buffer& Of(Role role) const { return buffers_[static_cast<size_t>(role)]; }

  Problem problem_;
  Buffers buffers_;
};

}  // namespace laneshift::measure
