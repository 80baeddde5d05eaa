#include "device/kernel.h"

#include "base/text.h"
#include "device/driver_error.h"

namespace laneshift::device {
namespace {

struct KernelAttribute {
  CuFunctionAttribute attribute;
  int KernelFacts::*field;
};

constexpr KernelAttribute kKernelAttributes[] = {
    {kCuFuncNumRegs, &KernelFacts::registers_per_thread},
    {kCuFuncLocalSizeBytes, &KernelFacts::local_bytes_per_thread},
    {kCuFuncSharedSizeBytes, &KernelFacts::static_smem_bytes},
    {kCuFuncMaxThreadsPerBlock, &KernelFacts::max_threads_per_cta},
    {kCuFuncBinaryVersion, &KernelFacts::binary_version},
};

}  // namespace

Result<Kernel> Kernel::Find(Context context, CuModule module, const std::string& name) {
  LS_ASSIGN(ActiveContext active, ActiveContext::Enter(context));
  const DriverApi& api = *context.api;
  CuFunction handle = nullptr;
  if (CuResult result = api.ModuleGetFunction(&handle, module, name.c_str()); result != kCuSuccess) {
    return DriverError(api, result, base::Cat("finding kernel ", name));
  }
  Kernel kernel(context, handle, name);
  for (const KernelAttribute& row : kKernelAttributes) {
    CuResult result = api.FuncGetAttribute(&(kernel.facts_.*row.field), row.attribute, handle);
    if (result != kCuSuccess) return DriverError(api, result, base::Cat("cuFuncGetAttribute of ", name));
  }
  LS_TRY(DriverStatus(api,
                      api.FuncGetAttribute(&kernel.max_dynamic_smem_bytes_, kCuFuncMaxDynamicSharedSizeBytes, handle),
                      "cuFuncGetAttribute of the dynamic shared memory"));
  return kernel;
}

Status Kernel::AllowDynamicSmem(int bytes) {
  LS_ASSIGN(ActiveContext active, ActiveContext::Enter(context_));
  const DriverApi& api = *context_.api;
  CuDevice device = 0;
  LS_TRY(DriverStatus(api, api.CtxGetDevice(&device), "cuCtxGetDevice"));
  int limit = 0;
  LS_TRY(DriverStatus(api, api.DeviceGetAttribute(&limit, kCuDeviceMaxSharedMemoryPerBlockOptin, device),
                      "cuDeviceGetAttribute"));
  if (bytes < 0) {
    return MakeError(ErrorCode::kInvalidArgument, base::Cat("kernel ", name_, ": ", bytes, " bytes of shared memory"));
  }
  int64_t total = int64_t{facts_.static_smem_bytes} + bytes;
  if (total > limit) {
    return MakeError(ErrorCode::kResourceExhausted,
                     base::Cat("kernel ", name_, ": ", facts_.static_smem_bytes, " static and ", bytes,
                               " dynamic bytes of shared memory pass the device's ", limit, " by ", total - limit));
  }
  CuResult result = api.FuncSetAttribute(handle_, kCuFuncMaxDynamicSharedSizeBytes, bytes);
  if (result != kCuSuccess) {
    return DriverError(api, result, base::Cat("allowing kernel ", name_, " ", bytes, " bytes of shared memory"));
  }
  max_dynamic_smem_bytes_ = bytes;
  return Ok();
}

Status Kernel::SetClusterLimit(ClusterLimit limit) {
  LS_ASSIGN(ActiveContext active, ActiveContext::Enter(context_));
  return DriverStatus(*context_.api,
                      context_.api->FuncSetAttribute(handle_, kCuFuncNonPortableClusterSizeAllowed,
                                                     limit == ClusterLimit::kNonPortable ? 1 : 0),
                      "cuFuncSetAttribute of the cluster size");
}

}  // namespace laneshift::device
