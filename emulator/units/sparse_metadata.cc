#include "emulator/units/sparse_metadata.h"

#include <algorithm>

#include "base/text.h"

namespace laneshift::emulator {
namespace {

bool InOneColumn(Tcgen05Kind kind) { return kind == Tcgen05Kind::kF16 || kind == Tcgen05Kind::kTf32; }
bool IsFourBit(Tcgen05Kind kind) { return kind == Tcgen05Kind::kMxf4 || kind == Tcgen05Kind::kMxf4nvf4; }

bool IsLegalPair(uint8_t nibble) {
  constexpr uint8_t kLegal[] = {0x4, 0x8, 0xc, 0x9, 0xd, 0x6, 0xe};
  return std::find(std::begin(kLegal), std::end(kLegal), nibble) != std::end(kLegal);
}

Error IllegalCode(uint8_t nibble, size_t chunk) {
  return MakeError(ErrorCode::kInvalidArgument, base::Cat("sparsity metadata code ", static_cast<int>(nibble),
                                                          " of chunk ", chunk, " is not legal"));
}

// A chunk that keeps only zeros is zero whatever its code says: compressors leave the code of such a chunk at 0, which
// is not legal otherwise.
bool AllZero(const uint32_t* stored, int count) {
  return std::all_of(stored, stored + count, [](uint32_t bits) { return bits == 0; });
}

}  // namespace

int ChunkOf(Tcgen05Kind kind) { return kind == Tcgen05Kind::kTf32 ? 2 : IsFourBit(kind) ? 8 : 4; }

TensorRange MetadataColumns(Tcgen05Kind kind, int selector, TensorAddress address) {
  if (!InOneColumn(kind)) return {0, 128, address.column, 2};
  // The selector picks a column of the aligned pair; 2 and 3 reach into an aligned group of four.
  const int aligned = selector < 2 ? address.column & ~1 : address.column & ~3;
  return {0, 128, static_cast<uint16_t>(aligned + selector), 1};
}

MetadataPosition PositionOf(Tcgen05Kind kind, int selector, TensorAddress address, DataPathLayout layout, int base,
                            int m0, int group, int chunk) {
  const int k = chunk * ChunkOf(kind);
  int row = m0, column = 0, bit = 0;
  if (kind == Tcgen05Kind::kF16) {
    row = m0 % 8 + 8 * (k / 16 % 2) + 16 * (m0 / 16);
    bit = 16 * (m0 / 8 % 2) + k % 16;
  } else if (kind == Tcgen05Kind::kTf32) {
    row = m0 % 8 + 8 * (k / 8) + 16 * (m0 / 16);
    bit = 16 * (m0 / 8 % 2) + 2 * (k % 8);
  } else {
    const int position = IsFourBit(kind) ? k / 2 : k;
    column = position / 32;
    bit = position % 32;
  }
  const TensorRange columns = MetadataColumns(kind, selector, address);
  return {{static_cast<uint16_t>(LaneOf(layout, row, group, base)), static_cast<uint16_t>(columns.column + column)},
          bit};
}

Status ExpandRow(Tcgen05Kind kind, std::span<const uint8_t> nibbles, const uint32_t* stored, uint32_t* dense,
                 Tf32Nibble tf32) {
  const int chunk = ChunkOf(kind);
  std::fill_n(dense, nibbles.size() * static_cast<size_t>(chunk), 0u);
  for (size_t i = 0; i < nibbles.size(); ++i, dense += chunk, stored += chunk / 2) {
    const uint8_t nibble = nibbles[i];
    if (kind == Tcgen05Kind::kTf32) {
      if (nibble != 0x4 && nibble != 0xe) {
        if (AllZero(stored, 1)) continue;
        return IllegalCode(nibble, i);
      }
      dense[(nibble == 0xe) == (tf32 == Tf32Nibble::kFirst)] = stored[0];
      continue;
    }
    if (!IsLegalPair(nibble)) {
      if (AllZero(stored, chunk / 2)) continue;
      return IllegalCode(nibble, i);
    }
    // The 4-bit kinds keep pairs of adjacent elements.
    const int run = IsFourBit(kind) ? 2 : 1;
    std::copy_n(stored, run, dense + (nibble & 3) * run);
    std::copy_n(stored + run, run, dense + (nibble >> 2) * run);
  }
  return Ok();
}

}  // namespace laneshift::emulator
