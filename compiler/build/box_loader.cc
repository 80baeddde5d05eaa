#include "compiler/build/box_loader.h"

namespace laneshift::compiler {

using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::ValueId;

ir::SharedLayout BoxLoader::TileOf(Operand operand, int channels) const {
  const Spatial& box = contraction_.ReadsTaps(operand) ? geometry_.box : geometry_.outputs_of_box;
  const bool positions = contraction_.SumsPixels();
  return {.type = contraction_.Of(operand).type(),
          .outer_axis = positions ? ir::Axis::kK : ir::Axis::kM,
          .inner_axis = positions && operand == Operand::kA ? ir::Axis::kM : ir::Axis::kN,
          .outer = static_cast<int>(box[kDepth] * box[kHeight] * box[kWidth]),
          .inner = channels,
          .swizzle = ir::Swizzle::k128,
          .linear = true};
}

std::vector<ValueId> BoxLoader::FirstOutput(Builder& b, ValueId number) const {
  std::vector<ValueId> first;
  for (size_t d = 0; d < dimensions_; ++d) {
    const ValueId outputs = b.Constant(static_cast<int>(geometry_.outputs_of_box[kWidth - d]));
    const ValueId boxes = b.CeilDiv({b.ParamValue(ir::kSpatialBindings[d].outputs), outputs});
    first.push_back(b.Mul({b.Rem({number, boxes}), outputs}));
    number = b.Div({number, boxes});
  }
  first.push_back(number);
  return first;
}

ValueId BoxLoader::Dividend(Builder& b, size_t d, ValueId output) const {
  const ir::SpatialBindings& of = ir::kSpatialBindings[d];
  const ValueId most = b.Mul({b.ParamValue(of.stride), b.Constant(kMostPaddedStrides)});
  return b.Sub({b.Add({output, most}), b.ParamValue(of.pad)});
}

ValueId BoxLoader::PhaseAt(Builder& b, size_t d, ValueId output) const {
  return b.Rem({Dividend(b, d, output), b.ParamValue(ir::kSpatialBindings[d].stride)});
}

void BoxLoader::Load(Builder& b, Operand operand, ValueId slot, int tile, ValueId channel,
                     const std::vector<ValueId>& first_output) const {
  std::vector<ValueId> at = first_output;
  for (size_t d = 0; d < dimensions_ && contraction_.ReadsTaps(operand); ++d) {
    const ir::SpatialBindings& of = ir::kSpatialBindings[d];
    const ValueId stride = b.ParamValue(of.stride);
    at[d] = geometry_.divides ? b.Sub({b.Div({Dividend(b, d, at[d]), stride}), b.Constant(kMostPaddedStrides)})
                              : b.Sub({b.Mul({at[d], stride}), b.ParamValue(of.pad)});
  }
  at.insert(at.begin(), {slot, channel});
  b.LoadPixels(at, {.tile = tile, .map = ir::MapOf(operand, ir::OperandComponent::kElements), .block = true});
}

}  // namespace laneshift::compiler
