#include "autotune/tile_columns.h"

#include <algorithm>

#include "base/integer_math.h"

namespace laneshift::autotune {
namespace {

constexpr int kColumns[] = {kWidestTile, 240, 224, 208, 192, 176, 160, 144, 128, 112, 96, 80, 64, 48, 32, 16};
constexpr int kPingpongColumns[] = {kWidestTile, 224, 208, 192, 176, 160, 144, 128, 112, 96, 64};
constexpr int kTransposedColumns[] = {kWidestTile, 224, 192, 160, 128, 96, 64, 48, 32, 16, 8};  // along m
constexpr int kFittedTiles = 3, kFittedWaves = 3;

// `least` columns or a few more, unless they are known or too many.
void AddFitted(std::vector<int>& columns, int64_t least, RowSide side) {
  const int64_t fitted = base::RoundUp(least, int64_t{side == RowSide::kM ? 16 : 8});
  const bool known = std::find(columns.begin(), columns.end(), fitted) != columns.end();
  if (fitted <= kWidestTile && !known) columns.push_back(static_cast<int>(fitted));
}

}  // namespace

std::vector<int> TileColumns::Of(RowSide side, int rows) const {
  std::vector<int> columns;
  if (side == RowSide::kM) {
    columns.assign(std::begin(kColumns), std::end(kColumns));
  } else {
    // One tile with all of m is enough.
    for (const int each : kTransposedColumns) {
      const bool narrowest = each == std::end(kTransposedColumns)[-1];
      if (narrowest || each < 2 * m) columns.push_back(each);
    }
    for (int tiles = 1; tiles <= kFittedTiles; ++tiles) AddFitted(columns, base::CeilDiv(m, int64_t{tiles}), side);
  }
  AddWaves(columns, side, rows, 1);
  return columns;
}

std::vector<int> TileColumns::OfPingpong(RowSide side, int rows) const {
  std::vector<int> columns(std::begin(kPingpongColumns), std::end(kPingpongColumns));
  AddWaves(columns, side, rows, 2);
  return columns;
}

// The narrowest columns whose tiles are no more than so many waves.
void TileColumns::AddWaves(std::vector<int>& columns, RowSide side, int rows, int first) const {
  if (!counted) return;
  const int64_t along = side == RowSide::kM ? n : m;
  const int64_t across = base::CeilDiv(side == RowSide::kM ? m : n, int64_t{rows});
  for (int waves = first; waves <= kFittedWaves; ++waves) {
    const int64_t tiles = waves * sms / (across * batch);
    if (tiles > 1) AddFitted(columns, base::CeilDiv(along, tiles), side);
  }
}

}  // namespace laneshift::autotune
