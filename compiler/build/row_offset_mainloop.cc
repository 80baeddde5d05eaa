#include "compiler/build/row_offset_mainloop.h"

namespace laneshift::compiler {

using ir::Builder;
using ir::ValueId;

void RowOffsetMainloop::Write(Builder& b, const Accumulation& sums, const ProductTile& tile) const {
  const LaneMasks masks = row_.MasksOf(b, tile.corner);
  row_.ForEachSlot(b, sums, tile.corner, [&](ValueId activations, const KBlock& block) {
    for (const FilterRow::Column& column : row_.columns) {
      const ValueId filter = row_.TakeFilter(b, block, column);
      const ValueId later = row_.Later(b, block, column);
      const ir::MmaAttrs attrs{.a_tile = column.phase, .b_tile = 0, .a_row = column.row};
      if (column.border_offset == 0) {
        sums.Multiply(b, tile.accumulator, activations, filter, later, attrs);
      } else {
        b.Mma({tile.accumulator, activations, filter, later, masks.at(column.border_offset)}, attrs);
      }
      if (!row_.resident) sums.Finish(b, filter, later, {});
    }
  });
}

}  // namespace laneshift::compiler
