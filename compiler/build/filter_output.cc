#include "compiler/build/filter_output.h"

#include "compiler/build/position_loader.h"

namespace laneshift::compiler {

using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::ValueId;

void FilterOutput::AddPitches(Operand operand, std::vector<ir::Param>& params) const {
  params.insert(params.end(), {{ir::PitchOf(operand), {}}, {ir::StrideOf(operand), {}}});
}

void FilterOutput::AddSizes(std::vector<ir::Param>& params) const {
  for (const Binding size : {Binding::kM, Binding::kN, Binding::kK, Binding::kBatch}) params.push_back({size, {}});
  if (outputs_ || HasWindows()) params.push_back({Binding::kOutQ, {}});
  if (HasWindows()) params.push_back({Binding::kChannels, {}});
  for (size_t d = 0; d < dimensions_; ++d) {
    const ir::SpatialBindings& of = ir::kSpatialBindings[d];
    for (const Binding size : {of.outputs, of.taps, of.stride, of.pad, of.dilation}) params.push_back({size, {}});
  }
}

std::vector<ValueId> FilterOutput::StoreStart(Builder& b, ValueId row, const Corner& corner) const {
  const TapOfGroup tap = DecodeTap(b, dimensions_, corner.batch);
  return {b.Add({row, b.Mul({tap.group, b.ParamValue(Binding::kM)})}), tap.number};
}

void FilterOutput::BulkStore(Builder& b, ValueId copy, ValueId column, const Corner&, const std::vector<ValueId>& start,
                             const ir::BulkStoreAttrs& attrs) const {
  b.TmaStore({copy, column, start[0], start[1]}, attrs);
}

}  // namespace laneshift::compiler
