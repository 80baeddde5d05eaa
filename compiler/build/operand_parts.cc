#include "compiler/build/operand_parts.h"

namespace laneshift::compiler {

using ir::Axis;
using ir::Builder;
using ir::MulticastScope;
using ir::Operand;
using ir::ValueId;

int OperandParts::Sharers(Operand operand) const {
  return operand == Operand::kA ? schedule_.cluster_n : schedule_.cluster_m / schedule_.ctas;
}

MulticastScope OperandParts::MulticastScopeOf(Operand operand) const {
  if (Sharers(operand) == 1) return MulticastScope::kOwn;
  return operand == Operand::kA ? MulticastScope::kN : MulticastScope::kM;
}

ir::SharedLayout OperandParts::BoxOf(ir::SharedLayout tile, Operand operand) const {
  tile.outer /= Count(operand);
  return tile;
}

ValueId OperandParts::Start(Builder& b, ValueId first, Operand operand, int rows) const {
  if (Count(operand) == 1) return first;
  const bool along_n = operand == Operand::kA;
  ValueId part = b.ClusterIndex({}, {.axis = along_n ? Axis::kN : Axis::kM});
  if (!along_n && schedule_.ctas > 1) part = b.Div({part, b.Constant(schedule_.ctas)});
  if (operand == Operand::kB && split_gate_up_) rows /= 2;
  return b.Add({first, b.Mul({part, b.Constant(rows)})});
}

ValueId OperandParts::ColumnOfB(Builder& b, ValueId column) const {
  if (schedule_.ctas > 1) {
    const ValueId half = b.Rem({b.ClusterIndex({}, {.axis = Axis::kM}), b.Constant(schedule_.ctas)});
    column = b.Add({column, b.Mul({half, b.Constant(ColumnsOfB())})});
  }
  return split_gate_up_ ? b.Div({column, b.Constant(2)}) : column;
}

// In higher bands there is one column of tiles.
ValueId OperandParts::ColumnOfResidentB(Builder& b) const {
  if (schedule_.raster > 1) return ColumnOfB(b, b.Constant(0));
  const ValueId tile_n = b.Constant(schedule_.tile_n);
  const ValueId columns = b.CeilDiv({b.ParamValue(ir::Binding::kN), tile_n});
  return ColumnOfB(b, b.Mul({b.WorkColumn({columns}), tile_n}));
}

}  // namespace laneshift::compiler
