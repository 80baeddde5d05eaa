// Memory of the emulated driver: allocations, pools, what is known of a pointer.

#include <cstring>

#include "emulator/driver/driver_bodies.h"
#include "emulator/driver/driver_state.h"

namespace laneshift::emulator::driver::body {

using namespace device;  // NOLINT: the driver's own types and codes
namespace {

constexpr size_t kPitchAlign = 512;
constexpr int kPoolUsed = 7, kPoolUsedHigh = 8;  // attributes that cannot be set to anything but 0

CuResult AllocateShared(void** pointer, size_t bytes, MemoryKind kind) {
  LS_READY();
  if (bytes == 0 || pointer == nullptr) return kCuErrorInvalidValue;
  const Allocation* allocation = state.memory->AllocateShared(bytes, kind);
  if (allocation == nullptr) return kCuErrorOutOfMemory;
  return *pointer = reinterpret_cast<void*>(allocation->address()), kCuSuccess;
}

CuResult FreeOfKind(uint64_t address, MemoryKind kind) {
  LS_READY();
  if (const CuResult bad = state.Settle(); bad != kCuSuccess) return bad;
  const Allocation* allocation = state.memory->Find(address, 1);
  if (allocation == nullptr || allocation->kind() != kind || allocation->address() != address)
    return kCuErrorInvalidValue;
  return state.memory->Free(address), kCuSuccess;
}

bool KnownPool(DriverState& state, CuMemoryPool pool) {
  return reinterpret_cast<MemoryPool*>(pool) == &state.default_pool || state.pools.contains(pool);
}

// The value of an attribute of a pointer as bytes; 0 bytes: unknown attribute.
size_t Describe(DriverState& state, const Allocation& allocation, CuPointerAttribute attribute, CuDevicePtr pointer,
                void* value) {
  const auto put = [value](auto known) { return std::memcpy(value, &known, sizeof known), sizeof known; };
  const bool on_host = allocation.kind() != MemoryKind::kDevice;
  switch (attribute) {
    case kCuPointerContext:
      return put(state.CurrentContext());
    case kCuPointerMemoryType: {
      const bool host = on_host && allocation.kind() != MemoryKind::kManaged;
      return put(host ? kCuMemoryHost : kCuMemoryDevice);
    }
    case kCuPointerDevicePointer:
      return put(pointer);
    case kCuPointerHostPointer:
      return put(on_host ? pointer : CuDevicePtr{0});
    case kCuPointerSyncMemops:
      return put(1u);
    case kCuPointerBufferId:
    case kCuPointerRangeStart:
      return put(allocation.address());
    case kCuPointerIsManaged:
      return put(static_cast<unsigned char>(allocation.kind() == MemoryKind::kManaged));
    case kCuPointerDeviceOrdinal:
      return put(0);
    case kCuPointerRangeSize:
      return put(allocation.bytes());
    case kCuPointerMapped:
      return put(static_cast<unsigned char>(1));
    case kCuPointerAllowedHandleTypes:
      return put(uint64_t{0});
    case kCuPointerAccessFlags:
      return put(3);  // reads and writes
    case kCuPointerMempool:
      return put(CuMemoryPool{nullptr});
  }
  return 0;
}

}  // namespace

CuResult MemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  LS_READY();
  *total_bytes = state.memory->capacity();
  *free_bytes = state.memory->capacity() - state.memory->used();
  return kCuSuccess;
}
CuResult MemAlloc(CuDevicePtr* pointer, size_t bytes) {
  LS_READY();
  if (bytes == 0 || pointer == nullptr) return kCuErrorInvalidValue;
  const Allocation* allocation = state.memory->Allocate(bytes);
  if (allocation == nullptr) return kCuErrorOutOfMemory;
  return *pointer = allocation->address(), kCuSuccess;
}
CuResult MemAllocPitch(CuDevicePtr* pointer, size_t* pitch, size_t width, size_t height, unsigned element) {
  if (width == 0 || height == 0 || width > (size_t{1} << 40) || height > (size_t{1} << 40) / width ||
      (element != 4 && element != 8 && element != 16)) {
    return kCuErrorInvalidValue;
  }
  *pitch = (width + kPitchAlign - 1) / kPitchAlign * kPitchAlign;
  return MemAlloc(pointer, *pitch * height);
}
CuResult MemFree(CuDevicePtr pointer) {
  LS_READY();
  if (pointer == 0) return kCuSuccess;
  if (const CuResult bad = state.Settle(); bad != kCuSuccess) return bad;
  const Allocation* allocation = state.memory->Find(pointer, 1);
  if (allocation == nullptr || allocation->kind() == MemoryKind::kHost || allocation->kind() == MemoryKind::kRegistered)
    return kCuErrorInvalidValue;
  return state.memory->Free(pointer) ? kCuSuccess : kCuErrorInvalidValue;
}
CuResult MemAllocManaged(CuDevicePtr* pointer, size_t bytes, unsigned) {
  void* shared = nullptr;
  const CuResult result = AllocateShared(&shared, bytes, MemoryKind::kManaged);
  if (result == kCuSuccess) *pointer = reinterpret_cast<CuDevicePtr>(shared);
  return result;
}
CuResult MemAllocHost(void** pointer, size_t bytes) { return AllocateShared(pointer, bytes, MemoryKind::kHost); }
CuResult MemHostAlloc(void** pointer, size_t bytes, unsigned) {
  return AllocateShared(pointer, bytes, MemoryKind::kHost);
}
CuResult MemFreeHost(void* pointer) {
  return pointer == nullptr ? kCuSuccess : FreeOfKind(reinterpret_cast<uint64_t>(pointer), MemoryKind::kHost);
}
CuResult MemHostGetDevicePointer(CuDevicePtr* device, void* host, unsigned) {
  LS_READY();
  const auto address = reinterpret_cast<uint64_t>(host);
  const Allocation* allocation = state.memory->Find(address, 1);
  if (allocation == nullptr || allocation->kind() == MemoryKind::kDevice) return kCuErrorInvalidValue;
  return *device = address, kCuSuccess;
}
CuResult MemHostGetFlags(unsigned* flags, void* host) {
  CuDevicePtr device = 0;
  if (const CuResult bad = MemHostGetDevicePointer(&device, host, 0); bad != kCuSuccess) return bad;
  return *flags = 2, kCuSuccess;  // mapped
}
CuResult MemHostRegister(void* host, size_t bytes, unsigned) {
  LS_READY();
  return state.memory->Register(host, bytes) == nullptr ? kCuErrorInvalidValue : kCuSuccess;
}
CuResult MemHostUnregister(void* host) { return FreeOfKind(reinterpret_cast<uint64_t>(host), MemoryKind::kRegistered); }

CuResult MemAllocFromPoolAsync(CuDevicePtr* pointer, size_t bytes, CuMemoryPool pool, CuStream stream) {
  LS_READY();
  DriverStream* known = nullptr;
  if (const CuResult bad = state.FindStream(stream, known); bad != kCuSuccess) return bad;
  if (!KnownPool(state, pool)) return kCuErrorInvalidValue;
  // The address would have to be promised at capture and kept at every launch.
  if (known != nullptr && known->capture) return kCuErrorStreamCaptureUnsupported;
  return MemAlloc(pointer, bytes);
}
CuResult MemAllocAsync(CuDevicePtr* pointer, size_t bytes, CuStream stream) {
  LS_READY();
  return MemAllocFromPoolAsync(pointer, bytes, reinterpret_cast<CuMemoryPool>(state.current_pool), stream);
}
CuResult MemFreeAsync(CuDevicePtr pointer, CuStream stream) {
  LS_READY();
  DriverStream* known = nullptr;
  if (const CuResult bad = state.FindStream(stream, known); bad != kCuSuccess) return bad;
  if (known != nullptr && known->capture) return kCuErrorStreamCaptureUnsupported;
  return MemFree(pointer);
}
CuResult DeviceGetDefaultMemPool(CuMemoryPool* pool, CuDevice device) {
  DriverCall call;
  if (device != 0) return kCuErrorInvalidDevice;
  return *pool = reinterpret_cast<CuMemoryPool>(&call.state.default_pool), kCuSuccess;
}
CuResult DeviceGetMemPool(CuMemoryPool* pool, CuDevice device) {
  DriverCall call;
  if (device != 0) return kCuErrorInvalidDevice;
  return *pool = reinterpret_cast<CuMemoryPool>(call.state.current_pool), kCuSuccess;
}
CuResult DeviceSetMemPool(CuDevice device, CuMemoryPool pool) {
  DriverCall call;
  if (device != 0) return kCuErrorInvalidDevice;
  if (!KnownPool(call.state, pool)) return kCuErrorInvalidValue;
  return call.state.current_pool = reinterpret_cast<MemoryPool*>(pool), kCuSuccess;
}
CuResult MemPoolCreate(CuMemoryPool* pool, const void* properties) {
  LS_READY();
  if (pool == nullptr || properties == nullptr) return kCuErrorInvalidValue;
  return *pool = Keep<CuMemoryPool>(state.pools, std::make_unique<MemoryPool>()), kCuSuccess;
}
CuResult MemPoolDestroy(CuMemoryPool pool) {
  LS_READY();
  if (reinterpret_cast<MemoryPool*>(pool) == state.current_pool) state.current_pool = &state.default_pool;
  return state.pools.erase(pool) != 0 ? kCuSuccess : kCuErrorInvalidValue;
}
CuResult MemPoolGetAttribute(CuMemoryPool pool, int attribute, void* value) {
  LS_READY();
  if (!KnownPool(state, pool) || attribute < 1 || attribute > kPoolUsedHigh) return kCuErrorInvalidValue;
  const uint64_t known = reinterpret_cast<MemoryPool*>(pool)->attributes[attribute];
  // The first three are int, the rest 64 bits.
  return std::memcpy(value, &known, attribute <= 3 ? 4 : 8), kCuSuccess;
}
CuResult MemPoolSetAttribute(CuMemoryPool pool, int attribute, void* value) {
  LS_READY();
  if (!KnownPool(state, pool) || attribute < 1 || attribute > kPoolUsedHigh || attribute == kPoolUsed)
    return kCuErrorInvalidValue;
  uint64_t given = 0;
  std::memcpy(&given, value, attribute <= 3 ? 4 : 8);
  return reinterpret_cast<MemoryPool*>(pool)->attributes[attribute] = given, kCuSuccess;
}
CuResult MemPoolSetAccess(CuMemoryPool pool, const void*, size_t) {
  LS_READY();
  return KnownPool(state, pool) ? kCuSuccess : kCuErrorInvalidValue;
}
CuResult MemPoolTrimTo(CuMemoryPool pool, size_t) {
  LS_READY();
  return KnownPool(state, pool) ? kCuSuccess : kCuErrorInvalidValue;
}

CuResult MemGetAddressRange(CuDevicePtr* base, size_t* bytes, CuDevicePtr pointer) {
  LS_READY();
  const Allocation* allocation = state.memory->Find(pointer, 1);
  if (allocation == nullptr) return kCuErrorNotFound;
  if (base != nullptr) *base = allocation->address();
  if (bytes != nullptr) *bytes = allocation->bytes();
  return kCuSuccess;
}
// Advice and prefetches change speed, of which the emulator has no notion; the range must be right all the same.
CuResult MemAdvise(CuDevicePtr pointer, size_t bytes, int, CuDevice) {
  LS_READY();
  return state.memory->Find(pointer, bytes) == nullptr ? kCuErrorInvalidValue : kCuSuccess;
}
CuResult MemAdviseV2(CuDevicePtr pointer, size_t bytes, int advice, CuMemLocation) {
  return MemAdvise(pointer, bytes, advice, 0);
}
CuResult MemPrefetchAsync(CuDevicePtr pointer, size_t bytes, CuDevice, CuStream) {
  return MemAdvise(pointer, bytes, 0, 0);
}
CuResult MemPrefetchAsyncV2(CuDevicePtr pointer, size_t bytes, CuMemLocation, unsigned, CuStream) {
  return MemAdvise(pointer, bytes, 0, 0);
}
CuResult StreamAttachMemAsync(CuStream, CuDevicePtr pointer, size_t, unsigned) { return MemAdvise(pointer, 1, 0, 0); }

CuResult PointerGetAttribute(void* value, CuPointerAttribute attribute, CuDevicePtr pointer) {
  LS_READY();
  const Allocation* allocation = state.memory->Find(pointer, 1);
  if (allocation == nullptr || value == nullptr) return kCuErrorInvalidValue;
  return Describe(state, *allocation, attribute, pointer, value) != 0 ? kCuSuccess : kCuErrorInvalidValue;
}
CuResult PointerGetAttributes(unsigned count, CuPointerAttribute* attributes, void** values, CuDevicePtr pointer) {
  LS_READY();
  const Allocation* allocation = state.memory->Find(pointer, 1);
  if (allocation != nullptr) {
    for (unsigned i = 0; i < count; ++i) {
      if (Describe(state, *allocation, attributes[i], pointer, values[i]) == 0) return kCuErrorInvalidValue;
    }
    return kCuSuccess;
  }
  // Memory that the driver does not know is no error here: its attributes are zero.
  for (unsigned i = 0; i < count; ++i) {
    uint64_t largest = 0;
    const Allocation unknown(reinterpret_cast<uint8_t*>(&largest), sizeof largest, MemoryKind::kRegistered);
    const size_t bytes = Describe(state, unknown, attributes[i], 0, &largest);
    if (bytes == 0) return kCuErrorInvalidValue;
    std::memset(values[i], 0, bytes);
    if (const int none = -2; attributes[i] == kCuPointerDeviceOrdinal) std::memcpy(values[i], &none, sizeof none);
  }
  return kCuSuccess;
}
CuResult PointerSetAttribute(const void*, CuPointerAttribute attribute, CuDevicePtr pointer) {
  LS_READY();
  if (attribute != kCuPointerSyncMemops || state.memory->Find(pointer, 1) == nullptr) return kCuErrorInvalidValue;
  return kCuSuccess;
}

}  // namespace laneshift::emulator::driver::body
