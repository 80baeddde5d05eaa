#include "compiler/build/scale_places.h"

namespace laneshift::compiler {

using ir::Binding;
using ir::Builder;
using ir::ValueId;

ScaleCorner ScalesOfRows(Builder& b, const Corner& corner, ir::WorkSource source) {
  if (source == ir::WorkSource::kMaskedGroups) return {corner.group_row, corner.batch};
  return {corner.row, source == ir::WorkSource::kGroups ? b.Constant(0) : corner.batch};
}

ValueId LineOfScales(Builder& b, ValueId block, bool packed) {
  return packed ? b.Div({block, b.Constant(ir::PackedFactors::kOfWord)}) : block;
}

ValueId ScaleVector::WordOf(Builder& b, ValueId block) const {
  return b.Add({first, of_b ? block : b.Mul({LineOfScales(b, block, packed), line})});
}

ScaleVector VectorOfScales(Builder& b, const Corner& columns_of_b) {
  const ValueId run = b.Constant(static_cast<int>(kScaleRun));
  const ValueId line = b.CeilDiv({b.ParamValue(Binding::kK), run});
  const ValueId lines = b.CeilDiv({b.ParamValue(Binding::kN), run});
  const ValueId number = b.Add({b.Mul({columns_of_b.batch, lines}), b.Div({columns_of_b.column, run})});
  return {.first = b.Mul({number, line}), .line = line, .of_b = true};
}

ScaleVector VectorOfScales(Builder& b, const ScaleCorner& rows_of_a, ir::WorkSource source, bool packed) {
  const ValueId rows = b.ParamValue(source == ir::WorkSource::kMaskedGroups ? Binding::kGroupRows : Binding::kM);
  const int depth = static_cast<int>(kScaleRun) * (packed ? ir::PackedFactors::kOfWord : 1);
  const ValueId lines = b.CeilDiv({b.ParamValue(Binding::kK), b.Constant(depth)});
  return {
      .first = b.Add({b.Mul({b.Mul({rows_of_a.matrix, lines}), rows}), rows_of_a.row}), .line = rows, .packed = packed};
}

}  // namespace laneshift::compiler
