// Which output tiles a CTA computes.
#include <algorithm>

#include "compiler/emit/emit_role.h"

namespace laneshift::compiler {

using ir::Op;
using ir::Side;
using ir::ValueId;

namespace {

// Whether the op, or one in its body, has one of the `count` values from `first` on as an operand.
bool Names(const Op& op, ValueId first, ValueId count) {
  const auto named = [&](ValueId id) { return id - first < count; };
  return std::any_of(op.operands.begin(), op.operands.end(), named) ||
         std::any_of(op.body.begin(), op.body.end(), [&](const Op& inner) { return Names(inner, first, count); });
}

}  // namespace

void RoleEmitter::Tiles(const Op& op) {
  const auto& attrs = op.As<ir::TilesAttrs>();
  const TileWalk walk(cx_, attrs.raster, Index(op, 0), Index(op, 1), Index(op, 2));
  const auto body = [&](Value* linear) { EmitTile(op, walk, linear); };
  if (!attrs.granted) return walk.ForEach(attrs.turn, attrs.turns, body);
  walk.ForEachGranted([&](const TileWalk::Turn& turn) { turn_ = turn; }, body);
}

void RoleEmitter::Shares(const Op& op) {
  const auto& attrs = op.As<ir::SharesAttrs>();
  const TileWalk walk(cx_, attrs.raster, Index(op, 0), Index(op, 1), Index(op, 2));
  walk.ForEachShare(Index(op, 3), attrs.sections, [&](Value* linear, const TileWalk::Share& share) {
    values_[op.result + 3] = share.first;
    values_[op.result + 4] = share.end;
    values_[op.result + 5] = share.number;
    values_[op.result + 6] = share.section;
    values_[op.result + 7] = share.sections;
    EmitTile(op, walk, linear);
  });
}

// Where a tile lies takes several divisions. They stand where the place is first needed: products do not wait for them.
void RoleEmitter::EmitTile(const Op& op, const TileWalk& walk, Value* linear) {
  bool placed = false;
  for (const Op& inner : op.body) {
    if (!placed && Names(inner, op.result, 3)) {
      placed = true;
      const TileWalk::Place place = walk.At(linear);
      values_[op.result] = place.row;
      values_[op.result + 1] = place.column;
      values_[op.result + 2] = place.batch;
    }
    EmitOp(inner);
  }
}

void RoleEmitter::TilesNext(const Op& op) {
  const Emitter::Grant grant = e_.ReadAnswer(Answer(SlotOf(op)));
  e_.Store(turn_.more, grant.granted);
  e_.Store(turn_.tile, TileWalk::OfCluster(cx_, grant.first_cta));
}

void RoleEmitter::TilesColumn(const Op& op) {
  values_[op.result] = b_.CreateURem(TileWalk::OfCluster(cx_, e_.CtaIndex()), Index(op, 0));
}

void RoleEmitter::Request(const Op& op) {
  const Slot& slot = SlotOf(op);
  e_.If(cx_.cluster->IsFirst(),
        [&] { e_.RequestCluster(Answer(slot), Barrier(slot, Side::kFull), cx_.program.ClusterSize() > 1); });
}

Value* RoleEmitter::Answer(const Slot& slot) {
  return e_.Offset(cx_.Shared(ChannelOf(slot).grant_offset), b_.CreateMul(slot.stage, e_.C32(ir::kGrantBytes)));
}

}  // namespace laneshift::compiler
