// The few types and constants of the CUDA driver API that laneshift uses, so that it builds without a CUDA toolkit.
//
// Names follow cuda.h with the prefix Cu instead of CU. Sizes, offsets and values are compared with cuda.h by
// device/driver_types_test.cc where a toolkit is present. Handles use cuda.h's own struct tags, so that a caller's
// CUstream or cudaStream_t passes without a cast.
#pragma once

#include <cstddef>
#include <cstdint>

struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;

namespace laneshift::device {

using CuDevice = int;
using CuDevicePtr = uint64_t;
using CuContext = ::CUctx_st*;
using CuModule = ::CUmod_st*;
using CuFunction = ::CUfunc_st*;
using CuStream = ::CUstream_st*;
using CuEvent = ::CUevent_st*;
using CuGraph = ::CUgraph_st*;
using CuGraphExec = ::CUgraphExec_st*;

enum CuResult : int {
  kCuSuccess = 0,
  kCuErrorInvalidValue = 1,
  kCuErrorOutOfMemory = 2,
  kCuErrorNotInitialized = 3,
  kCuErrorDeinitialized = 4,
  kCuErrorStubLibrary = 34,
  kCuErrorNoDevice = 100,
  kCuErrorInvalidDevice = 101,
  kCuErrorInvalidImage = 200,
  kCuErrorInvalidContext = 201,
  kCuErrorNoBinaryForGpu = 209,
  kCuErrorInvalidPtx = 218,
  kCuErrorUnsupportedPtxVersion = 222,
  kCuErrorInvalidSource = 300,
  kCuErrorFileNotFound = 301,
  kCuErrorInvalidHandle = 400,
  kCuErrorNotFound = 500,
  kCuErrorNotReady = 600,
  kCuErrorIllegalAddress = 700,
  kCuErrorLaunchOutOfResources = 701,
  kCuErrorLaunchTimeout = 702,
  kCuErrorHardwareStackError = 714,
  kCuErrorIllegalInstruction = 715,
  kCuErrorMisalignedAddress = 716,
  kCuErrorInvalidAddressSpace = 717,
  kCuErrorInvalidPc = 718,
  kCuErrorLaunchFailed = 719,
  kCuErrorNotSupported = 801,
  kCuErrorStreamCaptureUnsupported = 900,
  kCuErrorInvalidClusterSize = 912,
  kCuErrorUnknown = 999,
};

enum CuDeviceAttribute : int {
  kCuDeviceMaxThreadsPerBlock = 1,
  kCuDeviceMaxSharedMemoryPerBlock = 8,
  kCuDeviceWarpSize = 10,
  kCuDeviceMaxRegistersPerBlock = 12,
  kCuDeviceClockRate = 13,
  kCuDeviceMultiprocessorCount = 16,
  kCuDevicePciBusId = 33,
  kCuDevicePciDeviceId = 34,
  kCuDeviceMemoryClockRate = 36,
  kCuDeviceGlobalMemoryBusWidth = 37,
  kCuDeviceL2CacheSize = 38,
  kCuDeviceMaxThreadsPerMultiprocessor = 39,
  kCuDevicePciDomainId = 50,
  kCuDeviceComputeCapabilityMajor = 75,
  kCuDeviceComputeCapabilityMinor = 76,
  kCuDeviceMaxSharedMemoryPerMultiprocessor = 81,
  kCuDevicePageableMemoryAccess = 88,
  kCuDeviceMaxSharedMemoryPerBlockOptin = 97,
  kCuDeviceReservedSharedMemoryPerBlock = 111,
  kCuDeviceClusterLaunch = 120,
  kCuDeviceTensorMapAccessSupported = 127,
};

enum CuFunctionAttribute : int {
  kCuFuncMaxThreadsPerBlock = 0,
  kCuFuncSharedSizeBytes = 1,
  kCuFuncConstSizeBytes = 2,
  kCuFuncLocalSizeBytes = 3,
  kCuFuncNumRegs = 4,
  kCuFuncPtxVersion = 5,
  kCuFuncBinaryVersion = 6,
  kCuFuncMaxDynamicSharedSizeBytes = 8,
  kCuFuncPreferredSharedMemoryCarveout = 9,
  kCuFuncNonPortableClusterSizeAllowed = 14,
};

enum CuJitOption : int {
  kCuJitInfoLogBuffer = 3,
  kCuJitInfoLogBufferSizeBytes = 4,
  kCuJitErrorLogBuffer = 5,
  kCuJitErrorLogBufferSizeBytes = 6,
  kCuJitLogVerbose = 12,
};

enum CuPointerAttribute : int {
  kCuPointerContext = 1,
  kCuPointerMemoryType = 2,
  kCuPointerDevicePointer = 3,
  kCuPointerHostPointer = 4,
  kCuPointerSyncMemops = 6,
  kCuPointerBufferId = 7,
  kCuPointerIsManaged = 8,
  kCuPointerDeviceOrdinal = 9,
  kCuPointerRangeStart = 11,
  kCuPointerRangeSize = 12,
  kCuPointerMapped = 13,
  kCuPointerAllowedHandleTypes = 14,
  kCuPointerAccessFlags = 16,
  kCuPointerMempool = 17,
};

enum CuMemoryType : int { kCuMemoryHost = 1, kCuMemoryDevice = 2, kCuMemoryArray = 3, kCuMemoryUnified = 4 };

enum CuStreamFlags : unsigned { kCuStreamDefault = 0, kCuStreamNonBlocking = 1 };
enum CuEventFlags : unsigned { kCuEventDefault = 0, kCuEventDisableTiming = 2 };
enum CuStreamCaptureStatus : int { kCuCaptureNone = 0, kCuCaptureActive = 1, kCuCaptureInvalidated = 2 };
enum CuStreamCaptureMode : int { kCuCaptureGlobal = 0, kCuCaptureThreadLocal = 1, kCuCaptureRelaxed = 2 };

enum CuTensorMapDataType : int {
  kCuTensorMapUint8 = 0,
  kCuTensorMapUint16 = 1,
  kCuTensorMapUint32 = 2,
  kCuTensorMapInt32 = 3,
  kCuTensorMapUint64 = 4,
  kCuTensorMapInt64 = 5,
  kCuTensorMapFloat16 = 6,
  kCuTensorMapFloat32 = 7,
  kCuTensorMapFloat64 = 8,
  kCuTensorMapBfloat16 = 9,
  kCuTensorMapFloat32Ftz = 10,
  kCuTensorMapTfloat32 = 11,
  kCuTensorMapTfloat32Ftz = 12,
  kCuTensorMap16U4Align8 = 13,
  kCuTensorMap16U4Align16 = 14,
  kCuTensorMap16U6Align16 = 15,
};
enum CuTensorMapInterleave : int { kCuInterleaveNone = 0, kCuInterleave16 = 1, kCuInterleave32 = 2 };
enum CuTensorMapSwizzle : int {
  kCuSwizzleNone = 0,
  kCuSwizzle32 = 1,
  kCuSwizzle64 = 2,
  kCuSwizzle128 = 3,
  kCuSwizzle128Atom32 = 4,
  kCuSwizzle128Atom32Flip8 = 5,
  kCuSwizzle128Atom64 = 6,
};
enum CuTensorMapL2Promotion : int { kCuL2None = 0, kCuL2Of64 = 1, kCuL2Of128 = 2, kCuL2Of256 = 3 };
enum CuTensorMapOobFill : int { kCuOobZero = 0, kCuOobNan = 1 };

// An encoded tensor map: opaque bytes made by the provider of the table. Passed to kernels by value. The encoders ask
// for 64-byte alignment; cuda.h declares 64 before CUDA 13 and 128 from then on.
struct alignas(128) CuTensorMap {
  uint64_t opaque[16];
};

enum CuLaunchAttributeId : int {
  kCuLaunchCooperative = 2,
  kCuLaunchClusterDimension = 4,
  kCuLaunchProgrammaticStreamSerialization = 6,
};

// Aligned as the pointers among cuda.h's members make it.
union alignas(8) CuLaunchAttributeValue {
  char pad[64];
  int cooperative;
  struct {
    unsigned x, y, z;
  } cluster_dim;
  int programmatic_stream_serialization;
};

struct CuLaunchAttribute {
  CuLaunchAttributeId id;
  char pad[8 - sizeof(CuLaunchAttributeId)];
  CuLaunchAttributeValue value;
};

struct CuLaunchConfig {
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_mem_bytes;
  CuStream stream;
  CuLaunchAttribute* attributes;
  unsigned attribute_count;
};

}  // namespace laneshift::device
