// MachineProbe: measures facts of autotune::Machine on the device at hand, by the kernels of
// compiler/probes/probe_programs.h and compiler/probes/placement_probe.h.
//
// Each fact is a difference of two times, so that common parts (above all the launch) cancel. Clocks are those of the
// clock that the driver reports, which a GPU keeps under such a light load. It runs for about a second and needs the
// device exclusively. Thread-safety: none.
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

// The measurements.
struct MachineProbe {
  std::vector<ProbedFact> facts{};  // which the timing model uses where they are plausible
  // For people: the basis of the facts, and measurements that are not facts of the model.
  struct Product {
    int columns = 0;    // of an instruction
    double clocks = 0;  // for which it holds the tensor core of an SM
  };
  std::vector<Product> products{};
  struct Load {
    int bytes = 0;
    double clocks = 0;  // from issue to release of the slot, one SM, from L2
  };
  std::vector<Load> loads{};
  double handoff_clocks = 0;  // from an arrival at a barrier to the warp that waits for it, nothing else to do
  std::vector<int> gpcs{};    // SMs of each GPC, the largest first
};

// kUnsupported: the device is an emulator, which has no speed.
Result<MachineProbe> ProbeMachine(const device::Device& device, const target::Target& target, bool emulated);

}  // namespace laneshift::runtime
