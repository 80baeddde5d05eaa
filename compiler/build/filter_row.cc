#include "compiler/build/filter_row.h"

namespace laneshift::compiler {

using ir::Builder;
using ir::ValueId;

LaneMasks FilterRow::MasksOf(Builder& b, const Corner& corner) const {
  LaneMasks masks;
  for (const Column& column : columns) {
    if (column.border_offset != 0)
      masks[column.border_offset] = b.RowBorderMask({corner.row}, {.columns = column.border_offset});
  }
  return masks;
}

void FilterRow::ForEachSlot(Builder& b, const Accumulation& sums, const Corner& corner,
                            const std::function<void(ValueId, const KBlock&)>& write) const {
  k.ForEachBlock(b, corner, [&](const KBlock& block) {
    const ValueId slot = b.Take({}, {.channel = activations});
    write(slot, block);
    sums.Release(b, slot, block.later);
  });
}

ValueId FilterRow::TakeFilter(Builder& b, const KBlock& block, const Column& column) const {
  if (!resident) return b.Take({}, {.channel = filters});
  const ValueId tap = k.TapNumber(b, block, b.Constant(column.s));
  return b.ResidentSlot({k.NumberIn(b, block, tap)}, {.channel = filters});
}

ValueId FilterRow::Later(Builder& b, const KBlock& block, const Column& column) const {
  return column.s == columns.front().s ? block.later : b.Less({b.Constant(0), b.Constant(1)});
}

}  // namespace laneshift::compiler
