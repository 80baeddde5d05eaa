#include "compiler/build/scale_factors.h"

namespace laneshift::compiler {

using ir::Axis;
using ir::Builder;
using ir::Operand;
using ir::ScaleBlock;
using ir::ValueId;

ir::SharedLayout ScaleTiles::Layout() const {
  return {.type = scaling.type,
          .outer_axis = operand == Operand::kA ? Axis::kM : Axis::kN,
          .inner_axis = Axis::kK,
          .outer = Blocks() * ScaleBlock::kLines,
          .inner = ScaleBlock::kLineBytes,
          .swizzle = ir::Swizzle::kNone};
}

void ScaleLoader::AddParams(std::vector<ir::Param>& params) const {
  params.push_back({ir::MapOfScales(tiles_.operand), tiles_.Layout()});
}

// The lines of 128 rows are a matrix of the tensor map: those of a matrix of the batch follow each other.
OperandLoader::LoadBlock ScaleLoader::StartTile(Builder& b, const Corner& corner) const {
  const bool of_a = tiles_.operand == Operand::kA;
  const ValueId rows = b.Constant(ScaleBlock::kRows);
  const ValueId matrices = b.CeilDiv({b.ParamValue(of_a ? ir::Binding::kM : ir::Binding::kN), rows});
  const ValueId first = b.Add({b.Mul({corner.batch, matrices}), b.Div({of_a ? corner.row : corner.column, rows})});
  return [this, first](Builder& into, ValueId slot, const KBlock& block, int) {
    const ValueId line = into.Mul({block.number, into.Constant(tiles_.Layout().outer)});
    for (int i = 0; i < tiles_.Count(); ++i) {
      const ValueId matrix = i == 0 ? first : into.Add({first, into.Constant(i)});
      into.TmaLoad({slot, into.Constant(0), line, matrix},
                   {.tile = target().tile + i, .operand = tiles_.operand, .scales = true});
    }
  };
}

void ScaledMainloop::Write(Builder& b, const Accumulation& sums, const ProductTile& tile) const {
  const int of_a = slots_.a_scales.Columns();
  k_.ForEachNumber(b, tile.corner, [&](ValueId number) {
    const ValueId slot = b.Take({}, {.channel = slots_.ring});
    const ValueId factors = b.Reserve({}, {.channel = slots_.factors});
    const auto copy = [&](const ScaleTiles& tiles, int first_tile, int first_column) {
      for (int i = 0; i < tiles.Count(); ++i) {
        b.ScaleCopy(
            {factors, slot},
            {.tile = first_tile + i, .column = first_column + i * ScaleBlock::kFactors, .step = tiles.StepColumns()});
      }
    };
    copy(slots_.a_scales, slots_.a_scale_tile, 0);
    copy(slots_.b_scales, slots_.b_scale_tile, of_a);
    const ValueId later = KLoop::IsLater(b, tile.corner, number);
    b.MmaScaled(
        {tile.accumulator, factors, slot, slot, later},
        {.a_tile = slots_.a_tile, .b_tile = slots_.b_tile, .run = slots_.a_scales.scaling.run, .b_scales = of_a});
    sums.Release(b, slot, later);
    b.Retire({factors});
  });
}

}  // namespace laneshift::compiler
