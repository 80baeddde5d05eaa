// DeviceOperands: one set of a problem's operands in device memory.
//
// Thread-safety: none.
#pragma once

#include <optional>

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
  DeviceOperands(Problem problem, device::Buffer a, device::Buffer b, device::Buffer c, device::Buffer d,
                 device::Buffer bias);
  Problem problem_;
  device::Buffer a_, b_, c_, d_, bias_;  // by role
};

}  // namespace laneshift::measure
