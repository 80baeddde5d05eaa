#include "compiler/build/tile_loop.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace laneshift::compiler {

using ir::Binding;
using ir::Builder;
using ir::ValueId;

void ForEach(Builder& b, ValueId first, ValueId end, const std::function<void(ValueId)>& write) {
  const ValueId index = b.For({first, end});
  b.InBody([&] { write(index); });
}

void ForEach(Builder& b, ValueId count, const std::function<void(ValueId)>& write) {
  ForEach(b, b.Constant(0), count, write);
}

void TileLoop::ForEachTile(Builder& b, int pingpong_index, const std::function<void(const Tile&)>& write) const {
  const ValueId rows_of_tile = b.Constant(tile_m);
  const ValueId columns_of_tile = b.Constant(tile_n);
  // Only the device knows the rows of a group.
  const ValueId rows = ir::HasGroups(source) ? rows_of_tile : b.CeilDiv({b.ParamValue(Binding::kM), rows_of_tile});
  const ValueId columns = b.CeilDiv({b.ParamValue(Binding::kN), columns_of_tile});
  const bool dynamic = source == ir::WorkSource::kLaunchControl;
  std::vector<ValueId> counts = {rows, columns, b.ParamValue(Binding::kBatch)};
  if (SplitsK()) counts.push_back(blocks(b));
  if (source == ir::WorkSource::kPartsOfK) counts.push_back(b.Constant(tile_k));
  const ValueId first = b.Work(std::move(counts), {.raster = raster,
                                                   .source = source,
                                                   .slices = slices,
                                                   .pingpong_index = std::max(pingpong_index, 0),
                                                   .pingpong_roles = pingpong_index < 0 ? 1 : pingpong_roles,
                                                   .row_step = row_step});
  b.InBody([&] {
    write({first, rows_of_tile, columns_of_tile});
    if (!dynamic) return;
    const ValueId response = b.Take({}, {.channel = clc});
    b.WorkNext({response});
    b.Release({response});
  });
}

Corner TileLoop::FirstCorner(Builder& b) const {
  const ValueId zero = b.Constant(0);
  Corner corner{.row = zero, .column = zero, .batch = zero};
  if (ir::HasGroups(source)) {
    corner.group_row = corner.first_block = zero;
    corner.rows = b.Constant(tile_m);
  }
  return corner;
}

Corner TileLoop::SliceOf(const Tile& tile) const {
  Corner corner{.batch = Builder::Argument(tile.first, 2)};
  if (source == ir::WorkSource::kPartsOfK) {
    corner.part = Builder::Argument(tile.first, ir::kWorkTileArguments);
    corner.part_length = Builder::Argument(tile.first, ir::kWorkTileArguments + 1);
    corner.part_blocks = Builder::Argument(tile.first, ir::kWorkTileArguments + 2);
  }
  if (!SplitsK()) return corner;
  corner.first = Builder::Argument(tile.first, 3);
  corner.end = Builder::Argument(tile.first, 4);
  if (slices == 1) return corner;
  corner.number = Builder::Argument(tile.first, 5);
  corner.slice = Builder::Argument(tile.first, 6);
  corner.slices = Builder::Argument(tile.first, 7);
  return corner;
}

Corner TileLoop::CornerOf(Builder& b, const Tile& tile) const {
  Corner corner = SliceOf(tile);
  if (ir::HasGroups(source)) {
    corner.group_row = Builder::Argument(tile.first, ir::kWorkTileArguments + 3);
    corner.row = b.Add({Builder::Argument(tile.first, ir::kWorkTileArguments), corner.group_row});
    corner.first_block = Builder::Argument(tile.first, ir::kWorkTileArguments + 1);
    corner.rows = RowsOfGroup(tile);
  } else {
    corner.row = b.Mul({Builder::Argument(tile.first, 0), tile.rows});
  }
  corner.column = b.Mul({Builder::Argument(tile.first, 1), tile.columns});
  return corner;
}

void TileLoop::ForEachCorner(Builder& b, const std::function<void(const Corner&)>& write) const {
  ForEachTile(b, kEveryTile, [&](const Tile& tile) { write(CornerOf(b, tile)); });
}

void TileLoop::PassTile(Builder& b, const Tile& tile, int channel, int slots_of_block) const {
  ValueId slots = TilesDiffer() ? Builder::Argument(tile.first, ir::kWorkTileArguments + 3) : blocks(b);
  if (slots_of_block > 1) slots = b.Mul({slots, b.Constant(slots_of_block)});
  b.Pass({slots}, {.channel = channel});
}

}  // namespace laneshift::compiler
