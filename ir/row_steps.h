// Rows of groups that are divided evenly among the group's tiles (`row_step` of ir::WorkAttrs): all tiles of a group
// have the same multiple of a step of them, or fewer in the last. Where they are columns of products, these are as wide
// (ADR 0082), otherwise blocks of warpgroups are left out (ADR 0083); what is left out need not be loaded (ADR 0085).
#pragma once

#include <algorithm>
#include <vector>

#include "base/integer_math.h"

namespace laneshift::ir {

inline constexpr int kRowBlock = 64;  // rows of a warpgroup's products

// For tiles of at most `rows` rows, which are columns of products. A kernel has a loop for each width, which ptxas
// takes long for.
inline int RowStep(int rows) { return base::RoundUp(base::CeilDiv(rows, 8), 8); }

// The widths that a kernel has products of, the widest first. Narrower ones than half of that are left out: groups that
// have several tiles need none.
inline std::vector<int> ProductWidths(int rows) {
  const int step = RowStep(rows);
  std::vector<int> widths = {rows};
  for (int width = base::RoundUp(rows, step) - step; 2 * width >= rows; width -= step) widths.push_back(width);
  return widths;
}

// The rows of a tile of `rows` that are multiplied whatever its group has.
inline int LeastRows(int rows, bool along_n) {
  return along_n ? ProductWidths(rows).back() : std::min(rows, kRowBlock);
}

// Rows of each bulk copy that brings `rows` of a tile, so that what is not multiplied need not be loaded: a block of a
// warpgroup, or with rows along n a quarter of the tile, or half of it. Copies of fewer rows take the loader too long.
inline int RowsOfCopy(int rows, bool along_n) {
  constexpr int kLeastTile = 128, kPattern = 8;  // rows of a swizzle's pattern
  if (!along_n) return rows % kRowBlock == 0 ? kRowBlock : rows;
  for (const int copies : {4, 2}) {
    if (rows >= kLeastTile && rows % (copies * kPattern) == 0) return rows / copies;
  }
  return rows;
}

}  // namespace laneshift::ir
