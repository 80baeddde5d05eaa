// OperandParts: what of an operand's tile a CTA of a cluster or pair loads, and whom it brings it to.
//
// Thread-safety: a value; all functions are pure but for the ops that they append.
#pragma once

#include "ir/builder.h"
#include "laneshift/schedule.h"

namespace laneshift::compiler {

class OperandParts {
 public:
  // `split_gate_up`: the columns of B come alternately from two halves.
  OperandParts(const Schedule& schedule, bool split_gate_up) : schedule_(schedule), split_gate_up_(split_gate_up) {}

  bool HasSplitGateUp() const { return split_gate_up_; }
  // Columns of B that this CTA holds: of a pair, each CTA has half of the tile's.
  int ColumnsOfB() const { return schedule_.tile_n / schedule_.ctas; }
  // How many CTAs of the cluster bring a part of each tile of A or B to all of them, and which those are.
  int Count(ir::Operand operand) const;
  ir::MulticastScope MulticastScopeOf(ir::Operand operand) const;
  // The box that brings one part of a tile.
  ir::SharedLayout BoxOf(ir::SharedLayout tile, ir::Operand operand) const;
  // `first` + rows * (which part of the operand's tiles this CTA brings).
  ir::ValueId Start(ir::Builder& b, ir::ValueId first, ir::Operand operand, int rows) const;
  // The first column of B that this CTA holds, of the tile that begins at `column`. With two halves, that of the first
  // half.
  ir::ValueId ColumnOfB(ir::Builder& b, ir::ValueId column) const;
  // The same where B is resident, for all tiles of the CTA.
  ir::ValueId ColumnOfResidentB(ir::Builder& b) const;

 private:
  const Schedule& schedule_;
  const bool split_gate_up_;
};

}  // namespace laneshift::compiler
