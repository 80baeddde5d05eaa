// Copies and fills of the emulated driver, in one to three dimensions.
//
// Every copy is a CopyRun and every fill a FillRun; what differs between the functions is how they are described.

#include <cstring>

#include "emulator/driver/driver_bodies.h"
#include "emulator/driver/driver_state.h"

namespace laneshift::emulator {

using namespace device;  // NOLINT: the driver's own types and codes
using driver::CuMemoryType;

namespace {

// The bytes of `count` bytes at an address: of the device where it is known there, else the host's own.
uint8_t* Bytes(DriverState& state, CuMemoryType type, uint64_t address, uint64_t count, Allocation*& allocation) {
  allocation = type == driver::kCuMemoryHost ? nullptr : state.memory->Find(address, count);
  if (allocation != nullptr) return allocation->At(address);
  const bool host =
      type == driver::kCuMemoryHost || (type == driver::kCuMemoryUnified && !state.memory->IsDeviceAddress(address));
  return host ? reinterpret_cast<uint8_t*>(address) : nullptr;
}

}  // namespace

CuResult DriverState::OutOfHostMemory() const {
  Notice(DescribeLimit(meter->limits(), FaultKind::kMemoryLimit));
  return kCuErrorOutOfMemory;
}

CuResult DriverState::Copy(const CopyRun& copy) {
  if (copy.width == 0 || copy.height == 0 || copy.depth == 0) return kCuSuccess;
  for (uint64_t z = 0; z < copy.depth; ++z) {
    for (uint64_t y = 0; y < copy.height; ++y) {
      const uint64_t to = copy.to.address + z * copy.to.slice + y * copy.to.pitch;
      const uint64_t from = copy.from.address + z * copy.from.slice + y * copy.from.pitch;
      Allocation *target = nullptr, *source = nullptr;
      uint8_t* target_bytes = Bytes(*this, copy.to.type, to, copy.width, target);
      const uint8_t* source_bytes = Bytes(*this, copy.from.type, from, copy.width, source);
      if (target_bytes == nullptr || source_bytes == nullptr) return kCuErrorInvalidValue;
      if (target != nullptr && !target->TryWrite(to, copy.width)) return OutOfHostMemory();
      std::memmove(target_bytes, source_bytes, copy.width);
    }
  }
  return kCuSuccess;
}

CuResult DriverState::Fill(const FillRun& fill) {
  const uint64_t row = fill.width * fill.element_bytes;
  for (uint64_t y = 0; row != 0 && y < fill.height; ++y) {
    const uint64_t at = fill.address + y * fill.pitch;
    Allocation* allocation = memory->Find(at, row);
    if (allocation == nullptr) return kCuErrorInvalidValue;
    if (!allocation->TryWrite(at, row)) return OutOfHostMemory();
    uint8_t* bytes = allocation->At(at);
    if (fill.element_bytes == 1) {
      std::memset(bytes, static_cast<int>(fill.value), row);
    } else {
      for (uint64_t x = 0; x < fill.width; ++x)
        std::memcpy(bytes + x * fill.element_bytes, &fill.value, fill.element_bytes);
    }
  }
  return kCuSuccess;
}

CopyRun CopyOfRange(CopyEnd to, CopyEnd from, uint64_t bytes) { return {to, from, bytes, 1, 1}; }

std::optional<CopyRun> CopyOf(const driver::CuMemcpy3D& copy) {
  const auto end = [](CuMemoryType type, const void* host, uint64_t device, size_t x, size_t y, size_t z, size_t pitch,
                      size_t height, size_t width, size_t rows) {
    CopyEnd made;
    made.type = type;
    made.pitch = pitch != 0 ? pitch : width;
    made.slice = made.pitch * (height != 0 ? height : rows);
    made.address = (type == driver::kCuMemoryHost ? reinterpret_cast<uint64_t>(host) : device) + x + y * made.pitch +
                   z * made.slice;
    return made;
  };
  if (copy.from_type == driver::kCuMemoryArray || copy.to_type == driver::kCuMemoryArray) return std::nullopt;
  CopyRun run;
  run.to = end(copy.to_type, copy.to_host, copy.to_device, copy.to_x, copy.to_y, copy.to_z, copy.to_pitch,
               copy.to_height, copy.width, copy.height);
  run.from = end(copy.from_type, copy.from_host, copy.from_device, copy.from_x, copy.from_y, copy.from_z,
                 copy.from_pitch, copy.from_height, copy.width, copy.height);
  run.width = copy.width;
  run.height = copy.height;
  run.depth = copy.depth;
  return run;
}

namespace driver::body {
namespace {

CopyEnd Host(const void* pointer) { return {kCuMemoryHost, reinterpret_cast<uint64_t>(pointer), 0, 0}; }
CopyEnd Device(CuDevicePtr pointer) { return {kCuMemoryDevice, pointer, 0, 0}; }
CopyEnd Either(CuDevicePtr pointer) { return {kCuMemoryUnified, pointer, 0, 0}; }

CuResult SubmitCopy(CopyEnd to, CopyEnd from, size_t bytes, CuStream stream) {
  LS_READY();
  return state.Submit(stream, kCuNodeMemcpy, CopyOfRange(to, from, bytes));
}

CuResult SubmitFill(CuDevicePtr to, size_t pitch, uint32_t value, uint32_t element_bytes, size_t width, size_t height,
                    CuStream stream) {
  LS_READY();
  if (to % element_bytes != 0 || width > SIZE_MAX / element_bytes) return kCuErrorInvalidValue;
  return state.Submit(stream, kCuNodeMemset, FillRun{to, pitch, value, element_bytes, width, height});
}

CuMemcpy3D Deepen(const CuMemcpy2D& copy) {
  CuMemcpy3D deep = {};
  deep.from_x = copy.from_x, deep.from_y = copy.from_y, deep.from_type = copy.from_type;
  deep.from_host = copy.from_host, deep.from_device = copy.from_device, deep.from_pitch = copy.from_pitch;
  deep.to_x = copy.to_x, deep.to_y = copy.to_y, deep.to_type = copy.to_type;
  deep.to_host = copy.to_host, deep.to_device = copy.to_device, deep.to_pitch = copy.to_pitch;
  deep.width = copy.width, deep.height = copy.height, deep.depth = 1;
  return deep;
}

}  // namespace

CuResult Memcpy(CuDevicePtr to, CuDevicePtr from, size_t bytes) { return MemcpyAsync(to, from, bytes, nullptr); }
CuResult MemcpyAsync(CuDevicePtr to, CuDevicePtr from, size_t bytes, CuStream stream) {
  return SubmitCopy(Either(to), Either(from), bytes, stream);
}
CuResult MemcpyPeer(CuDevicePtr to, CuContext, CuDevicePtr from, CuContext, size_t bytes) {
  return MemcpyDtoDAsync(to, from, bytes, nullptr);
}
CuResult MemcpyPeerAsync(CuDevicePtr to, CuContext, CuDevicePtr from, CuContext, size_t bytes, CuStream stream) {
  return MemcpyDtoDAsync(to, from, bytes, stream);
}
CuResult MemcpyHtoD(CuDevicePtr to, const void* from, size_t bytes) {
  return MemcpyHtoDAsync(to, from, bytes, nullptr);
}
CuResult MemcpyDtoH(void* to, CuDevicePtr from, size_t bytes) { return MemcpyDtoHAsync(to, from, bytes, nullptr); }
CuResult MemcpyDtoD(CuDevicePtr to, CuDevicePtr from, size_t bytes) {
  return MemcpyDtoDAsync(to, from, bytes, nullptr);
}
CuResult MemcpyHtoDAsync(CuDevicePtr to, const void* from, size_t bytes, CuStream stream) {
  return SubmitCopy(Device(to), Host(from), bytes, stream);
}
CuResult MemcpyDtoHAsync(void* to, CuDevicePtr from, size_t bytes, CuStream stream) {
  return SubmitCopy(Host(to), Device(from), bytes, stream);
}
CuResult MemcpyDtoDAsync(CuDevicePtr to, CuDevicePtr from, size_t bytes, CuStream stream) {
  return SubmitCopy(Device(to), Device(from), bytes, stream);
}
CuResult Memcpy2D(const CuMemcpy2D* copy) { return body::Memcpy2DAsync(copy, nullptr); }
CuResult Memcpy2DUnaligned(const CuMemcpy2D* copy) { return body::Memcpy2DAsync(copy, nullptr); }
CuResult Memcpy2DAsync(const CuMemcpy2D* copy, CuStream stream) {
  if (copy == nullptr) return kCuErrorInvalidValue;
  const CuMemcpy3D deep = Deepen(*copy);
  return body::Memcpy3DAsync(&deep, stream);
}
CuResult Memcpy3D(const CuMemcpy3D* copy) { return body::Memcpy3DAsync(copy, nullptr); }
CuResult Memcpy3DAsync(const CuMemcpy3D* copy, CuStream stream) {
  LS_READY();
  if (copy == nullptr) return kCuErrorInvalidValue;
  const auto run = CopyOf(*copy);
  return run ? state.Submit(stream, kCuNodeMemcpy, *run) : kCuErrorNotSupported;
}

CuResult MemsetD8(CuDevicePtr to, unsigned char value, size_t count) {
  return MemsetD8Async(to, value, count, nullptr);
}
CuResult MemsetD16(CuDevicePtr to, unsigned short value, size_t count) {
  return MemsetD16Async(to, value, count, nullptr);
}
CuResult MemsetD32(CuDevicePtr to, unsigned value, size_t count) { return MemsetD32Async(to, value, count, nullptr); }
CuResult MemsetD8Async(CuDevicePtr to, unsigned char value, size_t count, CuStream stream) {
  return SubmitFill(to, 0, value, 1, count, 1, stream);
}
CuResult MemsetD16Async(CuDevicePtr to, unsigned short value, size_t count, CuStream stream) {
  return SubmitFill(to, 0, value, 2, count, 1, stream);
}
CuResult MemsetD32Async(CuDevicePtr to, unsigned value, size_t count, CuStream stream) {
  return SubmitFill(to, 0, value, 4, count, 1, stream);
}
CuResult MemsetD2D8(CuDevicePtr to, size_t pitch, unsigned char value, size_t width, size_t height) {
  return SubmitFill(to, pitch, value, 1, width, height, nullptr);
}
CuResult MemsetD2D16(CuDevicePtr to, size_t pitch, unsigned short value, size_t width, size_t height) {
  return SubmitFill(to, pitch, value, 2, width, height, nullptr);
}
CuResult MemsetD2D32(CuDevicePtr to, size_t pitch, unsigned value, size_t width, size_t height) {
  return SubmitFill(to, pitch, value, 4, width, height, nullptr);
}
CuResult MemsetD2D8Async(CuDevicePtr to, size_t pitch, unsigned char value, size_t width, size_t height,
                         CuStream stream) {
  return SubmitFill(to, pitch, value, 1, width, height, stream);
}
CuResult MemsetD2D16Async(CuDevicePtr to, size_t pitch, unsigned short value, size_t width, size_t height,
                          CuStream stream) {
  return SubmitFill(to, pitch, value, 2, width, height, stream);
}
CuResult MemsetD2D32Async(CuDevicePtr to, size_t pitch, unsigned value, size_t width, size_t height, CuStream stream) {
  return SubmitFill(to, pitch, value, 4, width, height, stream);
}

}  // namespace driver::body
}  // namespace laneshift::emulator
