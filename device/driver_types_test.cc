// Compares our declarations with cuda.h, at compile time, where a toolkit is installed.
#include "device/driver_types.h"

#include <gtest/gtest.h>

#include <type_traits>

#include "device/driver_api.h"

#if __has_include(<cuda.h>)
#include <cuda.h>

namespace laneshift::device {
namespace {

#define SAME(ours, theirs) static_assert(static_cast<long long>(ours) == static_cast<long long>(theirs))
SAME(kCuSuccess, CUDA_SUCCESS);
SAME(kCuErrorInvalidValue, CUDA_ERROR_INVALID_VALUE);
SAME(kCuErrorOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
SAME(kCuErrorNotInitialized, CUDA_ERROR_NOT_INITIALIZED);
SAME(kCuErrorDeinitialized, CUDA_ERROR_DEINITIALIZED);
SAME(kCuErrorStubLibrary, CUDA_ERROR_STUB_LIBRARY);
SAME(kCuErrorNoDevice, CUDA_ERROR_NO_DEVICE);
SAME(kCuErrorInvalidDevice, CUDA_ERROR_INVALID_DEVICE);
SAME(kCuErrorInvalidImage, CUDA_ERROR_INVALID_IMAGE);
SAME(kCuErrorInvalidContext, CUDA_ERROR_INVALID_CONTEXT);
SAME(kCuErrorNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(kCuErrorInvalidPtx, CUDA_ERROR_INVALID_PTX);
SAME(kCuErrorUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SAME(kCuErrorInvalidSource, CUDA_ERROR_INVALID_SOURCE);
SAME(kCuErrorFileNotFound, CUDA_ERROR_FILE_NOT_FOUND);
SAME(kCuErrorInvalidHandle, CUDA_ERROR_INVALID_HANDLE);
SAME(kCuErrorNotFound, CUDA_ERROR_NOT_FOUND);
SAME(kCuErrorNotReady, CUDA_ERROR_NOT_READY);
SAME(kCuErrorIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(kCuErrorLaunchOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
SAME(kCuErrorLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT);
SAME(kCuErrorIllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION);
SAME(kCuErrorMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS);
SAME(kCuErrorInvalidAddressSpace, CUDA_ERROR_INVALID_ADDRESS_SPACE);
SAME(kCuErrorInvalidPc, CUDA_ERROR_INVALID_PC);
SAME(kCuErrorLaunchFailed, CUDA_ERROR_LAUNCH_FAILED);
SAME(kCuErrorNotSupported, CUDA_ERROR_NOT_SUPPORTED);
SAME(kCuErrorStreamCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
SAME(kCuErrorInvalidClusterSize, CUDA_ERROR_INVALID_CLUSTER_SIZE);
SAME(kCuErrorUnknown, CUDA_ERROR_UNKNOWN);

SAME(kCuDeviceMaxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(kCuDeviceMaxSharedMemoryPerBlock, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
SAME(kCuDeviceWarpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
SAME(kCuDeviceMaxRegistersPerBlock, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
SAME(kCuDeviceClockRate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
SAME(kCuDeviceMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(kCuDevicePciBusId, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
SAME(kCuDevicePciDeviceId, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
SAME(kCuDevicePciDomainId, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
SAME(kCuDeviceMemoryClockRate, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
SAME(kCuDeviceGlobalMemoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
SAME(kCuDeviceL2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME(kCuDeviceMaxThreadsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
SAME(kCuDeviceComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(kCuDeviceComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(kCuDeviceMaxSharedMemoryPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
SAME(kCuDevicePageableMemoryAccess, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS);
SAME(kCuDeviceMaxSharedMemoryPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME(kCuDeviceReservedSharedMemoryPerBlock, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
SAME(kCuDeviceClusterLaunch, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH);
SAME(kCuDeviceTensorMapAccessSupported, CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED);

SAME(kCuFuncMaxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(kCuFuncSharedSizeBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME(kCuFuncConstSizeBytes, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
SAME(kCuFuncLocalSizeBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SAME(kCuFuncNumRegs, CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME(kCuFuncPtxVersion, CU_FUNC_ATTRIBUTE_PTX_VERSION);
SAME(kCuFuncBinaryVersion, CU_FUNC_ATTRIBUTE_BINARY_VERSION);
SAME(kCuFuncMaxDynamicSharedSizeBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(kCuFuncPreferredSharedMemoryCarveout, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
SAME(kCuFuncNonPortableClusterSizeAllowed, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);

SAME(kCuJitInfoLogBuffer, CU_JIT_INFO_LOG_BUFFER);
SAME(kCuJitInfoLogBufferSizeBytes, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES);
SAME(kCuJitErrorLogBuffer, CU_JIT_ERROR_LOG_BUFFER);
SAME(kCuJitErrorLogBufferSizeBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME(kCuJitLogVerbose, CU_JIT_LOG_VERBOSE);

SAME(kCuStreamDefault, CU_STREAM_DEFAULT);
SAME(kCuStreamNonBlocking, CU_STREAM_NON_BLOCKING);
SAME(kCuEventDefault, CU_EVENT_DEFAULT);
SAME(kCuEventDisableTiming, CU_EVENT_DISABLE_TIMING);
SAME(kCuCaptureNone, CU_STREAM_CAPTURE_STATUS_NONE);
SAME(kCuCaptureActive, CU_STREAM_CAPTURE_STATUS_ACTIVE);
SAME(kCuCaptureInvalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
SAME(kCuCaptureGlobal, CU_STREAM_CAPTURE_MODE_GLOBAL);
SAME(kCuCaptureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME(kCuCaptureRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);

SAME(kCuTensorMapUint8, CU_TENSOR_MAP_DATA_TYPE_UINT8);
SAME(kCuTensorMapUint16, CU_TENSOR_MAP_DATA_TYPE_UINT16);
SAME(kCuTensorMapUint32, CU_TENSOR_MAP_DATA_TYPE_UINT32);
SAME(kCuTensorMapInt32, CU_TENSOR_MAP_DATA_TYPE_INT32);
SAME(kCuTensorMapUint64, CU_TENSOR_MAP_DATA_TYPE_UINT64);
SAME(kCuTensorMapInt64, CU_TENSOR_MAP_DATA_TYPE_INT64);
SAME(kCuTensorMapFloat16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
SAME(kCuTensorMapFloat32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
SAME(kCuTensorMapFloat64, CU_TENSOR_MAP_DATA_TYPE_FLOAT64);
SAME(kCuTensorMapBfloat16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
SAME(kCuTensorMapFloat32Ftz, CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ);
SAME(kCuTensorMapTfloat32, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32);
SAME(kCuTensorMapTfloat32Ftz, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ);
SAME(kCuInterleaveNone, CU_TENSOR_MAP_INTERLEAVE_NONE);
SAME(kCuInterleave16, CU_TENSOR_MAP_INTERLEAVE_16B);
SAME(kCuInterleave32, CU_TENSOR_MAP_INTERLEAVE_32B);
SAME(kCuSwizzleNone, CU_TENSOR_MAP_SWIZZLE_NONE);
SAME(kCuSwizzle32, CU_TENSOR_MAP_SWIZZLE_32B);
SAME(kCuSwizzle64, CU_TENSOR_MAP_SWIZZLE_64B);
SAME(kCuSwizzle128, CU_TENSOR_MAP_SWIZZLE_128B);
#if CUDA_VERSION >= 12080
SAME(kCuTensorMap16U4Align8, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B);
SAME(kCuTensorMap16U4Align16, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B);
SAME(kCuTensorMap16U6Align16, CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B);
SAME(kCuSwizzle128Atom32, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B);
SAME(kCuSwizzle128Atom32Flip8, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B);
SAME(kCuSwizzle128Atom64, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B);
#endif
SAME(kCuL2None, CU_TENSOR_MAP_L2_PROMOTION_NONE);
SAME(kCuL2Of64, CU_TENSOR_MAP_L2_PROMOTION_L2_64B);
SAME(kCuL2Of128, CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
SAME(kCuL2Of256, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
SAME(kCuOobZero, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
SAME(kCuOobNan, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);

SAME(kCuLaunchCooperative, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
SAME(kCuLaunchClusterDimension, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
SAME(kCuLaunchProgrammaticStreamSerialization, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);

SAME(sizeof(CuTensorMap), sizeof(CUtensorMap));
static_assert(alignof(CuTensorMap) >= alignof(CUtensorMap));
SAME(sizeof(CuDevicePtr), sizeof(CUdeviceptr));
SAME(alignof(CuLaunchAttributeValue), alignof(CUlaunchAttributeValue));
SAME(sizeof(CuLaunchAttributeValue), sizeof(CUlaunchAttributeValue));
SAME(offsetof(CuLaunchAttributeValue, cooperative), offsetof(CUlaunchAttributeValue, cooperative));
SAME(offsetof(CuLaunchAttributeValue, cluster_dim), offsetof(CUlaunchAttributeValue, clusterDim));
SAME(sizeof(CuLaunchAttributeValue::cluster_dim), sizeof(CUlaunchAttributeValue::clusterDim));
SAME(offsetof(CuLaunchAttributeValue, programmatic_stream_serialization),
     offsetof(CUlaunchAttributeValue, programmaticStreamSerializationAllowed));
SAME(sizeof(CuLaunchAttribute), sizeof(CUlaunchAttribute));
SAME(alignof(CuLaunchAttribute), alignof(CUlaunchAttribute));
SAME(offsetof(CuLaunchAttribute, id), offsetof(CUlaunchAttribute, id));
SAME(offsetof(CuLaunchAttribute, value), offsetof(CUlaunchAttribute, value));
SAME(sizeof(CuLaunchConfig), sizeof(CUlaunchConfig));
SAME(offsetof(CuLaunchConfig, grid_x), offsetof(CUlaunchConfig, gridDimX));
SAME(offsetof(CuLaunchConfig, grid_y), offsetof(CUlaunchConfig, gridDimY));
SAME(offsetof(CuLaunchConfig, grid_z), offsetof(CUlaunchConfig, gridDimZ));
SAME(offsetof(CuLaunchConfig, block_x), offsetof(CUlaunchConfig, blockDimX));
SAME(offsetof(CuLaunchConfig, block_y), offsetof(CUlaunchConfig, blockDimY));
SAME(offsetof(CuLaunchConfig, block_z), offsetof(CUlaunchConfig, blockDimZ));
SAME(offsetof(CuLaunchConfig, shared_mem_bytes), offsetof(CUlaunchConfig, sharedMemBytes));
SAME(offsetof(CuLaunchConfig, stream), offsetof(CUlaunchConfig, hStream));
SAME(offsetof(CuLaunchConfig, attributes), offsetof(CUlaunchConfig, attrs));
SAME(offsetof(CuLaunchConfig, attribute_count), offsetof(CUlaunchConfig, numAttrs));

// Handles are the same types, so that a caller's stream passes without a cast.
static_assert(std::is_same_v<CuStream, CUstream>);
static_assert(std::is_same_v<CuContext, CUcontext>);
static_assert(std::is_same_v<CuModule, CUmodule>);
static_assert(std::is_same_v<CuFunction, CUfunction>);
static_assert(std::is_same_v<CuEvent, CUevent>);
static_assert(std::is_same_v<CuGraph, CUgraph>);
static_assert(std::is_same_v<CuGraphExec, CUgraphExec>);

// The same calling convention: as many parameters, each of the same size, pointers where there are pointers.
template <typename A, typename B>
struct SameShape : std::false_type {};
template <typename R, typename S, typename... A, typename... B>
requires(sizeof...(A) == sizeof...(B)) struct SameShape<R (*)(A...), S (*)(B...)>
    : std::bool_constant<sizeof(R) == sizeof(S) && ((sizeof(A) == sizeof(B)) && ...) &&
                         ((std::is_pointer_v<A> == std::is_pointer_v<B>)&&...) &&
                         ((std::is_floating_point_v<A> == std::is_floating_point_v<B>)&&...)> {
};

#define CU(member, symbol, parameters) \
  static_assert(SameShape<decltype(DriverApi::member), decltype(&::symbol)>::value, #symbol);
#include "device/driver_api.def"

// cuda.h's macros give the ABI version that its declarations are of; a row of another version is listed here with the
// reason. Text of a macro's expansion, so that a row under the plain name of a versioned function shows.
#define EXPANDED(symbol) EXPANDED_TEXT(symbol)
#define EXPANDED_TEXT(symbol) #symbol

struct NamedRow {
  const char* ours;
  const char* cuda_h;
};
constexpr NamedRow kRows[] = {
#define CU(member, symbol, parameters) {#symbol, EXPANDED(symbol)},
#include "device/driver_api.def"
};

TEST(DriverTypes, SymbolsAreThoseThatCudaHDeclares) {
  for (const NamedRow& row : kRows) {
    // Same signature in both versions, and the newer one is missing from drivers before CUDA 12.8.
    if (std::string(row.ours) == "cuEventElapsedTime") continue;
    EXPECT_STREQ(row.ours, row.cuda_h);
  }
}

}  // namespace
}  // namespace laneshift::device
#else
TEST(DriverTypes, SymbolsAreThoseThatCudaHDeclares) { GTEST_SKIP() << "no cuda.h was found when this was built"; }
#endif
