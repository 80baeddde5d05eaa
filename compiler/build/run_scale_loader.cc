#include "compiler/build/run_scale_loader.h"

#include <array>

#include "compiler/build/scale_places.h"
#include "ir/stored_tensor.h"

namespace laneshift::compiler {

using ir::Axis;
using ir::Builder;
using ir::Operand;
using ir::ValueId;

namespace {

// The TMA copies whole lines from multiples of a line on: `word` and its neighbours.
ValueId WholeLines(Builder& b, ValueId word) {
  const ValueId line = b.Constant(ir::kFactorsOfLine);
  return b.Mul({b.Div({word, line}), line});
}

}  // namespace

ir::SharedLayout RunScaleTile(Operand operand, int lines) {
  return {.type = DataType::kF32,
          .outer_axis = operand == Operand::kA ? Axis::kM : Axis::kN,
          .inner_axis = Axis::kK,
          .outer = lines,
          .inner = ir::kFactorsOfLine,
          .swizzle = ir::Swizzle::kNone,
          .linear = true};
}

void RunScaleLoader::AddParams(std::vector<ir::Param>& params) const {
  params.push_back({ir::MapOf(operand_, ir::OperandComponent::kScales), tiles_.layout});
}

OperandLoader::LoadBlock RunScaleLoader::StartVector(Builder& b, const Corner& corner,
                                                     const ir::LoadAttrs& attrs) const {
  const bool of_a = operand_ == Operand::kA;
  const ScaleVector vector =
      of_a ? VectorOfScales(b, ScalesOfRows(b, corner, source_), source_, packed_) : VectorOfScales(b, corner);
  return [=, tiles = tiles_](Builder& into, ValueId slot, const KBlock& block, int) {
    ir::LoadAttrs part = attrs;
    const ValueId zero = into.Constant(0);
    ValueId word = vector.WordOf(into, block.number);
    for (int i = 0; i < tiles.count; ++i, ++part.tile) {
      if (i > 0) word = into.Add({word, of_a ? into.Constant(tiles.rows) : vector.line});
      into.TmaLoad({slot, WholeLines(into, word), zero, zero}, part);
    }
  };
}

// Of A a row of the tensor map has a block of K, or four. Of B a row has a run of columns, of which the TMA copies the
// factors of the block of K and of its neighbours.
OperandLoader::LoadBlock RunScaleLoader::StartTile(Builder& b, const Corner& corner) const {
  const bool whole = cluster_.IsWhole(operand_);
  const ir::LoadAttrs attrs{.tile = target().tile,
                            .operand = operand_,
                            .to = whole ? cluster_.MulticastScopeOf(operand_) : ir::MulticastScope::kOwn,
                            .whole = whole,
                            .component = ir::OperandComponent::kScales};
  if (tiles_.vector) return StartVector(b, corner, attrs);
  if (operand_ == Operand::kB) {
    const ValueId first = b.Div({corner.column, b.Constant(static_cast<int>(kScaleRun))});
    const int of_line = packed_ ? ir::PackedFactors::kOfLine : ir::kFactorsOfLine;
    return [attrs, first, batch = corner.batch, of_line](Builder& into, ValueId slot, const KBlock& block, int) {
      const ValueId words = into.Constant(ir::kFactorsOfLine);
      const ValueId blocks = of_line == ir::kFactorsOfLine ? words : into.Constant(of_line);
      into.TmaLoad({slot, into.Mul({into.Div({block.number, blocks}), words}), first, batch}, attrs);
    };
  }
  ScaleCorner first = ScalesOfRows(b, corner, source_);
  if (source_ == ir::WorkSource::kGroups) first.row = WholeLines(b, first.row);
  return [attrs, first, tiles = tiles_, packed = packed_](Builder& into, ValueId slot, const KBlock& block, int) {
    ir::LoadAttrs part = attrs;
    const ValueId line = LineOfScales(into, block.number, packed);
    for (int i = 0; i < tiles.count; ++i, ++part.tile) {
      const ValueId row = i == 0 ? first.row : into.Add({first.row, into.Constant(i * tiles.rows)});
      into.TmaLoad({slot, row, line, first.matrix}, part);
    }
  };
}

}  // namespace laneshift::compiler
