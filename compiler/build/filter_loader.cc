#include "compiler/build/filter_loader.h"

namespace laneshift::compiler {

using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::ValueId;

namespace {

// Where a tile of filters lies: the first element of its rows, its first row, and its tap.
struct FilterStart {
  ValueId inner, outer, tap;
};

void LoadFilterTile(Builder& b, const FilterOperand& operand, const LoadTarget& target, const OperandParts& parts,
                    ValueId slot, const FilterStart& start) {
  const std::vector<ValueId> at = {slot, start.inner, start.outer, start.tap};
  ir::LoadAttrs attrs{.tile = target.tile, .operand = Operand::kB, .halves = parts.HasSplitGateUp()};
  if (target.path == LoadPath::kTma) {
    attrs.to = parts.MulticastScopeOf(Operand::kB);
    b.TmaLoad(at, attrs);
  } else {
    attrs.taps = operand.finds_taps;
    b.CopyLoad(at, attrs);
  }
}

// The row from which on this CTA loads, of those from `row` on.
ValueId StartOfPart(Builder& b, const FilterOperand& operand, LoadPath path, const OperandParts& parts, ValueId row) {
  if (path != LoadPath::kTma) return row;
  return parts.Start(b, row, Operand::kB, parts.BoxOf(operand.tile, Operand::kB).outer);
}

// The number in memory of a tap of the contraction: those of a gradient run backwards, and those of a phase are some
// of the filter's.
ValueId TapInMemory(Builder& b, const std::vector<ValueId>& taps) {
  ValueId number = b.ParamValue(Binding::kFirstTap);
  for (size_t d = 0; d < taps.size(); ++d)
    number = b.Add({number, b.Mul({taps[d], b.ParamValue(ir::kSpatialBindings[d].tap_move)})});
  return number;
}

}  // namespace

void FilterOperand::AddParams(LoadPath path, const OperandParts& parts, std::vector<ir::Param>& params) const {
  if (path == LoadPath::kTma) {
    params.push_back({Binding::kMapB, parts.BoxOf(tile, Operand::kB)});
    if (!IsTransposed()) return;
    params.push_back({Binding::kFirstTap, {}});
    for (int d = 0; d < k.dimensions; ++d) params.push_back({ir::kSpatialBindings[d].tap_move, {}});
    return;
  }
  params.insert(params.end(), {{Binding::kBaseB, {}}, {Binding::kPitchB, {}}, {Binding::kStrideB, {}}});
  if (finds_taps) params.push_back({Binding::kRowB, {}});
  if (finds_taps && planes) params.push_back({Binding::kPlaneB, {}});
}

OperandLoader::LoadBlock FilterLoader::StartTile(Builder& b, const Corner& corner) const {
  const ValueId column = parts_.ColumnOfB(b, corner.column);
  const auto column_of = [this](Builder& into, const KBlock& block, int i) {
    return filter_.columns.empty() ? block.taps[0] : into.Constant(filter_.columns[static_cast<size_t>(i)]);
  };
  if (filter_.IsTransposed()) {
    const ValueId of_group = b.Mul({corner.batch, b.ParamValue(Binding::kK)});
    return [this, column, of_group, column_of](Builder& into, ValueId slot, const KBlock& block, int i) {
      std::vector<ValueId> taps = block.taps;
      taps[0] = column_of(into, block, i);
      const ValueId filter = into.Add({of_group, block.first});
      LoadFilterTile(into, filter_, target(), parts_, slot,
                     {column, StartOfPart(into, filter_, target().path, parts_, filter), TapInMemory(into, taps)});
    };
  }
  const ValueId of_group = b.Add({column, b.Mul({corner.batch, b.ParamValue(Binding::kN)})});
  const ValueId filter = StartOfPart(b, filter_, target().path, parts_, of_group);
  return [this, filter, column_of](Builder& into, ValueId slot, const KBlock& block, int i) {
    const ValueId tap =
        filter_.k.HasTaps() ? filter_.k.TapNumber(into, block, column_of(into, block, i)) : into.Constant(0);
    LoadFilterTile(into, filter_, target(), parts_, slot, {block.first, filter, tap});
  };
}

void ResidentFilterLoader::Load(Builder& b) const {
  const KLoop& k = filter_.k;
  const ValueId column = filter_.known ? b.Constant(0) : parts_.ColumnOfResidentB(b);
  const auto start_of_part = [&](ValueId row) { return StartOfPart(b, filter_, target().path, parts_, row); };
  const bool transposed = filter_.IsTransposed();
  const ValueId filter = transposed ? ir::kNoValue : start_of_part(column);
  const auto load_run = [&](ValueId tap) {
    if (transposed) tap = TapInMemory(b, k.TapsOfNumber(b, tap));
    ForEach(b, k.BlocksOfRun(b), [&](ValueId number) {
      const ValueId slot = b.Put({}, {.channel = target().channel});
      const ValueId first = b.Mul({number, b.Constant(k.tile_k)});
      LoadFilterTile(b, filter_, target(), parts_, slot,
                     transposed ? FilterStart{column, start_of_part(first), tap} : FilterStart{first, filter, tap});
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
