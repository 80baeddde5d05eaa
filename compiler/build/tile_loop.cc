#include "compiler/build/tile_loop.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace laneshift::compiler {

using ir::Binding;
using ir::Builder;
using ir::ValueId;

void ForEach(Builder& b, ValueId count, const std::function<void(ValueId)>& write) {
  const ValueId index = b.For({b.Constant(0), count});
  b.InBody([&] { write(index); });
}

void TileLoop::ForEachTile(Builder& b, int turn, const std::function<void(const Tile&)>& write) const {
  const ValueId rows_of_tile = b.Constant(tile_m);
  const ValueId columns_of_tile = b.Constant(tile_n);
  const ValueId rows = b.CeilDiv({b.ParamValue(Binding::kM), rows_of_tile});
  const ValueId columns = b.CeilDiv({b.ParamValue(Binding::kN), columns_of_tile});
  const bool taken = grants >= 0;
  std::vector<ValueId> counts = {rows, columns, b.ParamValue(Binding::kBatch)};
  if (SharesTiles()) counts.push_back(blocks(b));
  const ValueId first =
      b.Work(std::move(counts), {.raster = raster,
                                 .source = taken ? ir::WorkSource::kLaunchControl : ir::WorkSource::kStatic,
                                 .slices = sections,
                                 .turn = std::max(turn, 0),
                                 .turns = turn < 0 ? 1 : turns});
  b.InBody([&] {
    write({first, rows_of_tile, columns_of_tile});
    if (!taken) return;
    const ValueId answer = b.Take({}, {.channel = grants});
    b.WorkNext({answer});
    b.Release({answer});
  });
}

Corner TileLoop::ShareOf(const Tile& tile) const {
  Corner corner{.batch = Builder::Argument(tile.first, 2)};
  if (!SharesTiles()) return corner;
  corner.first = Builder::Argument(tile.first, 3);
  corner.end = Builder::Argument(tile.first, 4);
  corner.number = Builder::Argument(tile.first, 5);
  corner.section = Builder::Argument(tile.first, 6);
  corner.sections = Builder::Argument(tile.first, 7);
  return corner;
}

Corner TileLoop::CornerOf(Builder& b, const Tile& tile) const {
  Corner corner = ShareOf(tile);
  corner.row = b.Mul({Builder::Argument(tile.first, 0), tile.rows});
  corner.column = b.Mul({Builder::Argument(tile.first, 1), tile.columns});
  return corner;
}

void TileLoop::ForEachCorner(Builder& b, const std::function<void(const Corner&)>& write) const {
  ForEachTile(b, kEveryTurn, [&](const Tile& tile) { write(CornerOf(b, tile)); });
}

void TileLoop::PassTile(Builder& b, int channel, int slots_of_block) const {
  ValueId slots = blocks(b);
  if (slots_of_block > 1) slots = b.Mul({slots, b.Constant(slots_of_block)});
  b.Pass({slots}, {.channel = channel});
}

}  // namespace laneshift::compiler
