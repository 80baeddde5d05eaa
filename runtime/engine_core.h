// What an Engine and its Plans share: the opened device, the store and the kernels; private to runtime/.
//
// A Plan holds the core, so the device outlives every kernel that runs on it.
// Thread-safety: everything but `plans` is immutable or safe by itself; `plans` is guarded by its mutex.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/bindings.h"
#include "compiler/compile.h"
#include "laneshift/engine.h"
#include "runtime/engine_parts.h"
#include "runtime/kernel_cache.h"
#include "runtime/open_device.h"

namespace laneshift::runtime {

// A plan without the device that keeps it valid. Immutable.
struct PreparedPlan {
  Problem problem;                           // complete
  std::vector<compiler::BoundParam> params;  // of the kernel, in order
  compiler::LaunchShape launch;
  std::shared_ptr<const LoadedKernel> kernel;
  PlanReport report;
};

struct EngineCore {
  EngineCore(const EngineOptions& options, OpenedDevice device);

  OpenedDevice opened;
  store::Store store;
  DeviceTarget device_target;
  KernelCache kernels;
  Engine::Parts parts;

  std::mutex plans_mutex;
  std::unordered_map<std::string, std::shared_ptr<const PreparedPlan>> plans;
};

}  // namespace laneshift::runtime

namespace laneshift {

struct Engine::Impl : runtime::EngineCore {
  using EngineCore::EngineCore;
};

struct Plan::Impl {
  std::shared_ptr<runtime::EngineCore> core;  // first: destroyed after the kernel
  std::shared_ptr<const runtime::PreparedPlan> prepared;
  PlanReport report;
};

}  // namespace laneshift
