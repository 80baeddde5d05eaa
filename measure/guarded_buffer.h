// GuardedBuffer: device memory between two red zones.
//
// Reads beyond the payload are harmless; writes are detected by Damage(). Without red zones it is a plain buffer, which
// suffices for the emulator: it knows the bounds of every allocation itself. Thread-safety: as device::Buffer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/buffer.h"

namespace laneshift::measure {

// Enough for an overrun by a tile's row, and a multiple of every alignment.
constexpr size_t kRedZoneBytes = size_t{64} << 10;

class GuardedBuffer {
 public:
  // Zero bytes: empty, without red zones.
  static Result<GuardedBuffer> Allocate(device::Context context, const device::Stream& stream, size_t bytes,
                                        size_t red_zone_bytes);
  // Of the payload.
  device::CuDevicePtr pointer() const { return buffer_.size() == 0 ? 0 : buffer_.pointer() + red_zone_bytes_; }
  size_t size() const { return size_; }
  size_t red_zone_bytes() const { return red_zone_bytes_; }

  Status CopyFromHost(const device::Stream& stream, const void* from) const;
  Status CopyToHost(const device::Stream& stream, void* to) const;
  // From a buffer of the same size.
  Status CopyFrom(const device::Stream& stream, const GuardedBuffer& other) const;
  Status FillBytes(const device::Stream& stream, uint8_t value) const;

  // Writes into the red zones, in words; waits for the stream.
  Result<std::optional<std::string>> Damage(const device::Stream& stream) const;

 private:
  GuardedBuffer(device::DeviceBuffer buffer, size_t size, size_t red_zone_bytes)
      : buffer_(std::move(buffer)), size_(size), red_zone_bytes_(red_zone_bytes) {}

  device::DeviceBuffer buffer_;
  size_t size_, red_zone_bytes_;
};

}  // namespace laneshift::measure
