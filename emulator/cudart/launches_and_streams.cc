// Functions, launches, occupancy, streams, events and graphs of the emulated CUDA runtime.

#include "emulator/cudart/runtime_bodies.h"

namespace laneshift::emulator::runtime {
namespace {

device::CuLaunchConfig ConfigOf(const LaunchConfig& config) {
  return {config.grid.x,
          config.grid.y,
          config.grid.z,
          config.block.x,
          config.block.y,
          config.block.z,
          static_cast<unsigned>(config.shared_bytes),
          config.stream,
          config.attributes,
          config.attribute_count};
}

CudaError Launch(CuFunction function, const LaunchConfig& config, void** arguments) {
  const device::CuLaunchConfig made = ConfigOf(config);
  const CuResult result = driver::LaunchKernelEx(&made, function, arguments, nullptr);
  return Remember(result == device::kCuErrorInvalidValue ? static_cast<int>(kCudaInvalidConfiguration) : result);
}

}  // namespace

// Finds the function of `symbol`, or returns why not.
#define LS_FUNCTION(symbol)                                                          \
  CuFunction found = nullptr;                                                        \
  if (const CuResult bad = Enter(); bad != device::kCuSuccess) return Remember(bad); \
  if (const CudaError bad = FindFunction(symbol, &found); bad != 0) return Remember(bad)
#define LS_ENTER() \
  if (const CuResult bad = Enter(); bad != device::kCuSuccess) return Remember(bad)

CudaError body::FuncSetAttribute(const void* function, CuFunctionAttribute attribute, int value) {
  LS_FUNCTION(function);
  return Remember(driver::FuncSetAttribute(found, attribute, value));
}
CudaError body::FuncGetAttributes(FunctionAttributes* attributes, const void* function) {
  LS_FUNCTION(function);
  const auto value = [&](CuFunctionAttribute attribute) {
    int known = 0;
    driver::FuncGetAttribute(&known, attribute, found);
    return known;
  };
  FunctionAttributes made = {};
  made.shared_bytes = static_cast<size_t>(value(device::kCuFuncSharedSizeBytes));
  made.const_bytes = static_cast<size_t>(value(device::kCuFuncConstSizeBytes));
  made.local_bytes = static_cast<size_t>(value(device::kCuFuncLocalSizeBytes));
  made.max_threads = value(device::kCuFuncMaxThreadsPerBlock);
  made.registers = value(device::kCuFuncNumRegs);
  made.ptx_version = value(device::kCuFuncPtxVersion);
  made.binary_version = value(device::kCuFuncBinaryVersion);
  made.max_dynamic_shared = value(device::kCuFuncMaxDynamicSharedSizeBytes);
  made.carveout = value(device::kCuFuncPreferredSharedMemoryCarveout);
  made.large_clusters = value(device::kCuFuncNonPortableClusterSizeAllowed);
  return *attributes = made, 0;
}
CudaError body::FuncSetCacheConfig(const void* function, int) {
  LS_FUNCTION(function);
  return 0;
}
CudaError body::FuncGetName(const char** name, const void* function) {
  LS_FUNCTION(function);
  return Remember(driver::FuncGetName(name, found));
}
CudaError body::GetFuncBySymbol(CuFunction* function, const void* symbol) {
  LS_FUNCTION(symbol);
  return *function = found, 0;
}
CudaError body::GetKernel(CuFunction* kernel, const void* symbol) { return GetFuncBySymbol(kernel, symbol); }

CudaError body::LaunchKernel(const void* function, Dim3 grid, Dim3 block, void** arguments, size_t shared_bytes,
                             CuStream stream) {
  LS_FUNCTION(function);
  return Launch(found, {grid, block, shared_bytes, stream, nullptr, 0}, arguments);
}
CudaError body::LaunchCooperativeKernel(const void* function, Dim3 grid, Dim3 block, void** arguments,
                                        size_t shared_bytes, CuStream stream) {
  return body::LaunchKernel(function, grid, block, arguments, shared_bytes, stream);
}
CudaError body::LaunchKernelExC(const LaunchConfig* config, const void* function, void** arguments) {
  LS_FUNCTION(function);
  return config == nullptr ? Remember(device::kCuErrorInvalidValue) : Launch(found, *config, arguments);
}
CudaError body::CompilerLaunchKernel(CuFunction kernel, Dim3 grid, Dim3 block, void** arguments, size_t shared_bytes,
                                     CuStream stream) {
  LS_ENTER();
  if (kernel == nullptr) return Remember(kCudaInvalidDeviceFunction);
  return Launch(kernel, {grid, block, shared_bytes, stream, nullptr, 0}, arguments);
}
CudaError body::CompilerLaunchKernelPtsz(CuFunction kernel, Dim3 grid, Dim3 block, void** arguments,
                                         size_t shared_bytes, CuStream stream) {
  return body::CompilerLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
}
CudaError body::LaunchHostFunc(CuStream stream, CuHostFunction function, void* user_data) {
  LS_ENTER();
  return Remember(driver::LaunchHostFunc(stream, function, user_data));
}

CudaError body::OccupancyMaxActiveBlocksWithFlags(int* blocks, const void* function, int block, size_t dynamic_shared,
                                                  unsigned flags) {
  LS_FUNCTION(function);
  return Remember(driver::OccupancyMaxActiveBlocksWithFlags(blocks, found, block, dynamic_shared, flags));
}
CudaError body::OccupancyMaxActiveBlocks(int* blocks, const void* function, int block, size_t dynamic_shared) {
  return OccupancyMaxActiveBlocksWithFlags(blocks, function, block, dynamic_shared, 0);
}
CudaError body::OccupancyMaxActiveClusters(int* clusters, const void* function, const LaunchConfig* config) {
  LS_FUNCTION(function);
  if (config == nullptr) return Remember(device::kCuErrorInvalidValue);
  const device::CuLaunchConfig made = ConfigOf(*config);
  return Remember(driver::OccupancyMaxActiveClusters(clusters, found, &made));
}
CudaError body::OccupancyMaxPotentialClusterSize(int* size, const void* function, const LaunchConfig* config) {
  LS_FUNCTION(function);
  if (config == nullptr) return Remember(device::kCuErrorInvalidValue);
  const device::CuLaunchConfig made = ConfigOf(*config);
  return Remember(driver::OccupancyMaxPotentialClusterSize(size, found, &made));
}
CudaError body::OccupancyAvailableDynamicShared(size_t* bytes, const void* function, int blocks, int block) {
  LS_FUNCTION(function);
  return Remember(driver::OccupancyAvailableDynamicShared(bytes, found, blocks, block));
}

// What the runtime calls as the driver does, with the same parameters.
#define LS_SAME(member, parameters, arguments) \
  CudaError body::member parameters {          \
    LS_ENTER();                                \
    return Remember(driver::member arguments); \
  }
LS_SAME(StreamCreateWithPriority, (CuStream * stream, unsigned flags, int priority), (stream, flags, priority))
LS_SAME(StreamDestroy, (CuStream stream), (stream))
LS_SAME(StreamSynchronize, (CuStream stream), (stream))
LS_SAME(StreamQuery, (CuStream stream), (stream))
LS_SAME(StreamWaitEvent, (CuStream stream, CuEvent event, unsigned flags), (stream, event, flags))
LS_SAME(StreamGetDevice, (CuStream stream, int* device), (stream, device))
LS_SAME(StreamIsCapturing, (CuStream stream, CuStreamCaptureStatus* status), (stream, status))
LS_SAME(StreamBeginCapture, (CuStream stream, CuStreamCaptureMode mode), (stream, mode))
LS_SAME(StreamEndCapture, (CuStream stream, CuGraph* graph), (stream, graph))
LS_SAME(EventDestroy, (CuEvent event), (event))
LS_SAME(EventRecord, (CuEvent event, CuStream stream), (event, stream))
LS_SAME(EventRecordWithFlags, (CuEvent event, CuStream stream, unsigned flags), (event, stream, flags))
LS_SAME(EventSynchronize, (CuEvent event), (event))
LS_SAME(EventQuery, (CuEvent event), (event))
LS_SAME(EventElapsedTime, (float* milliseconds, CuEvent start, CuEvent end), (milliseconds, start, end))
LS_SAME(GraphCreate, (CuGraph * graph, unsigned flags), (graph, flags))
LS_SAME(GraphDestroy, (CuGraph graph), (graph))
LS_SAME(GraphGetNodes, (CuGraph graph, CuGraphNode* nodes, size_t* count), (graph, nodes, count))
LS_SAME(GraphInstantiate, (CuGraphExec * exec, CuGraph graph, unsigned long long flags), (exec, graph, flags))
LS_SAME(GraphLaunch, (CuGraphExec exec, CuStream stream), (exec, stream))
LS_SAME(GraphExecDestroy, (CuGraphExec exec), (exec))

CudaError body::StreamCreate(CuStream* stream) { return StreamCreateWithPriority(stream, 0, 0); }
CudaError body::StreamCreateWithFlags(CuStream* stream, unsigned flags) {
  return StreamCreateWithPriority(stream, flags, 0);
}
CudaError body::EventCreateWithFlags(CuEvent* event, unsigned flags) {
  LS_ENTER();
  return Remember(driver::EventCreate(event, flags));
}
CudaError body::EventCreate(CuEvent* event) { return EventCreateWithFlags(event, 0); }
CudaError body::GraphInstantiateWithFlags(CuGraphExec* exec, CuGraph graph, unsigned long long flags) {
  return GraphInstantiate(exec, graph, flags);
}

}  // namespace laneshift::emulator::runtime
