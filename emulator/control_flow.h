// Where diverged lanes meet again.
//
// Thread-safety: pure functions.
#pragma once

#include <vector>

#include "emulator/program.h"

namespace laneshift::emulator {

// Sets the reconvergence point of every branch to its immediate post-dominator, or kNoTarget if there is none.
void FindReconvergence(std::vector<Instruction>& code);

}  // namespace laneshift::emulator
