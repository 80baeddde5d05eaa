// The zero-column mask descriptor of tcgen05.mma.ws: which columns of B count as zero, and how far B is shifted.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/units/instruction_descriptor.h"
#include "laneshift/result.h"

namespace laneshift::emulator {

struct ZeroColumns {
  int shift = 0;           // output column n uses column n + shift of B
  std::vector<bool> zero;  // per output column
};

// `shape` gives M, N and the largest shift that the instruction descriptor announced.
Result<ZeroColumns> DecodeZeroColumns(uint64_t bits, const Tcgen05Descriptor& shape, const Policies& policies = {});

}  // namespace laneshift::emulator
