// DeviceOperands: one set of a problem's operands in device memory.
//
// Thread-safety: none.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "laneshift/engine.h"
#include "measure/guarded_buffer.h"
#include "measure/reference/host_reference.h"

namespace laneshift::measure {

class DeviceOperands {
 public:
  // Copies the operands; every byte of D is 0xff, so that an element that is never written is NaN.
  // Each operand lies between red zones of this many bytes.
  static Result<DeviceOperands> Upload(device::Context context, const device::Stream& stream, const Problem& problem,
                                       const HostOperands& operands, size_t red_zone_bytes = 0);
  // Another set with the same contents.
  Result<DeviceOperands> Clone(device::Context context, const device::Stream& stream) const;

  Arguments arguments() const;
  size_t bytes() const;
  // Every byte of D, of its scale factors and of what the epilogue writes is 0xff again; reductions are 0.
  Status PoisonOutput(const device::Stream& stream) const;
  // D as it is now, and into `operands` what else a kernel writes: the operands of the epilogue and scale factors of D.
  // Waits for the stream.
  Status Download(const device::Stream& stream, HostTensor& d, HostOperands& operands) const;
  // Writes outside the operands: "8 bytes after the end of d"; waits for the stream.
  Result<std::optional<std::string>> Damage(const device::Stream& stream) const;

 private:
  using Buffers = std::array<GuardedBuffer, ir::kRoles>;  // by role; empty where the problem has none

  DeviceOperands(Problem problem, Buffers buffers, std::vector<GuardedBuffer> epilogue);
  const GuardedBuffer& Of(OperandRole role) const { return buffers_[static_cast<size_t>(role)]; }

  Problem problem_;
  Buffers buffers_;
  std::vector<GuardedBuffer> epilogue_;  // of its operands, in order
};

}  // namespace laneshift::measure
