// How the lanes of a warp share eight rows of a tile that they load by asynchronous copies of pieces of 4, 8 or 16
// bytes: so many of them have adjacent pieces of a row, in several runs where rows have more pieces than that. After
// eight rows the swizzle of a row is the same again, whatever its span.
//
// Thread-safety: a value.
#pragma once

#include <numeric>

#include "base/check.h"
#include "ir/layout.h"

namespace laneshift::ir {

struct PieceLanes {
  static constexpr int kGroupRows = 8;

  PieceLanes(const SharedLayout& layout, int piece)
      : lanes(std::gcd(layout.RowBytes() / piece, kWarp)),
        runs(layout.RowBytes() / piece / lanes),
        rows(kWarp / lanes) {
    LS_CHECK(rows <= kGroupRows, "rows of ", layout.RowBytes(), " bytes have too few pieces of ", piece);
  }
  int Steps() const { return kGroupRows / rows; }

  int lanes, runs, rows;

 private:
  static constexpr int kWarp = 32;
};

}  // namespace laneshift::ir
