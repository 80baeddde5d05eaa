#include "compiler/build/lane_shift_mainloop.h"

#include <algorithm>

namespace laneshift::compiler {

using ir::Builder;
using ir::ValueId;

namespace {

// A product that writes nothing, and orders the moves before and after it.
void MultiplyIdly(Builder& b, ValueId accumulator, ValueId a, ValueId filter, bool shift) {
  b.MmaTensor({accumulator, a, filter, b.Less({b.Constant(0), b.Constant(1)})},
              {.b_tile = 0, .idle = true, .shift = shift});
}

}  // namespace

void LaneShiftMainloop::Write(Builder& b, const Accumulation& sums, const ProductTile& tile) const {
  const LaneMasks masks = row_.MasksOf(b, tile.corner);
  row_.ForEachSlot(b, sums, tile.corner, [&](ValueId activations, const KBlock& block) {
    const auto of_chain = [](const Column& one, const Column& other) { return one.chain == other.chain; };
    for (auto begin = row_.columns.begin(), end = begin; begin != row_.columns.end(); begin = end) {
      end = std::find_if(begin, row_.columns.end(), [&](const Column& column) { return !of_chain(column, *begin); });
      const std::vector<Column> columns(begin, end);
      const ValueId a = b.Reserve({}, {.channel = moves_.channel});
      b.TensorCopy({a, activations}, {.tile = columns.front().phase, .row = columns.front().row});
      const Chain chain{columns, a, activations, tile.accumulator, block, masks};
      moves_.fused ? MultiplyFused(b, chain) : MultiplyAndShift(b, chain);
      b.Retire({a});
    }
  });
}

void LaneShiftMainloop::Multiply(Builder& b, const Chain& chain, ValueId filter, const Column& column,
                                 const ir::MmaTensorAttrs& attrs) const {
  std::vector<ValueId> operands = {chain.accumulator, chain.a, filter, row_.Later(b, chain.block, column)};
  if (column.border_offset != 0) operands.push_back(chain.masks.at(column.border_offset));
  b.MmaTensor(operands, attrs);
}

void LaneShiftMainloop::ReleaseFilter(Builder& b, ValueId filter) const {
  if (!row_.resident) b.Release({filter});
}

// For each column mma, shift, refresh. Every two neighbours are a pair that the hardware keeps in order, so nothing
// waits. A shift after a refresh is no such pair: where dilation moves the lanes more than once between two columns, an
// idle product stands between.
void LaneShiftMainloop::MultiplyAndShift(Builder& b, const Chain& chain) const {
  const std::vector<Column>& columns = chain.columns;
  int row = columns.front().row;
  for (size_t i = 0; i < columns.size(); ++i) {
    const int next_row = columns[std::min(i + 1, columns.size() - 1)].row;
    const ValueId filter = row_.TakeFilter(b, chain.block, columns[i]);
    Multiply(b, chain, filter, columns[i], {.b_tile = 0});
    for (; row + 1 < next_row; ++row) {
      Shift(b, chain, row);
      MultiplyIdly(b, chain.accumulator, chain.a, filter, false);
    }
    ReleaseFilter(b, filter);
    if (row < next_row) Shift(b, chain, row++);
  }
}

// Products that move the lanes themselves, before they multiply or after it as the device does. What a move leaves
// is not refreshed: those lanes of the tile are lost, and the products leave them out. Products of one accumulator are
// in order, so nothing waits either.
void LaneShiftMainloop::MultiplyFused(Builder& b, const Chain& chain) const {
  const std::vector<Column>& columns = chain.columns;
  const bool moves_before = moves_.facts.ashift_time == target::AshiftTime::kBefore;
  const auto rows_between = [&](size_t i) { return columns[i + 1].row - columns[i].row; };
  for (size_t i = 0; i < columns.size(); ++i) {
    const int before = moves_before && i > 0 ? rows_between(i - 1) : 0;
    const int after = !moves_before && i + 1 < columns.size() ? rows_between(i) : 0;
    const ValueId filter = row_.TakeFilter(b, chain.block, columns[i]);
    for (int move = 1; move < before; ++move) MultiplyIdly(b, chain.accumulator, chain.a, filter, true);
    Multiply(b, chain, filter, columns[i],
             {.b_tile = 0, .shift = before + after > 0, .stale = columns[i].row - columns.front().row});
    for (int move = 1; move < after; ++move) MultiplyIdly(b, chain.accumulator, chain.a, filter, true);
    ReleaseFilter(b, filter);
  }
}

// Moves the lanes from `row` rows after the tile's first position to row + 1.
void LaneShiftMainloop::Shift(Builder& b, const Chain& chain, int row) const {
  const int phase = chain.columns.front().phase;
  const std::vector<int>& rows = moves_.lanes.rows[static_cast<size_t>(phase)];
  const auto move = static_cast<int>(std::find(rows.begin(), rows.end(), row + 1) - rows.begin());
  // Once for each partition where an issue moves the addressed one only.
  const bool of_partition = moves_.facts.shift_scope == target::ShiftScope::kAddressed;
  b.TensorShift({chain.a}, {.issues = of_partition ? ir::kRefreshedRows : 1});
  b.TensorRefresh({chain.a, chain.activations},
                  {.tile = moves_.lanes.EdgeTile(phase), .row = move * ir::kRefreshedRows});
}

}  // namespace laneshift::compiler
