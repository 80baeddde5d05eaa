#include "device/buffer.h"

#include <utility>

#include "base/text.h"
#include "device/driver_error.h"

namespace laneshift::device {

Result<DeviceBuffer> DeviceBuffer::Allocate(Context context, size_t bytes) {
  if (bytes == 0) return DeviceBuffer(context, 0, 0);
  LS_ASSIGN(ActiveContext active, ActiveContext::Enter(context));
  CuDevicePtr pointer = 0;
  if (CuResult result = context.api->MemAlloc(&pointer, bytes); result != kCuSuccess) {
    return DriverError(*context.api, result, base::Cat("cuMemAlloc of ", bytes, " bytes"));
  }
  return DeviceBuffer(context, pointer, bytes);
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : context_(other.context_), pointer_(std::exchange(other.pointer_, 0)), size_(std::exchange(other.size_, 0)) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(pointer_, other.pointer_);
  std::swap(size_, other.size_);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (pointer_ == 0) return;
  ReleaseIn(context_, "cuMemFree", [&] { return context_.api->MemFree(pointer_); });
}

Status DeviceBuffer::CheckRange(const char* what, size_t bytes, size_t offset) const {
  // Compared without a sum, which could wrap around.
  if (offset <= size_ && bytes <= size_ - offset) return Ok();
  return MakeError(ErrorCode::kInvalidArgument, base::Cat(what, " of ", bytes, " bytes at offset ", offset,
                                                          " passes the end of a buffer of ", size_, " bytes"));
}

Status DeviceBuffer::CopyFromHost(const Stream& stream, const void* from, size_t bytes, size_t offset) const {
  LS_TRY(CheckRange("copy from the host", bytes, offset));
  if (bytes == 0) return Ok();
  LS_ASSIGN(ActiveContext active, ActiveContext::Enter(context_));
  return DriverStatus(*context_.api, context_.api->MemcpyHtoDAsync(pointer_ + offset, from, bytes, stream.handle()),
                      "cuMemcpyHtoDAsync");
}

Status DeviceBuffer::CopyToHost(const Stream& stream, void* to, size_t bytes, size_t offset) const {
  LS_TRY(CheckRange("copy to the host", bytes, offset));
  if (bytes == 0) return Ok();
  LS_ASSIGN(ActiveContext active, ActiveContext::Enter(context_));
  return DriverStatus(*context_.api, context_.api->MemcpyDtoHAsync(to, pointer_ + offset, bytes, stream.handle()),
                      "cuMemcpyDtoHAsync");
}

Status DeviceBuffer::FillBytes(const Stream& stream, uint8_t value) const {
  if (size_ == 0) return Ok();
  LS_ASSIGN(ActiveContext active, ActiveContext::Enter(context_));
  return DriverStatus(*context_.api, context_.api->MemsetD8Async(pointer_, value, size_, stream.handle()),
                      "cuMemsetD8Async");
}

Status DeviceBuffer::FillWords(const Stream& stream, uint32_t value) const {
  if (size_ % 4 != 0) {
    return MakeError(ErrorCode::kInvalidArgument,
                     base::Cat("a buffer of ", size_, " bytes cannot be filled with 4-byte words"));
  }
  if (size_ == 0) return Ok();
  LS_ASSIGN(ActiveContext active, ActiveContext::Enter(context_));
  return DriverStatus(*context_.api, context_.api->MemsetD32Async(pointer_, value, size_ / 4, stream.handle()),
                      "cuMemsetD32Async");
}

}  // namespace laneshift::device
