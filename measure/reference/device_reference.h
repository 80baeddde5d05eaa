// The reference on a GPU: a plain kernel with double-precision sums, compiled by NVRTC, that compares D in place.
//
// It is independent of the kernels that it checks: no tensor cores, no TMA, no generated code.
// Thread-safety: none.
#pragma once

#include <utility>

#include "device/device.h"
#include "device/module.h"
#include "device/stream.h"
#include "laneshift/engine.h"
#include "measure/reference/comparison.h"
#include "measure/reference/reference_module.h"

namespace laneshift::measure {

// The reference of one problem. Compiled once; a comparison takes as long as the double-precision sums.
class DeviceReference {
 public:
  // REQUIRES: `problem` is complete; the device outlives this.
  static Result<DeviceReference> Compile(const Nvrtc& nvrtc, const device::Device& device, const Problem& problem,
                                         CodeForm form = CodeForm::kCubin);
  // Compares the whole of D (y) with the reference; waits for the stream. kInvalidArgument: arguments of another kind
  // of problem.
  Result<Comparison> Compare(const device::Stream& stream, const Arguments& arguments) const;

 private:
  struct ReductionBuffers;
  DeviceReference(const device::Device& device, Problem problem, device::Module module, device::Kernel kernel)
      : device_(&device), problem_(std::move(problem)), module_(std::move(module)), kernel_(std::move(kernel)) {}

  const device::Device* device_;
  Problem problem_;
  device::Module module_;
  device::Kernel kernel_;
};

// Both in one, for a single comparison.
Result<Comparison> CompareOnDevice(const Nvrtc& nvrtc, const device::Device& device, const device::Stream& stream,
                                   const Problem& problem, const Arguments& arguments,
                                   CodeForm form = CodeForm::kCubin);

}  // namespace laneshift::measure
