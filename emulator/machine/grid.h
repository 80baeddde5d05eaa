// Runs whole grids: clusters on the host's threads.
//
// Thread-safety: RunGrids uses the threads of the pool; the machine and the launches must not change meanwhile.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "emulator/machine/cluster.h"
#include "emulator/machine/worker_pool.h"

namespace laneshift::emulator {

struct GridResult {
  std::optional<Fault> fault;  // the first one; it ended the grid
  Counters counters;
};
// Runs kernels each of which may begin before its predecessor has ended: when every CTA of that one has executed
// griddepcontrol.launch_dependents or ended, or, under late completion, when it has ended. Links the launches.
// The results are in the order of the launches; after a fault the later ones may not have run.
std::vector<GridResult> RunGrids(std::span<Launch> launches, WorkerPool& crew, int host_threads);

}  // namespace laneshift::emulator
