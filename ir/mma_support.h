// What the tensor core of a target multiplies, and from where, of the rows of ir/mma_kinds.def.
// Thread-safety: pure functions.
#pragma once

#include "ir/mma.h"
#include "target/target.h"

namespace laneshift::ir {

// Whether instructions of the kind multiply the type.
inline bool Multiplies(const target::MmaUnit& unit, MmaKind kind, DataType type) {
  return (InfoOf(kind).scale_run == 0 || unit.ScalesBlocks()) && (!IsPadded(kind, type) || unit.pads_operands) &&
         (kind != MmaKind::kI8 || unit.integers);
}

// Whether kernels are built that read A from Tensor Memory: what copies it there is the reuse of activations, and
// convolutions have neither scale factors of blocks nor types of fewer than eight bits.
inline bool ReadsTensorMemory(const target::MmaUnit& unit, MmaKind kind, DataType type) {
  return unit.moves_lanes && InfoOf(kind).scale_run == 0 && !IsPadded(kind, type);
}

}  // namespace laneshift::ir
