#include "compiler/build/run_scale_loader.h"

#include <array>

#include "ir/stored_tensor.h"

namespace laneshift::compiler {

using ir::Axis;
using ir::Builder;
using ir::Operand;
using ir::ValueId;

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

// Of A a row of the tensor map has a block of K, or four. Of B a row has a run of columns, of which the TMA copies
// whole lines from multiples of a line on: the factors of the block of K and of its neighbours. Of a vector
// (SlotScales) lines begin at the last multiple before what is needed.
OperandLoader::LoadBlock RunScaleLoader::StartTile(Builder& b, const Corner& corner) const {
  const bool whole = cluster_.IsWhole(operand_);
  const ir::LoadAttrs attrs{.tile = target().tile,
                            .operand = operand_,
                            .to = whole ? cluster_.MulticastScopeOf(operand_) : ir::MulticastScope::kOwn,
                            .whole = whole,
                            .component = ir::OperandComponent::kScales};
  const auto whole_lines = [](Builder& into, ValueId word) {
    const ValueId line = into.Constant(ir::kFactorsOfLine);
    return into.Mul({into.Div({word, line}), line});
  };
  if (operand_ == Operand::kB && scales_.b_vector) {
    const ScaleVector vector = VectorOfScales(b, corner);
    return [=, runs = tiles_.count](Builder& into, ValueId slot, const KBlock& block, int) {
      ir::LoadAttrs part = attrs;
      const ValueId zero = into.Constant(0);
      ValueId word = vector.WordOf(into, block.number);
      for (int i = 0; i < runs; ++i, ++part.tile) {
        if (i > 0) word = into.Add({word, vector.line});
        into.TmaLoad({slot, whole_lines(into, word), zero, zero}, part);
      }
    };
  }
  if (operand_ == Operand::kB) {
    const ValueId first = b.Div({corner.column, b.Constant(static_cast<int>(kScaleRun))});
    const int of_line = scales_.packed ? ir::PackedFactors::kOfLine : ir::kFactorsOfLine;
    return [attrs, first, batch = corner.batch, of_line](Builder& into, ValueId slot, const KBlock& block, int) {
      const ValueId words = into.Constant(ir::kFactorsOfLine);
      const ValueId blocks = of_line == ir::kFactorsOfLine ? words : into.Constant(of_line);
      into.TmaLoad({slot, into.Mul({into.Div({block.number, blocks}), words}), first, batch}, attrs);
    };
  }
  ScaleCorner first = ScalesOfRows(b, corner, source_);
  ScaleVector vector;
  if (scales_.a_vector) {
    vector = VectorOfScales(b, first, source_, scales_.packed);
  } else if (source_ == ir::WorkSource::kGroups) {
    first.row = whole_lines(b, first.row);
  }
  return [=, tiles = tiles_, scales = scales_](Builder& into, ValueId slot, const KBlock& block, int) {
    ir::LoadAttrs part = attrs;
    const ValueId zero = scales.a_vector ? into.Constant(0) : ir::kNoValue;
    const ValueId begin = scales.a_vector ? whole_lines(into, vector.WordOf(into, block.number)) : first.row;
    const ValueId line = scales.a_vector ? zero : LineOfScales(into, block.number, scales.packed);
    const ValueId matrix = scales.a_vector ? zero : first.matrix;
    for (int i = 0; i < tiles.count; ++i, ++part.tile) {
      const ValueId row = i == 0 ? begin : into.Add({begin, into.Constant(i * tiles.rows)});
      into.TmaLoad({slot, row, line, matrix}, part);
    }
  };
}

}  // namespace laneshift::compiler
