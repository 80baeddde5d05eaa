#include "compiler/build/filter_loader.h"

namespace laneshift::compiler {

using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::ValueId;

namespace {

// Where a tile of filters lies.
struct FilterStart {
  ValueId first, filter, tap;
};

void LoadFilterTile(Builder& b, const FilterOperand& operand, const LoadTarget& target, const OperandParts& parts,
                    ValueId slot, const FilterStart& start) {
  const std::vector<ValueId> at = {slot, start.first, start.filter, start.tap};
  ir::LoadAttrs attrs{.tile = target.tile, .operand = Operand::kB, .halves = parts.HasSplitGateUp()};
  if (target.path == LoadPath::kTma) {
    attrs.to = parts.MulticastScopeOf(Operand::kB);
    b.TmaLoad(at, attrs);
  } else {
    attrs.taps = operand.finds_taps;
    b.CopyLoad(at, attrs);
  }
}

// The filter from which on this CTA loads, of those from `filter` on.
ValueId StartOfPart(Builder& b, const FilterOperand& operand, LoadPath path, const OperandParts& parts,
                    ValueId filter) {
  if (path != LoadPath::kTma) return filter;
  return parts.Start(b, filter, Operand::kB, parts.BoxOf(operand.tile, Operand::kB).outer);
}

}  // namespace

void FilterOperand::AddParams(LoadPath path, const OperandParts& parts, std::vector<ir::Param>& params) const {
  if (path == LoadPath::kTma) {
    params.push_back({Binding::kMapB, parts.BoxOf(tile, Operand::kB)});
    return;
  }
  params.insert(params.end(), {{Binding::kBaseB, {}}, {Binding::kPitchB, {}}, {Binding::kStrideB, {}}});
  if (finds_taps) params.push_back({Binding::kRowB, {}});
  if (finds_taps && planes) params.push_back({Binding::kPlaneB, {}});
}

OperandLoader::LoadBlock FilterLoader::StartTile(Builder& b, const Corner& corner) const {
  const ValueId of_group =
      b.Add({parts_.ColumnOfB(b, corner.column), b.Mul({corner.batch, b.ParamValue(Binding::kN)})});
  const ValueId filter = StartOfPart(b, filter_, target().path, parts_, of_group);
  return [this, filter](Builder& into, ValueId slot, const KBlock& block, int i) {
    FilterStart start{.first = block.first, .filter = filter, .tap = ir::kNoValue};
    if (!filter_.k.HasTaps()) {
      start.tap = into.Constant(0);
    } else {
      const bool looped = filter_.columns.empty();
      const ValueId column = looped ? block.taps[0] : into.Constant(filter_.columns[static_cast<size_t>(i)]);
      start.tap = filter_.k.TapNumber(into, block, column);
    }
    LoadFilterTile(into, filter_, target(), parts_, slot, start);
  };
}

void ResidentFilterLoader::Load(Builder& b) const {
  const KLoop& k = filter_.k;
  const ValueId column = filter_.known ? b.Constant(0) : parts_.ColumnOfResidentB(b);
  const ValueId filter = StartOfPart(b, filter_, target().path, parts_, column);
  const auto load_run = [&](ValueId tap) {
    ForEach(b, k.BlocksOfRun(b), [&](ValueId number) {
      const ValueId slot = b.Put({}, {.channel = target().channel});
      const ValueId first = b.Mul({number, b.Constant(k.tile_k)});
      LoadFilterTile(b, filter_, target(), parts_, slot, {first, filter, tap});
      b.Send({slot});
    });
  };
  k.HasTaps() ? ForEach(b, k.Taps(b), load_run) : load_run(b.Constant(0));
}

ValueId ResidentFilterLoader::Slots(Builder& b) const {
  const KLoop& k = filter_.k;
  return k.HasTaps() ? b.Mul({k.Taps(b), k.BlocksOfRun(b)}) : k.BlocksOfRun(b);
}

}  // namespace laneshift::compiler
