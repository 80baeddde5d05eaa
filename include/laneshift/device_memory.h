// DeviceMemory: memory of an engine's device, for programs that do not use the driver themselves. On the emulator it is
// the only way; on a GPU a program may as well use cuMemAlloc or cudaMalloc.
//
// Thread-safety: distinct objects are independent; one object may be used by one thread at a time.
#pragma once

#include <cstddef>
#include <memory>

#include "laneshift/engine.h"

namespace laneshift {

class DeviceMemory {
 public:
  // `bytes` of device memory, all zero, so that it may serve as a plan's workspace; at least 256-byte aligned. Keeps
  // the engine's device alive. kResourceExhausted: the device does not have that much memory left.
  static Result<DeviceMemory> Allocate(const Engine& engine, size_t bytes);
  DeviceMemory(DeviceMemory&&) noexcept;
  DeviceMemory& operator=(DeviceMemory&&) noexcept;
  // Waits for the device.
  ~DeviceMemory();

  // The device address, for Arguments and for Execute's workspace. Null if it has no bytes or was moved from.
  void* data() const;
  size_t size() const;

  // Copies to or from host memory, after all work that was enqueued on the default stream, and waits for the copy. For
  // another stream, wait for it first. kInvalidArgument: offset + bytes is beyond size(), or the pointer is null.
  Status CopyFromHost(const void* from, size_t bytes, size_t offset = 0) const;
  Status CopyToHost(void* to, size_t bytes, size_t offset = 0) const;

 private:
  struct Impl;
  explicit DeviceMemory(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace laneshift
