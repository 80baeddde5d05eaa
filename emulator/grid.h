// Runs a whole grid: clusters on the host's threads.
//
// Thread-safety: RunGrid uses the threads of the crew; the machine and the launch must not change meanwhile.
#pragma once

#include <optional>

#include "emulator/cluster.h"
#include "emulator/crew.h"

namespace laneshift::emulator {

struct GridResult {
  std::optional<Fault> fault;  // the first one; the grid was given up then
  Counters counters;
};
GridResult RunGrid(const Launch& launch, Crew& crew, int host_threads);

}  // namespace laneshift::emulator
