#include "measure/guarded_buffer.h"

#include <algorithm>

#include "base/text.h"
#include "device/driver_error.h"

namespace laneshift::measure {
namespace {

constexpr uint8_t kRedZone = 0xa5;

}  // namespace

Result<GuardedBuffer> GuardedBuffer::Allocate(device::Context context, const device::Stream& stream, size_t bytes,
                                              size_t red_zone_bytes) {
  if (bytes == 0) red_zone_bytes = 0;
  LS_ASSIGN(device::DeviceBuffer buffer, device::DeviceBuffer::Allocate(context, bytes + 2 * red_zone_bytes));
  if (red_zone_bytes > 0) LS_TRY(buffer.FillBytes(stream, kRedZone));
  return GuardedBuffer(std::move(buffer), bytes, red_zone_bytes);
}

Status GuardedBuffer::CopyFromHost(const device::Stream& stream, const void* from) const {
  return size_ == 0 ? Ok() : buffer_.CopyFromHost(stream, from, size_, red_zone_bytes_);
}

Status GuardedBuffer::CopyToHost(const device::Stream& stream, void* to) const {
  return size_ == 0 ? Ok() : buffer_.CopyToHost(stream, to, size_, red_zone_bytes_);
}

Status GuardedBuffer::CopyFrom(const device::Stream& stream, const GuardedBuffer& other) const {
  if (size_ == 0) return Ok();
  const device::Context context = stream.context();
  LS_ASSIGN(const device::ActiveContext active, device::ActiveContext::Enter(context));
  return device::DriverStatus(*context.api,
                              context.api->MemcpyDtoDAsync(pointer(), other.pointer(), size_, stream.handle()),
                              "cuMemcpyDtoDAsync");
}

Status GuardedBuffer::FillBytes(const device::Stream& stream, uint8_t value) const {
  if (size_ == 0) return Ok();
  const device::Context context = stream.context();
  LS_ASSIGN(const device::ActiveContext active, device::ActiveContext::Enter(context));
  return device::DriverStatus(*context.api, context.api->MemsetD8Async(pointer(), value, size_, stream.handle()),
                              "cuMemsetD8Async");
}

Result<std::optional<std::string>> GuardedBuffer::Damage(const device::Stream& stream) const {
  std::optional<std::string> damage;
  if (red_zone_bytes_ == 0) return damage;
  std::vector<uint8_t> before(red_zone_bytes_), after(red_zone_bytes_);
  LS_TRY(buffer_.CopyToHost(stream, before.data(), before.size(), 0));
  LS_TRY(buffer_.CopyToHost(stream, after.data(), after.size(), red_zone_bytes_ + size_));
  LS_TRY(stream.Synchronize());
  const auto touched = [](uint8_t byte) { return byte != kRedZone; };
  if (const auto at = std::find_if(before.rbegin(), before.rend(), touched); at != before.rend()) {
    damage = base::Cat(at - before.rbegin() + 1, " bytes before its beginning");
  } else if (const auto past = std::find_if(after.begin(), after.end(), touched); past != after.end()) {
    damage = base::Cat(past - after.begin(), " bytes after its end");
  }
  return damage;
}

}  // namespace laneshift::measure
