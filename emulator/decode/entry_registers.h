// Which registers a warp must find cleared.
//
// Thread-safety: pure functions.
#pragma once

#include "emulator/decode/decoded_kernel.h"

namespace laneshift::emulator {

// Sets DecodedKernel::cleared: all but the registers that every lane writes before any instruction reads them.
void FindClearedRegisters(DecodedKernel& kernel);

}  // namespace laneshift::emulator
