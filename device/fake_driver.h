// FakeDriver: only for tests: a DriverApi whose functions record their names, succeed, and fail on request.
//
// The table holds plain functions, so the record is one per process. Thread-safety: none.
#pragma once

#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "device/driver_api.h"

namespace laneshift::device {

struct FakeDriver {
  std::vector<std::string> calls;
  std::map<std::string, CuResult, std::less<>> failures;  // by exported symbol
  int fail_call = 0;                                      // the n-th call from now on fails; 0: none
  CuContext current = nullptr;
  int driver_version = 13000;
  std::string jit_log;
  int device_count = 1;
  // The last launch, with copies of its attributes.
  CuLaunchConfig launched = {};
  std::vector<CuLaunchAttribute> attributes;
  std::map<int, int> function_attributes = {{kCuFuncNumRegs, 168},          {kCuFuncLocalSizeBytes, 0},
                                            {kCuFuncSharedSizeBytes, 1024}, {kCuFuncMaxThreadsPerBlock, 384},
                                            {kCuFuncBinaryVersion, 90},     {kCuFuncMaxDynamicSharedSizeBytes, 48128}};
  std::map<int, int> device_attributes = {
      {kCuDeviceComputeCapabilityMajor, 9}, {kCuDeviceComputeCapabilityMinor, 0},
      {kCuDeviceMultiprocessorCount, 132},  {kCuDeviceMaxSharedMemoryPerBlockOptin, 232448},
      {kCuDeviceClusterLaunch, 1},          {kCuDeviceTensorMapAccessSupported, 1}};

  int active_clusters = 66;

  static FakeDriver& Instance() {
    static FakeDriver fake;
    return fake;
  }
  // A fresh record, and the table that writes to it.
  static DriverApi Reset();

  CuResult Record(std::string_view symbol) {
    calls.emplace_back(symbol);
    if (fail_call > 0 && --fail_call == 0) return kCuErrorUnknown;
    auto failure = failures.find(symbol);
    return failure == failures.end() ? kCuSuccess : failure->second;
  }
  bool Called(std::string_view symbol) const {
    for (const std::string& call : calls) {
      if (call == symbol) return true;
    }
    return false;
  }
  size_t Count(std::string_view symbol) const {
    size_t count = 0;
    for (const std::string& call : calls) count += call == symbol;
    return count;
  }
};

template <typename Handle>
Handle FakeHandle(uintptr_t value) {
  return reinterpret_cast<Handle>(value);
}

inline DriverApi FakeDriver::Reset() {
  Instance() = FakeDriver();
  DriverApi api;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define CU(member, symbol, parameters) api.member = [] parameters -> CuResult { return Instance().Record(#symbol); };
#include "device/driver_api.def"
#pragma GCC diagnostic pop
  api.GetErrorName = [](CuResult error, const char** name) {
    *name = error == kCuErrorOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKED";
    return kCuSuccess;
  };
  api.GetErrorString = [](CuResult, const char** text) {
    *text = "as the test asked";
    return kCuSuccess;
  };
  api.DriverGetVersion = [](int* version) {
    *version = Instance().driver_version;
    return Instance().Record("cuDriverGetVersion");
  };
  api.DeviceGetCount = [](int* count) {
    *count = Instance().device_count;
    return Instance().Record("cuDeviceGetCount");
  };
  api.DeviceGetName = [](char* name, int size, CuDevice) {
    std::snprintf(name, static_cast<size_t>(size), "Fake H200");
    return Instance().Record("cuDeviceGetName");
  };
  api.DeviceGetAttribute = [](int* value, CuDeviceAttribute attribute, CuDevice) {
    *value = Instance().device_attributes[attribute];
    return Instance().Record("cuDeviceGetAttribute");
  };
  api.OccupancyMaxActiveClusters = [](int* clusters, CuFunction, const CuLaunchConfig*) {
    *clusters = Instance().active_clusters;
    return Instance().Record("cuOccupancyMaxActiveClusters");
  };
  api.DevicePrimaryCtxRetain = [](CuContext* context, CuDevice) {
    *context = FakeHandle<CuContext>(0x100);
    return Instance().Record("cuDevicePrimaryCtxRetain");
  };
  api.CtxGetCurrent = [](CuContext* context) {
    *context = Instance().current;
    return Instance().Record("cuCtxGetCurrent");
  };
  api.CtxSetCurrent = [](CuContext context) {
    CuResult result = Instance().Record("cuCtxSetCurrent");
    if (result == kCuSuccess) Instance().current = context;
    return result;
  };
  api.MemAlloc = [](CuDevicePtr* pointer, size_t) {
    *pointer = 0x7000;
    return Instance().Record("cuMemAlloc_v2");
  };
  api.StreamCreate = [](CuStream* stream, unsigned) {
    *stream = FakeHandle<CuStream>(0x200);
    return Instance().Record("cuStreamCreate");
  };
  api.EventCreate = [](CuEvent* event, unsigned) {
    *event = FakeHandle<CuEvent>(0x300);
    return Instance().Record("cuEventCreate");
  };
  api.ModuleLoadDataEx = [](CuModule* module, const void*, unsigned count, CuJitOption* options, void** values) {
    CuResult result = Instance().Record("cuModuleLoadDataEx");
    for (unsigned i = 0; i + 1 < count; ++i) {
      if (options[i] != kCuJitErrorLogBuffer) continue;
      std::snprintf(static_cast<char*>(values[i]), reinterpret_cast<size_t>(values[i + 1]), "%s",
                    Instance().jit_log.c_str());
    }
    if (result == kCuSuccess) *module = FakeHandle<CuModule>(0x400);
    return result;
  };
  api.ModuleGetFunction = [](CuFunction* function, CuModule, const char*) {
    *function = FakeHandle<CuFunction>(0x500);
    return Instance().Record("cuModuleGetFunction");
  };
  api.FuncGetAttribute = [](int* value, CuFunctionAttribute attribute, CuFunction) {
    *value = Instance().function_attributes[attribute];
    return Instance().Record("cuFuncGetAttribute");
  };
  api.LaunchKernelEx = [](const CuLaunchConfig* config, CuFunction, void**, void**) {
    Instance().launched = *config;
    Instance().attributes.assign(config->attributes, config->attributes + config->attribute_count);
    return Instance().Record("cuLaunchKernelEx");
  };
  return api;
}

}  // namespace laneshift::device
