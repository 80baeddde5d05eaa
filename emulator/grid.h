// Runs a whole grid: clusters on the host's threads.
//
// Thread-safety: RunGrid uses the threads of the crew; the machine and the launch must not change meanwhile.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "emulator/cluster.h"
#include "emulator/crew.h"

namespace laneshift::emulator {

struct GridResult {
  std::optional<Fault> fault;  // the first one; the grid was given up then
  Counters counters;
};
// Runs kernels one after the other. One that may begin before those before it have ended (Launch::predecessors_ended is
// set here for all but the first) does so as soon as the completion policy lets it: when every CTA before it has
// executed griddepcontrol.launch_dependents or ended, or, under late completion, when these kernels have ended. The
// results are in the order of the launches; after a fault the later ones may not have run.
std::vector<GridResult> RunGrids(std::span<Launch> launches, Crew& crew, int host_threads);

}  // namespace laneshift::emulator
