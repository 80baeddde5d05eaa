// Kernel: one entry function of a loaded Module, and its resources.
//
// A Kernel owns nothing: its Module must outlive it. The dynamic shared memory that it may use is an attribute of the
// loaded function, shared by all Kernels of that name and module.
// Thread-safety: const members may be called from any thread; AllowDynamicSmem() must not race with a launch.
#pragma once

#include <string>

#include "device/context.h"

namespace laneshift::device {

struct KernelFacts {
  int registers_per_thread = 0;
  int local_bytes_per_thread = 0;  // spills and local arrays
  int static_smem_bytes = 0;
  int max_threads_per_cta = 0;
  int binary_version = 0;  // 90 for sm_90
};

enum class ClusterLimit { kPortable, kNonPortable };  // up to 8 CTAs on every chip, or up to 16 where the chip can

class Kernel {
 public:
  // Looks up `name` in a loaded module.
  static Result<Kernel> Find(Context context, CuModule module, const std::string& name);

  const std::string& name() const { return name_; }
  const KernelFacts& facts() const { return facts_; }
  CuFunction handle() const { return handle_; }
  Context context() const { return context_; }
  int max_dynamic_smem_bytes() const { return max_dynamic_smem_bytes_; }

  // Allows launches up to `bytes` of dynamic shared memory. kResourceExhausted says by how much static and dynamic
  // shared memory together exceed the device's limit.
  Status AllowDynamicSmem(int bytes);
  Status SetClusterLimit(ClusterLimit limit);

 private:
  Kernel(Context context, CuFunction handle, std::string name)
      : context_(context), handle_(handle), name_(std::move(name)) {}

  Context context_;
  CuFunction handle_;
  std::string name_;
  KernelFacts facts_;
  int max_dynamic_smem_bytes_ = 0;
};

}  // namespace laneshift::device
