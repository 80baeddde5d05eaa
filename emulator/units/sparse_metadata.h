// Structured sparsity of tcgen05.mma.sp: the metadata nibbles in Tensor Memory and the expansion of A.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "emulator/units/data_path.h"
#include "emulator/units/instruction_descriptor.h"
#include "emulator/units/tensor_memory.h"
#include "laneshift/result.h"

namespace laneshift::emulator {

// Where one nibble is: bits [bit, bit+4) of a cell.
struct MetadataPosition {
  TensorAddress cell;
  int bit = 0;
};

// Dense elements that one nibble describes: 2 (tf32), 8 (4-bit kinds), else 4.
int ChunkOf(Tcgen05Kind kind);
// The columns that hold the metadata of `address` under the descriptor's selector.
TensorRange MetadataColumns(Tcgen05Kind kind, int selector, TensorAddress address);
MetadataPosition PositionOf(Tcgen05Kind kind, int selector, TensorAddress address, DataPathLayout layout, int base,
                            int m0, int group, int chunk);

// Spreads one row of stored elements over the dense positions; `nibbles` has one value per chunk. A code that is not
// one of the legal ones is an Error that names it, unless everything that the chunk keeps is zero.
Status ExpandRow(Tcgen05Kind kind, std::span<const uint8_t> nibbles, const uint32_t* stored, uint32_t* dense,
                 Tf32Nibble tf32 = Tf32Nibble::kFirst);

}  // namespace laneshift::emulator
