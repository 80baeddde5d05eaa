// Compares the emulator's declarations of driver and runtime types with CUDA's own, at compile time, where a toolkit of
// version 13 is installed.
#include <gtest/gtest.h>

#include "emulator/cudart/runtime_types.h"

#if __has_include(<cuda_runtime_api.h>)
#include <cuda.h>
#include <cuda_runtime_api.h>
#if CUDART_VERSION >= 13000

namespace laneshift::emulator {
namespace {

using driver::CuGraphNodeParams;
using driver::CuMemcpy2D;
using driver::CuMemcpy3D;
using runtime::DeviceProperties;
using runtime::FunctionAttributes;
using runtime::PointerAttributes;

#define SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs))
#define FIELD(ours, member, theirs, field) static_assert(offsetof(ours, member) == offsetof(theirs, field))
SIZE(CuMemcpy2D, CUDA_MEMCPY2D);
FIELD(CuMemcpy2D, from_pitch, CUDA_MEMCPY2D, srcPitch);
FIELD(CuMemcpy2D, to_device, CUDA_MEMCPY2D, dstDevice);
FIELD(CuMemcpy2D, width, CUDA_MEMCPY2D, WidthInBytes);
SIZE(CuMemcpy3D, CUDA_MEMCPY3D);
FIELD(CuMemcpy3D, from_pitch, CUDA_MEMCPY3D, srcPitch);
FIELD(CuMemcpy3D, to_device, CUDA_MEMCPY3D, dstDevice);
FIELD(CuMemcpy3D, depth, CUDA_MEMCPY3D, Depth);
SIZE(driver::CuKernelNodeParams, CUDA_KERNEL_NODE_PARAMS_v2);
FIELD(driver::CuKernelNodeParams, kernel, CUDA_KERNEL_NODE_PARAMS_v2, kern);
SIZE(driver::CuMemsetNodeParams, CUDA_MEMSET_NODE_PARAMS_v1);
SIZE(driver::CuHostNodeParams, CUDA_HOST_NODE_PARAMS_v1);
SIZE(CuGraphNodeParams, CUgraphNodeParams);
FIELD(CuGraphNodeParams, kernel, CUgraphNodeParams, kernel);
FIELD(CuGraphNodeParams, copy.copy, CUgraphNodeParams, memcpy.copyParams);
FIELD(CuGraphNodeParams, fill, CUgraphNodeParams, memset);
SIZE(driver::CuGraphEdge, CUgraphEdgeData);
SIZE(driver::CuGraphInstantiateParams, CUDA_GRAPH_INSTANTIATE_PARAMS);
SIZE(driver::CuGraphUpdateResult, CUgraphExecUpdateResultInfo);
SIZE(driver::CuMemLocation, CUmemLocation);
static_assert(driver::kCuNodeEventRecord == static_cast<int>(CU_GRAPH_NODE_TYPE_EVENT_RECORD));
static_assert(driver::kCuPointerMempool == static_cast<int>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE));
static_assert(driver::kCuPointerRangeSize == static_cast<int>(CU_POINTER_ATTRIBUTE_RANGE_SIZE));
static_assert(driver::kCuWideW128 == static_cast<int>(CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128));

SIZE(runtime::LaunchConfig, cudaLaunchConfig_t);
FIELD(runtime::LaunchConfig, attribute_count, cudaLaunchConfig_t, numAttrs);
SIZE(FunctionAttributes, cudaFuncAttributes);
FIELD(FunctionAttributes, large_clusters, cudaFuncAttributes, nonPortableClusterSizeAllowed);
FIELD(FunctionAttributes, max_dynamic_shared, cudaFuncAttributes, maxDynamicSharedSizeBytes);
SIZE(PointerAttributes, cudaPointerAttributes);
SIZE(DeviceProperties, cudaDeviceProp);
FIELD(DeviceProperties, total_global, cudaDeviceProp, totalGlobalMem);
FIELD(DeviceProperties, major, cudaDeviceProp, major);
FIELD(DeviceProperties, multiprocessors, cudaDeviceProp, multiProcessorCount);
FIELD(DeviceProperties, surface_alignment, cudaDeviceProp, surfaceAlignment);
FIELD(DeviceProperties, l2_bytes, cudaDeviceProp, l2CacheSize);
FIELD(DeviceProperties, shared_per_multiprocessor, cudaDeviceProp, sharedMemPerMultiprocessor);
FIELD(DeviceProperties, cooperative_launch, cudaDeviceProp, cooperativeLaunch);
FIELD(DeviceProperties, shared_per_block_optin, cudaDeviceProp, sharedMemPerBlockOptin);
FIELD(DeviceProperties, reserved_shared_per_block, cudaDeviceProp, reservedSharedMemPerBlock);
FIELD(DeviceProperties, memory_pools, cudaDeviceProp, memoryPoolsSupported);
FIELD(DeviceProperties, cluster_launch, cudaDeviceProp, clusterLaunch);
FIELD(DeviceProperties, unified_functions, cudaDeviceProp, unifiedFunctionPointers);
static_assert(runtime::kCudaInvalidDeviceFunction == static_cast<int>(cudaErrorInvalidDeviceFunction));
static_assert(runtime::kCudaInvalidSymbol == static_cast<int>(cudaErrorInvalidSymbol));

TEST(EmulatorTypes, AreTheOnesOfCuda) { SUCCEED() << "compared when this file was compiled"; }

}  // namespace
}  // namespace laneshift::emulator

#endif
#endif
