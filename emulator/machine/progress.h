// Where a warp has been while a cluster watched it, for the news of a launch that takes long.
//
// Thread-safety: a plain value of the cluster's host thread.
#pragma once

#include <cstdint>

namespace laneshift::emulator {

class Warp;

struct Progress {
  static constexpr int kRounds = 64;

  int rounds = 0;                     // that were watched
  uint64_t news = 0;                  // Cluster::news when it began
  const Warp* warp = nullptr;         // the first one that runs
  uint64_t instructions = 0;          // of that warp when it began
  int first_line = 0, last_line = 0;  // where it was after each round; 0: nowhere
};

}  // namespace laneshift::emulator
