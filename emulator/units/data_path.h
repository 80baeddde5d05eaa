// Where tcgen05.mma's operands and results live in Tensor Memory: the data-path layouts A to G.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/units/instruction_descriptor.h"
#include "emulator/units/tensor_memory.h"

namespace laneshift::emulator {

enum class DataPathLayout : uint8_t { kA, kB, kC, kD, kE, kF, kG };

DataPathLayout LayoutOf(const MmaQualifiers& qualifiers, int m, const Policies& policies = {});

// Groups of output columns that are computed concurrently on separate lanes: 1, 2 (B, E) or 4 (G).
int GroupsOf(DataPathLayout layout);
// Layouts that use 16 lanes of every 32 and may start at lane 0 or 16.
inline bool UsesHalfLanes(DataPathLayout layout) {
  return layout == DataPathLayout::kC || layout == DataPathLayout::kF;
}

// The lane of row m0 (of this CTA) in a group: of D's rows, and of A's rows when A is in Tensor Memory. Each group
// reads its own copy of A. `base` is 0, or 16 for half-lane layouts that start there.
inline int LaneOf(DataPathLayout layout, int m0, int group, int base) {
  switch (layout) {
    case DataPathLayout::kA:
    case DataPathLayout::kD:
      return m0;
    case DataPathLayout::kB:
    case DataPathLayout::kE:
      return m0 + 64 * group;
    case DataPathLayout::kC:
    case DataPathLayout::kF:
      return base + 32 * (m0 / 16) + m0 % 16;
    case DataPathLayout::kG:
      return m0 + 32 * group;
  }
  return m0;
}

// The lanes that `rows` rows occupy in all groups, `columns` wide from `column`; `base` as above.
std::vector<TensorRange> RowRanges(DataPathLayout layout, int rows, int base, int column, int columns);

}  // namespace laneshift::emulator
