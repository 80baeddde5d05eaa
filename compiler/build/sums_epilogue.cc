#include "compiler/build/sums_epilogue.h"

namespace laneshift::compiler {

using ir::Builder;
using ir::Operand;
using ir::ValueId;

TileLoop TilesOfSums(const ir::Program& program, const Schedule& schedule, const KLoop& k) {
  return {.tile_m = program.tile_m,
          .tile_n = program.tile_n,
          .tile_k = schedule.tile_k,
          .raster = schedule.raster,
          .slices = schedule.split_k,
          .blocks = [&k](Builder& b) { return k.Blocks(b); }};
}

void SumTiles(Builder& b, const TileLoop& tiles, int channel,
              const std::function<void(const Corner&, ValueId, ValueId, ValueId)>& multiply) {
  tiles.ForEachCorner(b, [&](const Corner& corner) {
    const ValueId block = b.Constant(tiles.tile_k);
    const ValueId first = corner.IsPart() ? b.Mul({corner.first, block}) : b.Constant(0);
    const ValueId end = corner.IsPart() ? b.Mul({corner.end, block}) : b.ParamValue(ir::Binding::kK);
    const ValueId slot = b.Put({}, {.channel = channel});
    multiply(corner, slot, first, end);
    b.Send({slot});
  });
}

void SumsEpilogue::StoreTiles(Builder& b, const TileLoop& tiles) const {
  const TensorScales scales = steps.LoadTensorScales(b);
  tiles.ForEachCorner(b, [&](const Corner& corner) {
    const ValueId slot = b.Take({}, {.channel = channel});
    const ValueId sums = b.LoadSums({slot}, {.copies = copies});
    b.Release({slot});
    if (!corner.IsSlice()) return StoreTile(b, corner, sums, scales);
    const ValueId column = b.Constant(0), first = b.Mul({corner.number, corner.slices});
    b.If({b.Less({b.Constant(1), corner.slices})});
    b.InBody([&] { b.PartialStore({sums, column, b.Add({first, corner.slice})}); });
    if (slices_apart) {
      b.If({b.Less({corner.slices, b.Constant(2)})});
      b.InBody([&] { StoreTile(b, corner, sums, scales); });
      return;
    }
    // Whoever comes last writes the tile, so that nobody waits; the sum is always in the order of the slices.
    b.If({b.PartialArrive({corner.number, corner.slices}, {})});
    b.InBody([&] { StoreTile(b, corner, b.PartialSum({sums, column, first, corner.slices}), scales); });
  });
}

void SumsEpilogue::StoreTile(Builder& b, const Corner& corner, ValueId sums, const TensorScales& scales) const {
  const bool along_n = plan.rows_along_n;
  const ValueId own = b.Add({along_n ? corner.column : corner.row, b.WarpRow({}, {.rows = steps.RowsOfWarp()})});
  Subtile subtile{.fragment = sums,
                  .row = along_n ? corner.row : own,
                  .column = along_n ? own : corner.column,
                  .batch = corner.batch,
                  .columns = plan.columns};
  subtile.own = own;
  subtile.tile = along_n ? corner.row : corner.column;
  if (terms.orders_reductions) subtile.panel = b.Constant(0);
  steps.Write(b, subtile, scales);
  b.GlobalStore(subtile.Operands(), steps.AccessOf(Operand::kD, plan.columns));
}

}  // namespace laneshift::compiler
