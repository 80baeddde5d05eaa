#include "compiler/build/pixel_index.h"

namespace laneshift::compiler {

using ir::Binding;
using ir::Builder;
using ir::ValueId;

std::vector<ValueId> PixelIndex::Decode(Builder& b, ValueId position) const {
  std::vector<ValueId> at;
  for (size_t d = 0; d < dimensions; ++d) {
    const ValueId outputs = b.ParamValue(ir::kSpatialBindings[d].outputs);
    at.push_back(b.Rem({position, outputs}));
    position = b.Div({position, outputs});
  }
  at.push_back(position);
  return at;
}

std::vector<ValueId> PixelIndex::PixelStart(Builder& b, ValueId position, ValueId group) const {
  std::vector<ValueId> at = Decode(b, position);
  for (size_t d = 0; d < dimensions; ++d) {
    at[d] = b.Sub(
        {b.Mul({at[d], b.ParamValue(ir::kSpatialBindings[d].stride)}), b.ParamValue(ir::kSpatialBindings[d].pad)});
  }
  at.insert(at.begin(), b.Mul({group, b.ParamValue(Binding::kChannels)}));
  return at;
}

// With a masked border that is the filter's reach to the left before the tile: for the first tile in the image before
// the first one, where nothing is, and no lane reads it.
std::vector<ValueId> PixelIndex::TileStart(Builder& b, ValueId position, ValueId group) const {
  if (!masks_border) return PixelStart(b, position, group);
  ValueId of_image = b.ParamValue(Binding::kPaddedQ);
  for (size_t d = 1; d < dimensions; ++d) {
    of_image = b.Mul({of_image, b.ParamValue(ir::kSpatialBindings[d].outputs)});
  }
  const ValueId pad = b.ParamValue(Binding::kPadW);
  std::vector<ValueId> at = PixelStart(b, b.Sub({b.Add({position, of_image}), pad}), group);
  at[1] = b.Add({at[1], pad});  // the index runs over the image's columns
  at.back() = b.Sub({at.back(), b.Constant(1)});
  return at;
}

}  // namespace laneshift::compiler
