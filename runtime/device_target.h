// DeviceTarget: the target of an opened device, with the tensor facts of that very device.
//
// The facts come from the store. Otherwise the probe (compiler/probes/tensor_probe.h) runs once, or the documented
// facts are used. Nothing is measured before it is needed. Thread-safety: all members may be called from any thread.
#pragma once

#include <mutex>

#include "runtime/open_device.h"
#include "store/store.h"
#include "target/target.h"

namespace laneshift::runtime {

class DeviceTarget {
 public:
  // REQUIRES: `opened` and `store` outlive this.
  DeviceTarget(const OpenedDevice& opened, store::Store& store);

  // With the documented facts.
  const target::Target& documented() const { return *opened_.target; }
  // With the facts of this device. A device without Tensor Memory has no facts and is documented(). If a probe fails,
  // that is logged, and the documented facts are used.
  const target::Target& Get();
  // Runs the probe, even if the facts are known, and stores its answers.
  Result<target::TensorFacts> Measure() const;

 private:
  bool ReadStored(target::TensorFacts& facts) const;

  const OpenedDevice& opened_;
  store::Store& store_;
  const std::string key_;
  std::once_flag asked_;
  target::Target measured_;
};

}  // namespace laneshift::runtime
