// MachineProbe: measures facts of autotune::Machine on the device at hand, by the kernels of compiler/machine_probe.h.
//
// Each fact is a difference of two times, so that what both have in common (the launch, above all) is not in it. Clocks
// are those of the clock that the driver names, which a GPU keeps while it does so little. It runs for about a second
// and wants the device for itself. Thread-safety: none.
#pragma once

#include <string>
#include <vector>

#include "device/device.h"
#include "laneshift/result.h"
#include "target/target.h"

namespace laneshift::runtime {

struct ProbedFact {
  std::string name;  // of a fact of autotune::Machine
  double value = 0;
};

// kUnsupported: the device is an emulator, which has no speed.
Result<std::vector<ProbedFact>> ProbeMachine(const device::Device& device, const target::Target& target, bool emulated);

}  // namespace laneshift::runtime
