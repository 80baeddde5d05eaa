// LaneShiftMainloop: activations are copied to Tensor Memory once for a chain of filter columns, and moved there by
// lanes from one column to the next.
//
// Thread-safety: a value.
#pragma once

#include <utility>
#include <vector>

#include "compiler/build/filter_row.h"
#include "compiler/build/lane_moves.h"
#include "compiler/build/mainloop.h"
#include "target/target.h"

namespace laneshift::compiler {

class LaneShiftMainloop final : public Mainloop {
 public:
  struct Moves {
    int channel = -1;    // of A in Tensor Memory
    bool fused = false;  // products move the lanes themselves
    LaneMoves lanes{};
    target::TensorFacts facts{};
  };
  LaneShiftMainloop(FilterRow row, Moves moves) : row_(std::move(row)), moves_(std::move(moves)) {}

  void Write(ir::Builder& b, const Accumulation& sums, const ProductTile& tile) const override;

 private:
  using Column = FilterRow::Column;
  // A chain at hand: A in Tensor Memory, the slot that it was copied from, and what its products are added to.
  struct Chain {
    const std::vector<Column>& columns;
    ir::ValueId a, activations, accumulator;
    const KBlock& block;
    const LaneMasks& masks;
  };
  void MultiplyAndShift(ir::Builder& b, const Chain& chain) const;
  void MultiplyFused(ir::Builder& b, const Chain& chain) const;
  void Multiply(ir::Builder& b, const Chain& chain, ir::ValueId filter, const Column& column,
                const ir::MmaTensorAttrs& attrs) const;
  void ReleaseFilter(ir::Builder& b, ir::ValueId filter) const;
  void Shift(ir::Builder& b, const Chain& chain, int row) const;

  const FilterRow row_;
  const Moves moves_;
};

}  // namespace laneshift::compiler
