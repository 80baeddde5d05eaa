#include "compiler/build/pixel_output.h"

#include "ir/epilogue_steps.h"

namespace laneshift::compiler {

using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::ValueId;

void PixelOutput::AddPitches(Operand operand, std::vector<ir::Param>& params) const {
  params.insert(params.end(), {{ir::PitchOf(operand), {}}, {ir::PixelPitchesOf(operand).row, {}}});
  if (pixels_.dimensions == 3) params.push_back({ir::PixelPitchesOf(operand).plane, {}});
  params.push_back({ir::StrideOf(operand), {}});
}

void PixelOutput::AddSizes(std::vector<ir::Param>& params) const {
  for (const Binding size : {Binding::kM, Binding::kN, Binding::kK, Binding::kBatch, Binding::kChannels,
                             Binding::kFilters, Binding::kOutQ}) {
    params.push_back({size, {}});
  }
  for (size_t d = 0; d < pixels_.dimensions; ++d) {
    const ir::SpatialBindings& of = ir::kSpatialBindings[d];
    for (const Binding size : {of.outputs, of.taps, of.stride, of.pad, of.dilation}) params.push_back({size, {}});
    if (extents_) params.push_back({of.extent, {}});
    if (contraction_.geometry.HasPatches()) params.push_back({of.pixels, {}});
  }
}

// The pixels of a patch in one row of the image are one run where there are no gaps between them, and all of them
// exist.
int PixelOutput::AccessWidthOf(Operand operand, int run) const {
  OperandSource pixels = contraction_.Of(operand);
  const int64_t of_row = contraction_.geometry.patch[kWidth];
  int64_t& pitch = pixels.memory.pitches[ir::StoredTensor::kPixel];
  if (pitch == pixels.run && pixels.memory.extents[ir::StoredTensor::kPixel] % of_row == 0) {
    pixels.run *= of_row;
    pitch *= of_row;
  }
  return AccessWidth(pixels, run);
}

std::vector<ValueId> PixelOutput::StoreStart(Builder& b, ValueId row, const Corner&) const {
  return pixels_.Decode(b, row);
}

void PixelOutput::BulkStore(Builder& b, ValueId copy, ValueId column, const Corner& corner,
                            const std::vector<ValueId>& start, const ir::BulkStoreAttrs& attrs) const {
  const Binding of_group = ir::IsGated(contraction_.epilogue()) ? Binding::kColumns : Binding::kN;
  std::vector<ValueId> operands = {copy, b.Add({column, b.Mul({corner.batch, b.ParamValue(of_group)})})};
  operands.insert(operands.end(), start.begin(), start.end());
  b.StorePixels(operands, attrs);
}

}  // namespace laneshift::compiler
