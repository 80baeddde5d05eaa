// The control flow of a kernel, and where diverged lanes meet again.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/decode/decoded_kernel.h"

namespace laneshift::emulator {

// Basic blocks of the program, and a virtual exit as the last node.
struct ControlGraph {
  std::vector<uint32_t> first;  // instruction of each block
  std::vector<std::vector<int>> successors, predecessors;
  int exit = 0;
};
ControlGraph BuildControlGraph(const DecodedKernel& kernel);

// Sets the reconvergence point of every branch to its immediate post-dominator, or kNoTarget if there is none.
void FindReconvergence(DecodedKernel& kernel);

}  // namespace laneshift::emulator
