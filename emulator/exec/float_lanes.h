// Functions of f32 for all lanes of a warp at once, where the C library takes a call for each. Results are those of the
// library, bit for bit.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "emulator/decode/decoded_kernel.h"

namespace laneshift::emulator {

// Whether this processor has what the functions below need.
bool HasFloatLanes();

// REQUIRES, of both: HasFloatLanes().
// d = a * b + c, rounded once, in the host's rounding mode; NaN is canonical.
void FuseLanes(uint32_t* d, const uint32_t* a, const uint32_t* b, const uint32_t* c);
// d = tanh(a), computed in double and rounded to f32. Returns the lanes that it has left out: where an approximation
// could be rounded differently.
uint32_t TanhLanes(float* d, const uint32_t* a);

}  // namespace laneshift::emulator
