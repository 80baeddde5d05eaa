// What a line of PTX belongs to, for people.
//
// Thread-safety: pure functions.
#pragma once

#include <string>

#include "emulator/decode/decoded_kernel.h"

namespace laneshift::emulator {

// "kernel", or "kernel (name)" if the line is in a function that the kernel calls, or in a block after a label that its
// author named: the nearest one in its block or an enclosing one; not compilers' numbered labels such as "$L__BB0_2".
std::string KernelAt(const DecodedKernel& kernel, int line);

}  // namespace laneshift::emulator
