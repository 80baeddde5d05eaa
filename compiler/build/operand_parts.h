// OperandParts: what of an operand's tile a CTA of a cluster or pair loads, and whom it brings it to.
//
// Thread-safety: a value; all functions are pure but for the ops that they append.
#pragma once

#include "ir/builder.h"
#include "laneshift/schedule.h"

namespace laneshift::compiler {

class OperandParts {
 public:
  // `split_gate_up`: the columns of B come alternately from two halves. `whole`: of the CTAs that share a tile the
  // first one brings it to all; otherwise each brings a part.
  OperandParts(const Schedule& schedule, bool split_gate_up, bool whole = false)
      : schedule_(schedule), split_gate_up_(split_gate_up), whole_(whole) {}

  bool HasSplitGateUp() const { return split_gate_up_; }
  // Columns of B that this CTA holds: of a pair, each CTA has half of the tile's.
  int ColumnsOfB() const { return schedule_.tile_n / schedule_.ctas; }
  // How many parts of each tile of A or B CTAs of the cluster bring, and to whom.
  int Count(ir::Operand operand) const { return whole_ ? 1 : Sharers(operand); }
  ir::MulticastScope MulticastScopeOf(ir::Operand operand) const;
  bool IsWhole(ir::Operand operand) const { return whole_ && Sharers(operand) > 1; }
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
  // The CTAs of the cluster that have the same tile of an operand.
  int Sharers(ir::Operand operand) const;

  const Schedule& schedule_;
  const bool split_gate_up_, whole_;
};

}  // namespace laneshift::compiler
