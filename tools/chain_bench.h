// ChainBench: `laneshift bench --chain`.
//
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "laneshift/engine.h"
#include "measure/peers/peer.h"
#include "tools/reports/schedule_view.h"

namespace laneshift::tools {

struct ChainSettings {
  ScheduleConstraint constraint{};
  std::vector<measure::Peer> peers{};
  std::vector<std::string> library_directories{};
  int layers = 16;
  int rounds = 50;
  uint64_t seed = 12;
  ScheduleView view = ScheduleView::kShort;
  bool json = false;
};

// Times the problems one after the other as one CUDA graph of so many layers, against the peers' graphs, and prints the
// time of a layer. REQUIRES: there are problems; the engine's device is a GPU.
Status BenchChain(const Engine& engine, const std::vector<Problem>& problems, const ChainSettings& settings);

}  // namespace laneshift::tools
