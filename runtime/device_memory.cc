#include "laneshift/device_memory.h"

#include <utility>

#include "base/host_memory.h"
#include "base/text.h"
#include "device/buffer.h"
#include "device/stream.h"
#include "runtime/engine_core.h"

namespace laneshift {

struct DeviceMemory::Impl {
  std::shared_ptr<runtime::EngineCore> core;  // first: destroyed after the buffer
  device::DeviceBuffer buffer;

  device::Stream DefaultStream() const { return device::Stream::Borrow(core->opened.device.context(), nullptr); }
};

namespace {

Error NullPointer(const char* what, size_t bytes) {
  return MakeError(ErrorCode::kInvalidArgument,
                   base::Cat("pointer '", what, "' of a copy of ", bytes, " bytes is null; it must be host memory"));
}

Error MovedFrom() { return MakeError(ErrorCode::kInvalidArgument, "this DeviceMemory was moved from"); }

}  // namespace

DeviceMemory::DeviceMemory(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DeviceMemory::DeviceMemory(DeviceMemory&&) noexcept = default;
DeviceMemory& DeviceMemory::operator=(DeviceMemory&&) noexcept = default;
DeviceMemory::~DeviceMemory() = default;

Result<DeviceMemory> DeviceMemory::Allocate(const Engine& engine, size_t bytes) {
  return base::WithinHostMemory([&]() -> Result<DeviceMemory> {
    std::shared_ptr<runtime::EngineCore> core = engine.impl_;
    LS_ASSIGN(device::DeviceBuffer buffer, device::DeviceBuffer::Allocate(core->opened.device.context(), bytes));
    auto impl = std::make_unique<Impl>(Impl{std::move(core), std::move(buffer)});
    const device::Stream stream = impl->DefaultStream();
    LS_TRY(impl->buffer.FillBytes(stream, 0));
    LS_TRY(stream.Synchronize());
    return DeviceMemory(std::move(impl));
  });
}

void* DeviceMemory::data() const {
  return impl_ == nullptr ? nullptr : reinterpret_cast<void*>(impl_->buffer.pointer());
}

size_t DeviceMemory::size() const { return impl_ == nullptr ? 0 : impl_->buffer.size(); }

Status DeviceMemory::CopyFromHost(const void* from, size_t bytes, size_t offset) const {
  if (bytes == 0) return Ok();
  return base::WithinHostMemory([&]() -> Status {
    if (from == nullptr) return NullPointer("from", bytes);
    if (impl_ == nullptr) return MovedFrom();
    const device::Stream stream = impl_->DefaultStream();
    LS_TRY(impl_->buffer.CopyFromHost(stream, from, bytes, offset));
    return stream.Synchronize();
  });
}

Status DeviceMemory::CopyToHost(void* to, size_t bytes, size_t offset) const {
  if (bytes == 0) return Ok();
  return base::WithinHostMemory([&]() -> Status {
    if (to == nullptr) return NullPointer("to", bytes);
    if (impl_ == nullptr) return MovedFrom();
    const device::Stream stream = impl_->DefaultStream();
    LS_TRY(impl_->buffer.CopyToHost(stream, to, bytes, offset));
    return stream.Synchronize();
  });
}

}  // namespace laneshift
