// State shared by an Engine and its Plans: the opened device, the store and the kernels; private to runtime/.
//
// A Plan holds the core, so the device outlives every kernel that runs on it.
// Thread-safety: every part is immutable or thread-safe.
#pragma once

#include <memory>
#include <mutex>

#include "device/launch.h"
#include "laneshift/engine.h"
#include "nvrtc/function_library.h"
#include "runtime/background_tuner.h"
#include "runtime/block_kernels.h"
#include "runtime/engine_parts.h"
#include "runtime/kernel_cache.h"
#include "runtime/open_device.h"
#include "runtime/plan_table.h"

namespace laneshift::runtime {

struct EngineCore {
  EngineCore(const EngineOptions& options, OpenedDevice device);
  // With options that name their store.
  EngineCore(OpenedDevice device, const EngineOptions& options);

  OpenedDevice opened;
  store::Store store;
  DeviceTarget device_target;
  nvrtc::FunctionLibrary functions;
  KernelCache kernels;
  BlockKernels conversions;
  Engine::Parts parts;
  const MissPolicy on_miss;
  const device::GridOverlap overlap;

  PlanTable plans;
  std::mutex tuning;           // one problem at a time; held by callers that wait for it
  BackgroundTuner background;  // last: its thread uses all of the above
};

// Enqueues one kernel. REQUIRES: the device's context is active.
Status Launch(const EngineCore& core, const PreparedLaunch& launch, const GemmArguments& roles, void* workspace,
              CUstream_st* stream);
// Whether a capture is detected: of `stream`, or, through the default stream (null), of streams that wait for it. If
// the device cannot answer, the next call will report why.
bool IsCaptured(const device::Device& device, CUstream_st* stream);

struct FoundPlan {
  std::shared_ptr<EngineCore> core;  // first: destroyed after the kernel
  std::shared_ptr<PlanSlot> slot;
  // The cost of making it, reported as long as the slot has the version that it was made for; null if it was
  // remembered.
  std::unique_ptr<const PlanReport> own{};
  const PreparedPlan* made_for = nullptr;
};

}  // namespace laneshift::runtime

namespace laneshift {

struct Engine::Impl : runtime::EngineCore {
  using EngineCore::EngineCore;
};

struct Plan::Impl : runtime::FoundPlan {};

}  // namespace laneshift
