// Errors, devices and memory of the emulated CUDA runtime.

#include <cstring>

#include "emulator/cudart/runtime_bodies.h"

namespace laneshift::emulator::runtime {
namespace {

thread_local CudaError last_error = 0;

CuDevicePtr Address(const void* pointer) { return reinterpret_cast<CuDevicePtr>(pointer); }

int AttributeOf(int attribute) {
  int value = 0;
  driver::DeviceGetAttribute(&value, static_cast<CuDeviceAttribute>(attribute), 0);
  return value;
}

struct OwnError {
  CudaError error;
  const char *name, *text;
};
constexpr OwnError kOwnErrors[] = {
    {0, "cudaSuccess", "no error"},
    {kCudaInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {kCudaInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {kCudaInvalidCopyKind, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {kCudaInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
};

}  // namespace

CuResult Enter() {
  device::CuContext current = nullptr;
  driver::CtxGetCurrent(&current);
  if (current != nullptr) return device::kCuSuccess;
  if (const CuResult bad = driver::Init(0); bad != device::kCuSuccess) return bad;
  // The reference is the runtime's own, taken once and kept until the program ends or resets the device.
  int active = 0;
  unsigned flags = 0;
  driver::DevicePrimaryCtxGetState(0, &flags, &active);
  device::CuContext primary = nullptr;
  if (const CuResult bad = driver::DevicePrimaryCtxRetain(&primary, 0); bad != device::kCuSuccess) return bad;
  if (active != 0) driver::DevicePrimaryCtxRelease(0);
  return driver::CtxSetCurrent(primary);
}

CudaError Remember(int error) {
  // "Not ready" is an answer, not an error.
  if (error != 0 && error != device::kCuErrorNotReady) last_error = error;
  return error;
}

// Opens a function that needs the device.
#define LS_ENTER() \
  if (const CuResult bad = Enter(); bad != device::kCuSuccess) return Remember(bad)

CudaError body::GetLastError() {
  const CudaError error = last_error;
  last_error = 0;
  return error;
}
CudaError body::PeekAtLastError() { return last_error; }
const char* GetErrorName(CudaError error) {
  for (const OwnError& own : kOwnErrors) {
    if (own.error == error) return own.name;
  }
  const char* name = nullptr;
  driver::GetErrorName(static_cast<CuResult>(error), &name);
  return name != nullptr ? name : "unrecognized error code";
}
const char* GetErrorString(CudaError error) {
  for (const OwnError& own : kOwnErrors) {
    if (own.error == error) return own.text;
  }
  const char* text = nullptr;
  driver::GetErrorString(static_cast<CuResult>(error), &text);
  return text != nullptr ? text : "unrecognized error code";
}
CudaError body::RuntimeGetVersion(int* version) { return Remember(driver::DriverGetVersion(version)); }
CudaError body::DriverGetVersion(int* version) { return Remember(driver::DriverGetVersion(version)); }

CudaError body::GetDeviceCount(int* count) { return *count = 1, 0; }
CudaError body::GetDevice(int* device) { return *device = 0, 0; }
CudaError body::SetDevice(int device) {
  if (device != 0) return Remember(device::kCuErrorInvalidDevice);
  return Remember(Enter());
}
CudaError body::InitDevice(int device, unsigned, unsigned) { return SetDevice(device); }
CudaError body::SetDeviceFlags(unsigned) { return 0; }
CudaError body::DeviceGetAttribute(int* value, CuDeviceAttribute attribute, int device) {
  return Remember(driver::DeviceGetAttribute(value, attribute, device));
}
CudaError body::GetDeviceProperties(DeviceProperties* properties, int device) {
  LS_ENTER();
  if (device != 0) return Remember(device::kCuErrorInvalidDevice);
  DeviceProperties made = {};
  driver::DeviceGetName(made.name, sizeof made.name, 0);
  driver::DeviceGetUuid(&made.uuid, 0);
  driver::DeviceTotalMem(&made.total_global, 0);
  struct {
    int attribute;
    int DeviceProperties::*member;
  } const ints[] = {
      {12, &DeviceProperties::registers_per_block},
      {10, &DeviceProperties::warp_size},
      {1, &DeviceProperties::max_threads_per_block},
      {75, &DeviceProperties::major},
      {76, &DeviceProperties::minor},
      {16, &DeviceProperties::multiprocessors},
      {19, &DeviceProperties::can_map_host},
      {31, &DeviceProperties::concurrent_kernels},
      {32, &DeviceProperties::ecc},
      {33, &DeviceProperties::pci_bus},
      {40, &DeviceProperties::copy_engines},
      {41, &DeviceProperties::unified_addressing},
      {37, &DeviceProperties::bus_bits},
      {38, &DeviceProperties::l2_bytes},
      {39, &DeviceProperties::threads_per_multiprocessor},
      {78, &DeviceProperties::stream_priorities},
      {79, &DeviceProperties::global_l1},
      {80, &DeviceProperties::local_l1},
      {82, &DeviceProperties::registers_per_multiprocessor},
      {83, &DeviceProperties::managed_memory},
      {89, &DeviceProperties::concurrent_managed},
      {90, &DeviceProperties::preemption},
      {91, &DeviceProperties::registered_host_pointers},
      {95, &DeviceProperties::cooperative_launch},
      {106, &DeviceProperties::blocks_per_multiprocessor},
      {99, &DeviceProperties::host_register},
      {115, &DeviceProperties::memory_pools},
      {120, &DeviceProperties::cluster_launch},
      {129, &DeviceProperties::unified_functions},
  };
  for (const auto& row : ints) made.*row.member = AttributeOf(row.attribute);
  struct {
    int attribute;
    size_t DeviceProperties::*member;
  } const sizes[] = {
      {8, &DeviceProperties::shared_per_block},
      {11, &DeviceProperties::pitch},
      {9, &DeviceProperties::total_const},
      {14, &DeviceProperties::texture_alignment},
      {51, &DeviceProperties::texture_pitch_alignment},
      {81, &DeviceProperties::shared_per_multiprocessor},
      {97, &DeviceProperties::shared_per_block_optin},
      {111, &DeviceProperties::reserved_shared_per_block},
  };
  for (const auto& row : sizes) made.*row.member = static_cast<size_t>(AttributeOf(row.attribute));
  for (int d = 0; d < 3; ++d) {
    made.max_threads_dim[d] = AttributeOf(2 + d);
    made.max_grid[d] = AttributeOf(5 + d);
  }
  return *properties = made, 0;
}
CudaError body::GetDevicePropertiesV2(DeviceProperties* properties, int device) {
  // Programs built for CUDA 12 know another layout of the same length class; writing ours would lie to them.
  return properties == nullptr || device != 0 ? Remember(device::kCuErrorInvalidValue)
                                              : Remember(device::kCuErrorNotSupported);
}
CudaError body::DeviceSynchronize() {
  LS_ENTER();
  return Remember(driver::CtxSynchronize());
}
CudaError body::DeviceReset() { return Remember(driver::DevicePrimaryCtxReset(0)); }
CudaError body::DeviceSetLimit(int limit, size_t value) {
  LS_ENTER();
  return Remember(driver::CtxSetLimit(limit, value));
}
CudaError body::DeviceGetLimit(size_t* value, int limit) {
  LS_ENTER();
  return Remember(driver::CtxGetLimit(value, limit));
}
CudaError body::DeviceSetCacheConfig(int) { return 0; }
CudaError body::DeviceGetStreamPriorityRange(int* least, int* greatest) {
  return Remember(driver::CtxGetStreamPriorityRange(least, greatest));
}
CudaError body::DeviceCanAccessPeer(int* can, int device, int peer) {
  return Remember(driver::DeviceCanAccessPeer(can, device, peer));
}
CudaError body::DeviceGetDefaultMemPool(CuMemoryPool* pool, int device) {
  LS_ENTER();
  return Remember(driver::DeviceGetDefaultMemPool(pool, device));
}
CudaError body::GetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                             unsigned long long flags, int* status) {
  LS_ENTER();
  driver::CuProcAddressStatus found = driver::kCuProcNotFound;
  const CuResult result = driver::GetProcAddress(symbol, function, static_cast<int>(version), flags, &found);
  if (status != nullptr) *status = found;
  return Remember(result);
}
CudaError body::GetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags, int* status) {
  return GetDriverEntryPointByVersion(symbol, function, 13000, flags, status);
}
CudaError body::ProfilerStart() { return 0; }
CudaError body::ProfilerStop() { return 0; }

// ---- memory ----

CudaError body::Malloc(void** pointer, size_t bytes) {
  LS_ENTER();
  if (bytes == 0 && pointer != nullptr) return *pointer = nullptr, 0;
  return Remember(driver::MemAlloc(reinterpret_cast<CuDevicePtr*>(pointer), bytes));
}
CudaError body::MallocManaged(void** pointer, size_t bytes, unsigned flags) {
  LS_ENTER();
  return Remember(driver::MemAllocManaged(reinterpret_cast<CuDevicePtr*>(pointer), bytes, flags));
}
CudaError body::MallocHost(void** pointer, size_t bytes) {
  LS_ENTER();
  return Remember(driver::MemAllocHost(pointer, bytes));
}
CudaError body::HostAlloc(void** pointer, size_t bytes, unsigned) { return MallocHost(pointer, bytes); }
CudaError body::HostGetDevicePointer(void** device, void* host, unsigned flags) {
  LS_ENTER();
  return Remember(driver::MemHostGetDevicePointer(reinterpret_cast<CuDevicePtr*>(device), host, flags));
}
CudaError body::HostRegister(void* host, size_t bytes, unsigned flags) {
  LS_ENTER();
  return Remember(driver::MemHostRegister(host, bytes, flags));
}
CudaError body::HostUnregister(void* host) {
  LS_ENTER();
  return Remember(driver::MemHostUnregister(host));
}
CudaError body::MallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  LS_ENTER();
  return Remember(driver::MemAllocPitch(reinterpret_cast<CuDevicePtr*>(pointer), pitch, width, height, 16));
}
CudaError body::MallocAsync(void** pointer, size_t bytes, CuStream stream) {
  LS_ENTER();
  return Remember(driver::MemAllocAsync(reinterpret_cast<CuDevicePtr*>(pointer), bytes, stream));
}
CudaError body::FreeAsync(void* pointer, CuStream stream) {
  LS_ENTER();
  return Remember(driver::MemFreeAsync(Address(pointer), stream));
}
CudaError body::Free(void* pointer) {
  LS_ENTER();
  return Remember(driver::MemFree(Address(pointer)));
}
CudaError body::FreeHost(void* pointer) {
  LS_ENTER();
  return Remember(driver::MemFreeHost(pointer));
}
CudaError body::MemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  LS_ENTER();
  return Remember(driver::MemGetInfo(free_bytes, total_bytes));
}

CudaError body::Memcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, CopyKind kind, CuStream stream) {
  LS_ENTER();
  if (kind < kHostToHost || kind > kByAddress) return Remember(kCudaInvalidCopyKind);
  const bool to_device = kind == kHostToDevice || kind == kDeviceToDevice;
  const bool from_device = kind == kDeviceToHost || kind == kDeviceToDevice;
  driver::CuMemcpy2D copy = {};
  copy.from_type = kind == kByAddress ? driver::kCuMemoryUnified
                   : from_device      ? driver::kCuMemoryDevice
                                      : driver::kCuMemoryHost;
  copy.to_type = kind == kByAddress ? driver::kCuMemoryUnified
                 : to_device        ? driver::kCuMemoryDevice
                                    : driver::kCuMemoryHost;
  copy.from_host = from, copy.from_device = Address(from), copy.from_pitch = from_pitch;
  copy.to_host = to, copy.to_device = Address(to), copy.to_pitch = to_pitch;
  copy.width = width, copy.height = height;
  return Remember(driver::Memcpy2DAsync(&copy, stream));
}
CudaError body::Memcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                         CopyKind kind) {
  return body::Memcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, nullptr);
}
CudaError body::MemcpyAsync(void* to, const void* from, size_t bytes, CopyKind kind, CuStream stream) {
  return body::Memcpy2DAsync(to, bytes, from, bytes, bytes, 1, kind, stream);
}
CudaError body::Memcpy(void* to, const void* from, size_t bytes, CopyKind kind) {
  return body::MemcpyAsync(to, from, bytes, kind, nullptr);
}
CudaError body::MemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes, size_t offset, CopyKind kind,
                                    CuStream stream) {
  CuDevicePtr variable = 0;
  size_t size = 0;
  if (const CudaError bad = FindVariable(symbol, &variable, &size); bad != 0) return Remember(bad);
  if (offset > size || bytes > size - offset) return Remember(device::kCuErrorInvalidValue);
  return body::MemcpyAsync(reinterpret_cast<void*>(variable + offset), from, bytes, kind, stream);
}
CudaError body::MemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset, CopyKind kind) {
  return body::MemcpyToSymbolAsync(symbol, from, bytes, offset, kind, nullptr);
}
CudaError body::MemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset, CopyKind kind,
                                      CuStream stream) {
  CuDevicePtr variable = 0;
  size_t size = 0;
  if (const CudaError bad = FindVariable(symbol, &variable, &size); bad != 0) return Remember(bad);
  if (offset > size || bytes > size - offset) return Remember(device::kCuErrorInvalidValue);
  return body::MemcpyAsync(to, reinterpret_cast<const void*>(variable + offset), bytes, kind, stream);
}
CudaError body::MemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset, CopyKind kind) {
  return body::MemcpyFromSymbolAsync(to, symbol, bytes, offset, kind, nullptr);
}
CudaError body::GetSymbolAddress(void** pointer, const void* symbol) {
  size_t bytes = 0;
  return Remember(FindVariable(symbol, reinterpret_cast<CuDevicePtr*>(pointer), &bytes));
}
CudaError body::GetSymbolSize(size_t* bytes, const void* symbol) {
  CuDevicePtr pointer = 0;
  return Remember(FindVariable(symbol, &pointer, bytes));
}
CudaError body::Memset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height, CuStream stream) {
  LS_ENTER();
  return Remember(
      driver::MemsetD2D8Async(Address(to), pitch, static_cast<unsigned char>(value), width, height, stream));
}
CudaError body::Memset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return Memset2DAsync(to, pitch, value, width, height, nullptr);
}
CudaError body::MemsetAsync(void* to, int value, size_t bytes, CuStream stream) {
  return Memset2DAsync(to, bytes, value, bytes, 1, stream);
}
CudaError body::Memset(void* to, int value, size_t bytes) { return MemsetAsync(to, value, bytes, nullptr); }

CudaError body::PointerGetAttributes(PointerAttributes* attributes, const void* pointer) {
  LS_ENTER();
  *attributes = {};
  driver::CuMemoryType type = {};
  unsigned char managed = 0;
  if (driver::PointerGetAttribute(&type, driver::kCuPointerMemoryType, Address(pointer)) != device::kCuSuccess) {
    attributes->device = -2;
    attributes->host_pointer = const_cast<void*>(pointer);
    return 0;
  }
  driver::PointerGetAttribute(&managed, driver::kCuPointerIsManaged, Address(pointer));
  attributes->type = managed != 0 ? 3 : type;
  attributes->device_pointer = const_cast<void*>(pointer);
  return Remember(
      driver::PointerGetAttribute(&attributes->host_pointer, driver::kCuPointerHostPointer, Address(pointer)));
}

}  // namespace laneshift::emulator::runtime
