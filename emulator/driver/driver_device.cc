// The device of the emulated driver: names of errors, attributes, identity.

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "emulator/driver/driver_bodies.h"
#include "emulator/driver/driver_state.h"
#include "emulator/ptx/ptx_instructions.h"

namespace laneshift::emulator::driver::body {

using namespace device;  // NOLINT: the driver's own types and codes
namespace {

struct Name {
  CuResult result;
  const char *name, *text;
};
constexpr Name kNames[] = {
    {kCuErrorDeinitialized, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {kCuErrorFileNotFound, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
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

constexpr char kBusId[] = "0000:01:00.0";

// Attributes by cuda.h's numbers: a member of the profile, or one value for all. The rest of the known ones are 0: what
// the emulator does not have.
struct Attribute {
  int attribute;
  int DeviceProfile::*value;
  int constant;
};
constexpr int kAttributeEnd = 148;
constexpr Attribute kAttributes[] = {
    {kCuDeviceMaxThreadsPerBlock, nullptr, 1024},
    {2, nullptr, 1024},  // block x, y, z
    {3, nullptr, 1024},
    {4, nullptr, 64},
    {5, nullptr, 0x7fffffff},  // grid x, y, z
    {6, nullptr, 65535},
    {7, nullptr, 65535},
    {kCuDeviceMaxSharedMemoryPerBlock, nullptr, 48 << 10},
    {9, nullptr, 64 << 10},  // constant memory
    {kCuDeviceWarpSize, nullptr, kLanes},
    {11, nullptr, 0x7fffffff},  // pitch
    {kCuDeviceMaxRegistersPerBlock, nullptr, kRegistersPerProcessor},
    {kCuDeviceClockRate, &DeviceProfile::clock_khz, 0},
    {14, nullptr, 512},  // texture alignment
    {15, nullptr, 1},    // overlap
    {kCuDeviceMultiprocessorCount, &DeviceProfile::multiprocessors, 0},
    {19, nullptr, 1},  // maps host memory
    {31, nullptr, 1},  // concurrent kernels
    {32, nullptr, 1},  // ECC
    {33, nullptr, 1},  // PCI bus
    {kCuDeviceMemoryClockRate, &DeviceProfile::memory_clock_khz, 0},
    {kCuDeviceGlobalMemoryBusWidth, &DeviceProfile::bus_bits, 0},
    {kCuDeviceL2CacheSize, &DeviceProfile::l2_bytes, 0},
    {kCuDeviceMaxThreadsPerMultiprocessor, nullptr, kThreadsPerProcessor},
    {40, nullptr, 1},   // copy engines
    {41, nullptr, 1},   // unified addressing
    {51, nullptr, 32},  // texture pitch
    {kCuDeviceComputeCapabilityMajor, &DeviceProfile::major, 0},
    {kCuDeviceComputeCapabilityMinor, &DeviceProfile::minor, 0},
    {78, nullptr, 1},  // stream priorities
    {79, nullptr, 1},  // L1 caches global
    {80, nullptr, 1},  // and local memory
    {kCuDeviceMaxSharedMemoryPerMultiprocessor, nullptr, kSharedBytesPerProcessor},
    {82, nullptr, kRegistersPerProcessor},
    {83, nullptr, 1},  // managed memory
    {87, nullptr, 2},  // single to double precision
    {kCuDevicePageableMemoryAccess, nullptr, 0},
    {89, nullptr, 1},  // concurrent managed access
    {90, nullptr, 1},  // preemption
    {91, nullptr, 1},  // registered memory under the host's pointer
    {95, nullptr, 1},  // cooperative launch
    {kCuDeviceMaxSharedMemoryPerBlockOptin, nullptr, kMaxSharedBytes},
    {99, nullptr, 1},  // host register
    {106, nullptr, kBlocksPerProcessor},
    {kCuDeviceReservedSharedMemoryPerBlock, nullptr, kReservedSharedBytes},
    {115, nullptr, 1},  // memory pools
    {kCuDeviceClusterLaunch, nullptr, 1},
    {126, nullptr, 4},  // memory synchronisation domains
    {kCuDeviceTensorMapAccessSupported, nullptr, 1},
    {129, nullptr, 1},  // unified function pointers
};

}  // namespace

CuResult Init(unsigned flags) {
  DriverCall call;
  if (flags != 0) return kCuErrorInvalidValue;
  call.state.initialised = true;
  call.state.initialised_by = getpid();
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
  const ReturnedFault& fault = FaultOfThisThread();
  if (error != kCuSuccess && fault.result == error) return *text = fault.text.c_str(), kCuSuccess;
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
  const DeviceProfile profile = ProfileOf(call.state.options);
  std::string text = profile.name;
  if (call.state.options.multiprocessors > 0) text += base::Cat(" with ", profile.multiprocessors, " SMs");
  std::strncpy(name, text.c_str(), static_cast<size_t>(size) - 1);
  name[size - 1] = '\0';
  return kCuSuccess;
}
CuResult DeviceGetAttribute(int* value, CuDeviceAttribute attribute, CuDevice device) {
  DriverCall call;
  if (device != 0) return kCuErrorInvalidDevice;
  if (value == nullptr || attribute < 1 || attribute >= kAttributeEnd) return kCuErrorInvalidValue;
  const DeviceProfile profile = ProfileOf(call.state.options);
  *value = 0;
  for (const Attribute& known : kAttributes) {
    if (known.attribute == attribute) *value = known.value != nullptr ? profile.*known.value : known.constant;
  }
  return kCuSuccess;
}
CuResult DeviceTotalMem(size_t* bytes, CuDevice device) {
  DriverCall call;
  if (device != 0) return kCuErrorInvalidDevice;
  return *bytes = call.state.options.memory_bytes, kCuSuccess;
}

CuResult DeviceGetUuid(CuUuid* uuid, CuDevice device) {
  if (device != 0) return kCuErrorInvalidDevice;
  std::memcpy(uuid->bytes, "laneshift-emula", sizeof uuid->bytes);
  return kCuSuccess;
}
CuResult DeviceGetUuidV2(CuUuid* uuid, CuDevice device) { return body::DeviceGetUuid(uuid, device); }
CuResult DeviceGetPciBusId(char* text, int size, CuDevice device) {
  if (device != 0) return kCuErrorInvalidDevice;
  if (text == nullptr || size < static_cast<int>(sizeof kBusId)) return kCuErrorInvalidValue;
  std::memcpy(text, kBusId, sizeof kBusId);
  return kCuSuccess;
}
CuResult DeviceGetByPciBusId(CuDevice* device, const char* text) {
  if (text == nullptr || std::string_view(text) != kBusId) return kCuErrorInvalidDevice;
  return *device = 0, kCuSuccess;
}
CuResult DeviceComputeCapability(int* major, int* minor, CuDevice device) {
  DriverCall call;
  if (device != 0) return kCuErrorInvalidDevice;
  const DeviceProfile profile = ProfileOf(call.state.options);
  *major = profile.major;
  return *minor = profile.minor, kCuSuccess;
}
CuResult DeviceCanAccessPeer(int* can, CuDevice device, CuDevice peer) {
  if (device != 0 || peer != 0) return kCuErrorInvalidDevice;
  return *can = 0, kCuSuccess;  // a device is no peer of itself
}
CuResult ProfilerStart() { return kCuSuccess; }
CuResult ProfilerStop() { return kCuSuccess; }

}  // namespace laneshift::emulator::driver::body
