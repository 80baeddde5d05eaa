// LaunchArguments: the kernel parameters of one launch, in the order in which the program declares them.
//
// Lives on the caller's stack: binding touches no heap of the device and waits for nothing.
// Thread-safety: none; one launch, one thread.
#pragma once

#include <array>
#include <span>

#include "compiler/contraction/bindings.h"
#include "device/driver_api.h"
#include "ir/program.h"
#include "laneshift/engine.h"

namespace laneshift::runtime {

// kInvalidArgument: the workspace is not the `bytes` that a plan of the problem needs, or not aligned to 16.
Status CheckWorkspace(const Problem& problem, const void* workspace, size_t bytes);

class LaunchArguments {
 public:
  LaunchArguments() = default;
  LaunchArguments(const LaunchArguments&) = delete;  // pointers() point into it
  LaunchArguments& operator=(const LaunchArguments&) = delete;

  // REQUIRES: PointerRules::CheckPointers is ok; `params` are those of the problem's program; `roles` are RolesOf it.
  Status Bind(const device::DriverApi& api, std::span<const compiler::BoundParam> params, const GemmArguments& roles,
              void* workspace);
  std::span<void* const> pointers() const { return {pointers_.data(), count_}; }

 private:
  union Value {
    device::CuTensorMap map;
    const void* pointer;
    int64_t wide;
    int32_t narrow;
    float real;
  };
  static constexpr size_t kCapacity = ir::kBindingCount;
  std::array<Value, kCapacity> values_;
  std::array<void*, kCapacity> pointers_;
  size_t count_ = 0;
};

}  // namespace laneshift::runtime
