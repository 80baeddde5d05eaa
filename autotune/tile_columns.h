// Extents of tiles along the columns of the matrix instruction, for the space of schedules.
//
// Thread-safety: a value; pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "laneshift/schedule.h"

namespace laneshift::autotune {

constexpr int kWidestTile = 256;

// The output that tiles cover: `m` x `n`, `batch` times, on `sms` SMs. Of groups of rows, a group of average size.
struct TileColumns {
  int64_t m = 0, n = 0, batch = 1;
  bool counted = true;  // the host knows how many tiles there are
  int sms = 0;

  // For tiles with `rows` rows of the instruction along `side`: those of a table, those whose tiles are just as many as
  // whole waves of SMs, and with rows=n those that few tiles of m need.
  std::vector<int> Of(RowSide side, int rows) const;
  // The same for ping-pong warpgroups, which need more tiles than there are SMs.
  std::vector<int> OfPingpong(RowSide side, int rows) const;

 private:
  void AddWaves(std::vector<int>& columns, RowSide side, int rows, int first) const;
};

}  // namespace laneshift::autotune
