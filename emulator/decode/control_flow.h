// Where diverged lanes meet again.
//
// Thread-safety: pure functions.
#pragma once

#include "emulator/decode/decoded_kernel.h"

namespace laneshift::emulator {

// Sets the reconvergence point of every branch to its immediate post-dominator, or kNoTarget if there is none.
void FindReconvergence(DecodedKernel& kernel);

}  // namespace laneshift::emulator
