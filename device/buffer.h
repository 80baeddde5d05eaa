// DeviceBuffer: device memory. Copies and fills are asynchronous on the given stream and checked against the size.
//
// Freeing waits for the device (cuMemFree does); keep buffers out of loops that must not wait.
// Thread-safety: as the driver's memory; distinct Buffers are independent.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/stream.h"

namespace laneshift::device {

class DeviceBuffer {
 public:
  // At least 256-byte aligned. Zero bytes make an empty Buffer with a null pointer.
  static Result<DeviceBuffer> Allocate(Context context, size_t bytes);
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer();

  CuDevicePtr pointer() const { return pointer_; }
  size_t size() const { return size_; }

  // `from` must stay unchanged, and `to` unread, until the stream has passed the copy.
  Status CopyFromHost(const Stream& stream, const void* from, size_t bytes, size_t offset = 0) const;
  Status CopyToHost(const Stream& stream, void* to, size_t bytes, size_t offset = 0) const;
  Status FillBytes(const Stream& stream, uint8_t value) const;
  // REQUIRES: a size that is a multiple of 4 bytes; anything else is kInvalidArgument.
  Status FillWords(const Stream& stream, uint32_t value) const;

 private:
  DeviceBuffer(Context context, CuDevicePtr pointer, size_t size) : context_(context), pointer_(pointer), size_(size) {}
  Status CheckRange(const char* what, size_t bytes, size_t offset) const;

  Context context_;
  CuDevicePtr pointer_;  // 0: empty or moved from
  size_t size_;
};

}  // namespace laneshift::device
