#include "compiler/build/position_loader.h"

#include <utility>

namespace laneshift::compiler {

using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::ValueId;

TapOfGroup DecodeTap(Builder& b, size_t dimensions, ValueId batch) {
  TapOfGroup tap{.group = batch};
  ValueId taps = b.Constant(1);
  for (size_t d = 0; d < dimensions; ++d) {
    const ValueId extent = b.ParamValue(ir::kSpatialBindings[d].taps);
    tap.taps.push_back(b.Rem({tap.group, extent}));
    tap.group = b.Div({tap.group, extent});
    taps = b.Mul({taps, extent});
  }
  tap.number = b.Rem({batch, taps});
  return tap;
}

OperandLoader::LoadBlock PositionLoader::StartTile(Builder& b, const Corner& corner) const {
  const TapOfGroup tap = DecodeTap(b, pixels_.dimensions, corner.batch);
  const bool of_a = matrix_.operand == Operand::kA;
  const ValueId of_group = b.Mul({tap.group, b.ParamValue(of_a ? Binding::kM : Binding::kN)});
  const ValueId channel = b.Add({of_a ? corner.row : parts_.ColumnOfB(b, corner.column), of_group});
  std::vector<ValueId> offsets;
  for (size_t d = 0; d < pixels_.dimensions; ++d) {
    offsets.push_back(reads_taps_ ? b.Mul({tap.taps[d], b.ParamValue(ir::kSpatialBindings[d].dilation)})
                                  : b.Constant(0));
  }
  return [this, channel, offsets = std::move(offsets)](Builder& into, ValueId slot, const KBlock& block, int) {
    const int rows = parts_.BoxOf(matrix_.tile, matrix_.operand).outer;
    std::vector<ValueId> at = pixels_.Decode(into, parts_.Start(into, block.first, matrix_.operand, rows));
    for (size_t d = 0; d < offsets.size() && reads_taps_; ++d) {
      const ir::SpatialBindings& of = ir::kSpatialBindings[d];
      at[d] = into.Sub({into.Mul({at[d], into.ParamValue(of.stride)}), into.ParamValue(of.pad)});
    }
    std::vector<ValueId> operands = {slot, channel};
    operands.insert(operands.end(), at.begin(), at.end());
    operands.insert(operands.end(), offsets.begin(), offsets.end());
    into.LoadPixels(
        operands,
        {.tile = target().tile, .map = ir::MapOf(matrix_.operand), .to = parts_.MulticastScopeOf(matrix_.operand)});
  };
}

}  // namespace laneshift::compiler
