// The sums of products in double precision by a GPU, for a comparison on the host: for problems whose epilogue only the
// host's reference knows (NeedsHost), but whose sums take long there.
//
// Thread-safety: none.
#pragma once

#include <utility>

#include "device/buffer.h"
#include "device/device.h"
#include "device/module.h"
#include "device/stream.h"
#include "laneshift/engine.h"
#include "measure/reference/host_reference.h"
#include "measure/reference/reference_module.h"

namespace laneshift::measure {

class DeviceSums {
 public:
  // REQUIRES: `problem` is complete; the device outlives this.
  static Result<DeviceSums> Compile(const Nvrtc& nvrtc, const device::Device& device, const Problem& problem,
                                    CodeForm form = CodeForm::kCubin);
  // Those of a strip; waits for the stream. kInvalidArgument: arguments of another kind of problem.
  Result<StripSums> Compute(const device::Stream& stream, const Arguments& arguments, const Strip& strip) const;

 private:
  DeviceSums(const device::Device& device, Problem problem, device::Module module, device::Kernel kernel)
      : device_(&device), problem_(std::move(problem)), module_(std::move(module)), kernel_(std::move(kernel)) {}

  const device::Device* device_;
  Problem problem_;
  device::Module module_;
  device::Kernel kernel_;
};

}  // namespace laneshift::measure
