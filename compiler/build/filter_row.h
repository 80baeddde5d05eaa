// FilterRow: what the main loops share that multiply all columns of a filter row by one slot of activations.
//
// Thread-safety: values; all functions are pure but for the ops that they append.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "compiler/build/accumulation.h"
#include "compiler/build/k_loop.h"
#include "compiler/contraction/conv_geometry.h"

namespace laneshift::compiler {

// Lanes that are left out, by the columns that a tap stands next to the output pixel; empty without a masked border.
using LaneMasks = std::map<int, ir::ValueId>;

struct FilterRow {
  using Column = ConvGeometry::Column;

  KLoop k{};
  std::vector<Column> columns{};  // in the order in which they are multiplied
  int activations = -1;           // channel
  int filters = -1;               // channel
  bool resident = false;          // filters are

  // Once a tile.
  LaneMasks MasksOf(ir::Builder& b, const Corner& corner) const;
  // Calls `write` for each slot of activations.
  void ForEachSlot(ir::Builder& b, const Accumulation& sums, const Corner& corner,
                   const std::function<void(ir::ValueId slot, const KBlock& block)>& write) const;
  // The filter tile of a column.
  ir::ValueId TakeFilter(ir::Builder& b, const KBlock& block, const Column& column) const;
  // Whether anything was accumulated before this column of this block.
  ir::ValueId Later(ir::Builder& b, const KBlock& block, const Column& column) const;
};

}  // namespace laneshift::compiler
