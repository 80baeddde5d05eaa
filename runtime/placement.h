// Placement of clusters on a device: which SMs are in one GPC (compiler/probes/placement_probe.h).
//
// Thread-safety: none.
#pragma once

#include <vector>

#include "device/device.h"
#include "device/stream.h"
#include "laneshift/result.h"
#include "target/target.h"

namespace laneshift::runtime {

// SMs of each GPC, the largest first; only SMs on which clusters were placed.
Result<std::vector<int>> PlaceClusters(const device::Device& device, const target::Target& target,
                                       const device::Stream& stream);

}  // namespace laneshift::runtime
