// Rows of groups that are divided evenly among the group's tiles (`row_step` of ir::WorkAttrs), where they are columns of
// products (ADR 0082): all tiles of a group have the same multiple of a step of them, or fewer in the last, and their
// products are as wide.
#pragma once

#include <vector>

#include "base/integer_math.h"

namespace laneshift::ir {

// For tiles of at most `rows` rows. A kernel has a loop for each width, which ptxas takes long for.
inline int RowStep(int rows) { return base::RoundUp(base::CeilDiv(rows, 8), 8); }

// The widths that a kernel has products of, the widest first. Narrower ones than half of that are left out: groups that
// have several tiles need none.
inline std::vector<int> ProductWidths(int rows) {
  const int step = RowStep(rows);
  std::vector<int> widths = {rows};
  for (int width = base::RoundUp(rows, step) - step; 2 * width >= rows; width -= step) widths.push_back(width);
  return widths;
}

}  // namespace laneshift::ir
