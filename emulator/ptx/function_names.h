// What a line of PTX belongs to, for people.
//
// Thread-safety: pure functions.
#pragma once

#include <string>

#include "emulator/decode/decoded_kernel.h"

namespace laneshift::emulator {

// "kernel", or "kernel (name)" where the line is of a function that the kernel calls, or stands in a block behind a
// label that its author named: the nearest one in its block or one around it; not "$L__BB0_2", as compilers number
// them.
std::string KernelAt(const DecodedKernel& kernel, int line);

}  // namespace laneshift::emulator
