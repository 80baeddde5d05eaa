// Device, context, memory, stream, event and tensor-map functions of the emulated driver.

#include <algorithm>
#include <cstring>

#include "emulator/driver_functions.h"
#include "emulator/ptx_instructions.h"
#include "emulator/driver_state.h"
#include "emulator/units/tensor_map.h"

namespace laneshift::emulator::driver {

using namespace device;  // the driver's own types and codes
namespace {

struct Name {
  CuResult result;
  const char *name, *text;
};
constexpr Name kNames[] = {
    {kCuSuccess, "CUDA_SUCCESS", "no error"},
    {kCuErrorInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {kCuErrorOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {kCuErrorNotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {kCuErrorNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {kCuErrorInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {kCuErrorInvalidImage, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {kCuErrorInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {kCuErrorNoBinaryForGpu, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {kCuErrorInvalidPtx, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {kCuErrorUnsupportedPtxVersion, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain"},
    {kCuErrorInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {kCuErrorNotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {kCuErrorNotReady, "CUDA_ERROR_NOT_READY", "device not ready"},
    {kCuErrorIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {kCuErrorLaunchOutOfResources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {kCuErrorLaunchTimeout, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {kCuErrorIllegalInstruction, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered"},
    {kCuErrorMisalignedAddress, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {kCuErrorInvalidAddressSpace, "CUDA_ERROR_INVALID_ADDRESS_SPACE",
     "operation not supported on global/shared address space"},
    {kCuErrorLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {kCuErrorNotSupported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {kCuErrorStreamCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {kCuErrorInvalidClusterSize, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "cluster misconfiguration"},
    {kCuErrorUnknown, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

// A stream of ours, or one of the default streams.
bool KnownStream(DriverState& state, CuStream stream) {
  return reinterpret_cast<uintptr_t>(stream) <= 2 || state.streams.contains(stream);
}
bool Capturing(DriverState& state, CuStream stream) {
  const auto known = state.streams.find(stream);
  return known != state.streams.end() && known->second->capture != nullptr;
}

// Host memory of a range of device memory, for copies.
CuResult Range(DriverState& state, CuStream stream, CuDevicePtr address, size_t bytes, Allocation*& allocation) {
  if (!KnownStream(state, stream)) return kCuErrorInvalidHandle;
  if (Capturing(state, stream)) return kCuErrorStreamCaptureUnsupported;
  allocation = state.memory->Find(address, bytes);
  return allocation == nullptr ? kCuErrorInvalidValue : kCuSuccess;
}

}  // namespace

CuResult Init(unsigned flags) {
  DriverCall call;
  if (flags != 0) return kCuErrorInvalidValue;
  call.state.initialised = true;
  LoadInstructionTable();
  return kCuSuccess;
}
CuResult DriverGetVersion(int* version) {
  if (version == nullptr) return kCuErrorInvalidValue;
  *version = 13000;
  return kCuSuccess;
}
CuResult GetErrorName(CuResult error, const char** name) {
  for (const Name& known : kNames) {
    if (known.result == error) return *name = known.name, kCuSuccess;
  }
  return *name = nullptr, kCuErrorInvalidValue;
}
CuResult GetErrorString(CuResult error, const char** text) {
  for (const Name& known : kNames) {
    if (known.result == error) return *text = known.text, kCuSuccess;
  }
  return *text = nullptr, kCuErrorInvalidValue;
}
CuResult DeviceGetCount(int* count) {
  DriverCall call;
  if (!call.state.initialised) return kCuErrorNotInitialized;
  return *count = 1, kCuSuccess;
}
CuResult DeviceGet(CuDevice* device, int ordinal) {
  DriverCall call;
  if (!call.state.initialised) return kCuErrorNotInitialized;
  if (ordinal != 0) return kCuErrorInvalidDevice;
  return *device = 0, kCuSuccess;
}
CuResult DeviceGetName(char* name, int size, CuDevice device) {
  DriverCall call;
  if (device != 0) return kCuErrorInvalidDevice;
  if (size <= 0) return kCuErrorInvalidValue;
  std::strncpy(name, ProfileOf(call.state.options.profile).name, static_cast<size_t>(size) - 1);
  name[size - 1] = '\0';
  return kCuSuccess;
}
CuResult DeviceGetAttribute(int* value, CuDeviceAttribute attribute, CuDevice device) {
  DriverCall call;
  if (device != 0) return kCuErrorInvalidDevice;
  const DeviceProfile& profile = ProfileOf(call.state.options.profile);
  switch (attribute) {
    case kCuDeviceMaxThreadsPerBlock:
      *value = 1024;
      break;
    case kCuDeviceMaxSharedMemoryPerBlock:
      *value = 48 << 10;
      break;
    case kCuDeviceWarpSize:
      *value = kLanes;
      break;
    case kCuDeviceMaxRegistersPerBlock:
      *value = 65536;
      break;
    case kCuDeviceClockRate:
      *value = profile.clock_khz;
      break;
    case kCuDeviceMultiprocessorCount:
      *value = profile.multiprocessors;
      break;
    case kCuDeviceMemoryClockRate:
      *value = profile.memory_clock_khz;
      break;
    case kCuDeviceGlobalMemoryBusWidth:
      *value = profile.bus_bits;
      break;
    case kCuDeviceL2CacheSize:
      *value = profile.l2_bytes;
      break;
    case kCuDeviceMaxThreadsPerMultiprocessor:
      *value = 2048;
      break;
    case kCuDeviceComputeCapabilityMajor:
      *value = profile.major;
      break;
    case kCuDeviceComputeCapabilityMinor:
      *value = profile.minor;
      break;
    case kCuDeviceMaxSharedMemoryPerMultiprocessor:
      *value = 228 << 10;
      break;
    case kCuDeviceMaxSharedMemoryPerBlockOptin:
      *value = 227 << 10;
      break;
    case kCuDeviceReservedSharedMemoryPerBlock:
      *value = 1 << 10;
      break;
    case kCuDeviceClusterLaunch:
      *value = 1;
      break;
    case kCuDeviceTensorMapAccessSupported:
      *value = 1;
      break;
    default:
      return kCuErrorInvalidValue;  // the argument may be any number
  }
  return kCuSuccess;
}
CuResult DeviceTotalMem(size_t* bytes, CuDevice device) {
  DriverCall call;
  if (device != 0) return kCuErrorInvalidDevice;
  return *bytes = call.state.options.memory_bytes, kCuSuccess;
}
CuResult DevicePrimaryCtxRetain(CuContext* context, CuDevice device) {
  DriverCall call;
  if (!call.state.initialised) return kCuErrorNotInitialized;
  if (device != 0) return kCuErrorInvalidDevice;
  ++call.state.context_references;
  return *context = reinterpret_cast<CuContext>(&call.state), kCuSuccess;
}
CuResult DevicePrimaryCtxRelease(CuDevice device) {
  DriverCall call;
  if (device != 0) return kCuErrorInvalidDevice;
  if (call.state.context_references == 0) return kCuErrorInvalidContext;
  // The last release destroys the context, and with it a sticky error and everything it owns.
  if (--call.state.context_references == 0) call.state.Reset();
  return kCuSuccess;
}
CuResult CtxSetCurrent(CuContext context) {
  DriverCall call;
  if (context != nullptr && (call.state.context_references == 0 || context != reinterpret_cast<CuContext>(&call.state)))
    return kCuErrorInvalidContext;
  call.state.SetContextCurrent(context != nullptr);
  return kCuSuccess;
}
CuResult CtxGetCurrent(CuContext* context) {
  DriverCall call;
  return *context = call.state.ContextIsCurrent() ? reinterpret_cast<CuContext>(&call.state) : nullptr, kCuSuccess;
}
CuResult CtxGetDevice(CuDevice* device) {
  DriverCall call;
  if (!call.state.ContextIsCurrent()) return kCuErrorInvalidContext;
  return *device = 0, kCuSuccess;
}
CuResult CtxSynchronize() {
  DriverCall call;
  return call.Ready();
}

// ---- memory ----

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
CuResult MemFree(CuDevicePtr pointer) {
  LS_READY();
  return pointer == 0 || state.memory->Free(pointer) ? kCuSuccess : kCuErrorInvalidValue;
}
CuResult MemcpyHtoDAsync(CuDevicePtr to, const void* from, size_t bytes, CuStream stream) {
  LS_READY();
  if (bytes == 0) return kCuSuccess;
  Allocation* allocation = nullptr;
  if (const CuResult bad = Range(state, stream, to, bytes, allocation); bad != kCuSuccess) return bad;
  std::memcpy(allocation->At(to), from, bytes);
  allocation->MarkWritten(to, bytes);
  return kCuSuccess;
}
CuResult MemcpyDtoHAsync(void* to, CuDevicePtr from, size_t bytes, CuStream stream) {
  LS_READY();
  if (bytes == 0) return kCuSuccess;
  Allocation* allocation = nullptr;
  if (const CuResult bad = Range(state, stream, from, bytes, allocation); bad != kCuSuccess) return bad;
  std::memcpy(to, allocation->At(from), bytes);
  return kCuSuccess;
}
CuResult MemcpyDtoDAsync(CuDevicePtr to, CuDevicePtr from, size_t bytes, CuStream stream) {
  LS_READY();
  if (bytes == 0) return kCuSuccess;
  Allocation *target = nullptr, *source = nullptr;
  if (const CuResult bad = Range(state, stream, to, bytes, target); bad != kCuSuccess) return bad;
  if (const CuResult bad = Range(state, stream, from, bytes, source); bad != kCuSuccess) return bad;
  std::memmove(target->At(to), source->At(from), bytes);
  target->MarkWritten(to, bytes);
  return kCuSuccess;
}
CuResult MemsetD8Async(CuDevicePtr to, unsigned char value, size_t count, CuStream stream) {
  LS_READY();
  if (count == 0) return kCuSuccess;
  Allocation* allocation = nullptr;
  if (const CuResult bad = Range(state, stream, to, count, allocation); bad != kCuSuccess) return bad;
  std::memset(allocation->At(to), value, count);
  allocation->MarkWritten(to, count);
  return kCuSuccess;
}
CuResult MemsetD32Async(CuDevicePtr to, unsigned value, size_t count, CuStream stream) {
  LS_READY();
  if (count == 0) return kCuSuccess;
  if (to % 4 != 0 || count > SIZE_MAX / 4) return kCuErrorInvalidValue;
  Allocation* allocation = nullptr;
  if (const CuResult bad = Range(state, stream, to, 4 * count, allocation); bad != kCuSuccess) return bad;
  std::fill_n(reinterpret_cast<uint32_t*>(allocation->At(to)), count, value);
  allocation->MarkWritten(to, 4 * count);
  return kCuSuccess;
}

// ---- streams and events ----

CuResult StreamCreate(CuStream* stream, unsigned) {
  LS_READY();
  auto owned = std::make_unique<Stream>();
  *stream = reinterpret_cast<CuStream>(owned.get());
  state.streams[*stream] = std::move(owned);
  return kCuSuccess;
}
CuResult StreamDestroy(CuStream stream) {
  DriverCall call;
  return call.state.streams.erase(stream) != 0 ? kCuSuccess : kCuErrorInvalidHandle;
}
CuResult StreamSynchronize(CuStream stream) {
  LS_READY();
  if (!KnownStream(state, stream)) return kCuErrorInvalidHandle;
  return Capturing(state, stream) ? kCuErrorStreamCaptureUnsupported : kCuSuccess;
}
CuResult StreamIsCapturing(CuStream stream, CuStreamCaptureStatus* status) {
  LS_READY();
  if (!KnownStream(state, stream)) return kCuErrorInvalidHandle;
  return *status = Capturing(state, stream) ? kCuCaptureActive : kCuCaptureNone, kCuSuccess;
}
CuResult EventCreate(CuEvent* event, unsigned) {
  LS_READY();
  auto owned = std::make_unique<Event>();
  *event = reinterpret_cast<CuEvent>(owned.get());
  state.events[*event] = std::move(owned);
  return kCuSuccess;
}
CuResult EventDestroy(CuEvent event) {
  DriverCall call;
  return call.state.events.erase(event) != 0 ? kCuSuccess : kCuErrorInvalidHandle;
}
CuResult EventRecord(CuEvent event, CuStream stream) {
  LS_READY();
  const auto known = state.events.find(event);
  if (known == state.events.end() || !KnownStream(state, stream)) return kCuErrorInvalidHandle;
  known->second->recorded = true;
  known->second->at = std::chrono::steady_clock::now();
  return kCuSuccess;
}
CuResult EventSynchronize(CuEvent event) {
  LS_READY();
  return state.events.contains(event) ? kCuSuccess : kCuErrorInvalidHandle;
}
CuResult EventElapsedTime(float* milliseconds, CuEvent start, CuEvent end) {
  LS_READY();
  const auto first = state.events.find(start), last = state.events.find(end);
  if (first == state.events.end() || last == state.events.end() || !first->second->recorded || !last->second->recorded)
    return kCuErrorInvalidHandle;
  *milliseconds = std::chrono::duration<float, std::milli>(last->second->at - first->second->at).count();
  return kCuSuccess;
}

// ---- tensor maps ----

namespace {

CuResult Encode(CuTensorMap* out, const TensorMap& map) {
  DriverCall call;
  if (out == nullptr || reinterpret_cast<uintptr_t>(out) % 64 != 0) return kCuErrorInvalidValue;
  if (!ValidateTensorMap(map, ProfileOf(call.state.options.profile).tensor_memory ? TensorMapDialect::kBlackwell
                                                                                  : TensorMapDialect::kHopper)
           .has_value())
    return kCuErrorInvalidValue;
  const TensorMapBytes bytes = EncodeTensorMap(map);
  std::memcpy(out, bytes.data(), bytes.size());
  return kCuSuccess;
}

TensorMap Common(CuTensorMapDataType type, uint32_t rank, void* base, const uint64_t* dims, const uint64_t* strides,
                 const uint32_t* element_strides, CuTensorMapInterleave interleave, CuTensorMapSwizzle swizzle,
                 CuTensorMapL2Promotion promotion, CuTensorMapOobFill fill) {
  TensorMap map;
  map.element = static_cast<TensorElement>(type);
  map.interleave = static_cast<TensorInterleave>(interleave);
  map.swizzle = static_cast<TensorSwizzle>(swizzle);
  map.fill = static_cast<TensorFill>(fill);
  map.l2_promotion = static_cast<uint8_t>(promotion);
  map.rank = static_cast<int>(rank);
  map.address = reinterpret_cast<uint64_t>(base);
  for (uint32_t d = 0; d < rank && d < 5; ++d) {
    map.dims[d] = dims[d];
    map.element_strides[d] = element_strides[d];
    if (d > 0) map.strides[d] = strides[d - 1];
  }
  return map;
}

}  // namespace

CuResult TensorMapEncodeTiled(CuTensorMap* out, CuTensorMapDataType type, uint32_t rank, void* base,
                              const uint64_t* dims, const uint64_t* strides, const uint32_t* box,
                              const uint32_t* element_strides, CuTensorMapInterleave interleave,
                              CuTensorMapSwizzle swizzle, CuTensorMapL2Promotion promotion, CuTensorMapOobFill fill) {
  if (DriverCall call; !call.state.ContextIsCurrent()) return kCuErrorInvalidContext;  // as on an H200
  if (rank < 1 || rank > 5 || dims == nullptr || box == nullptr || element_strides == nullptr ||
      (rank > 1 && strides == nullptr))
    return kCuErrorInvalidValue;
  TensorMap map = Common(type, rank, base, dims, strides, element_strides, interleave, swizzle, promotion, fill);
  for (uint32_t d = 0; d < rank; ++d) map.box[d] = box[d];
  return Encode(out, map);
}

CuResult TensorMapEncodeIm2col(CuTensorMap* out, CuTensorMapDataType type, uint32_t rank, void* base,
                               const uint64_t* dims, const uint64_t* strides, const int* lower_corner,
                               const int* upper_corner, uint32_t channels_per_pixel, uint32_t pixels_per_column,
                               const uint32_t* element_strides, CuTensorMapInterleave interleave,
                               CuTensorMapSwizzle swizzle, CuTensorMapL2Promotion promotion, CuTensorMapOobFill fill) {
  if (DriverCall call; !call.state.ContextIsCurrent()) return kCuErrorInvalidContext;
  if (rank < 3 || rank > 5 || dims == nullptr || strides == nullptr || element_strides == nullptr ||
      lower_corner == nullptr || upper_corner == nullptr) {
    return kCuErrorInvalidValue;
  }
  TensorMap map = Common(type, rank, base, dims, strides, element_strides, interleave, swizzle, promotion, fill);
  map.mode = TensorMapMode::kIm2col;
  map.channels = channels_per_pixel;
  map.pixels = pixels_per_column;
  for (uint32_t s = 0; s + 2 < rank; ++s) {
    map.lower_corner[s] = lower_corner[s];
    map.upper_corner[s] = upper_corner[s];
  }
  return Encode(out, map);
}

}  // namespace laneshift::emulator::driver
