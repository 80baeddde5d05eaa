// Verifies the use of tiles, rings and barriers by a role.
#include <algorithm>

#include "base/text.h"
#include "ir/role_verifier.h"

namespace laneshift::ir {

using base::Cat;

Status RoleVerifier::CheckPingpong() const {
  for (size_t index = 0; index < pingpong_roles_.size(); ++index) {
    if (pingpong_roles_[index].size() != 1)
      return Broken(14, Cat(pingpong_roles_[index].size(), " roles have ping-pong index ", index, " of ",
                            pingpong_roles_.size()));
    if (pingpong_roles_[index][0]->kind != pingpong_roles_[0][0]->kind ||
        pingpong_roles_[index][0]->warps != pingpong_roles_[0][0]->warps)
      return Broken(14, Cat("roles ", pingpong_roles_[0][0]->name, " and ", pingpong_roles_[index][0]->name,
                            " alternate (ping-pong) and differ"));
  }
  return Ok();
}

bool RoleVerifier::HoldsOrderSlot() const {
  for (size_t i = 0; i < uses_.size(); ++i) {
    if (program_.channels[i].space == Space::kOrder && uses_[i].open > 0) return true;
  }
  return false;
}

Status RoleVerifier::CheckWork(const Op& op) {
  work_ = op.As<WorkAttrs>();
  if (work_.raster < 1) return Broken(8, "raster is not positive");
  if (work_.slices < 1) return Broken(8, "slices is not positive");
  if (work_.pingpong_roles < 1 || !InRange(work_.pingpong_index, 0, work_.pingpong_roles))
    return Broken(8, Cat("pingpong_index=", work_.pingpong_index, " of ", work_.pingpong_roles));
  const bool cuts = work_.slices > 1 || program_.cluster_k > 1;
  const bool dynamic = work_.source == WorkSource::kLaunchControl;
  const bool parts = work_.source == WorkSource::kPartsOfK;
  if (cuts && (parts || HasGroups(work_.source))) return Broken(8, "tiles of groups are not cut into slices");
  if (work_.source == WorkSource::kGroups) LS_TRY(Needs({Binding::kGroupOffsets, Binding::kM}));
  if (work_.source == WorkSource::kMaskedGroups) LS_TRY(Needs({Binding::kGroupSizes, Binding::kGroupRows}));
  if (parts) LS_TRY(Needs({Binding::kGroupOffsets, Binding::kK}));
  if (work_.row_step < 0 || (work_.row_step > 0 && !HasGroups(work_.source)))
    return Broken(8, Cat("row_step=", work_.row_step, ": only tiles of groups divide rows"));
  if (op.operands.size() != kWorkTileOperands + (cuts || parts ? 1 : 0))
    return Broken(7, "it has an operand about K if and only if tiles are cut into slices or have parts of K");
  if (cuts && dynamic) return Broken(8, "tiles can be cut into slices only in a static order of work");
  if (work_.pingpong_roles > 1) {
    if (dynamic || cuts) return Broken(14, "ping-pong roles need whole tiles in a static order");
    pingpong_roles_.resize(std::max(pingpong_roles_.size(), static_cast<size_t>(work_.pingpong_roles)));
    pingpong_roles_[static_cast<size_t>(work_.pingpong_index)].push_back(role_);
  }
  const auto ends =
      std::count_if(op.body.begin(), op.body.end(), [](const Op& inner) { return inner.kind == OpKind::kWorkNext; });
  if (dynamic != program_.StealsWork())
    return Broken(10, "work comes from launch control if and only if there is a channel of CLC responses");
  if (ends != (dynamic ? 1 : 0)) return Broken(10, Cat("one iteration of it has ", ends, " work.next, not ", dynamic));
  WorkAttrs order = work_;
  order.pingpong_index = 0;
  order.pingpong_roles = 1;
  if (!order_of_work_) order_of_work_ = order;
  if (order != *order_of_work_) return Broken(10, "its tiles are not those of the roles before it, in their order");
  return Ok();
}

Status RoleVerifier::CheckClcResponse(const Op& op) {
  const ValueId slot = op.operands[0];
  if (ChannelOfSlot(slot).space != Space::kClcResponses) return Broken(8, "its slot holds no CLC response");
  const bool asks = op.kind == OpKind::kWorkRequest;
  if (values_[slot].slot == (asks ? SlotState::kTaken : SlotState::kPut))
    return Broken(11, Cat("slot %", slot, asks ? " was taken" : " was put"));
  if (asks) values_[slot].tma_bytes += kClcResponseBytes;
  return Ok();
}

Status RoleVerifier::CheckExpect(const Op& op) {
  const int bytes = op.As<ExpectAttrs>().bytes;
  if (bytes < 1) return Broken(8, "bytes is not positive");
  int& expected = values_[op.operands[0]].expected_bytes;
  if (expected != 0) return Broken(11, Cat("slot %", op.operands[0], " expects bytes twice"));
  expected = bytes;
  if (op.operands.size() > 2) return Broken(8, "a slot, and the rows of its tile that count");
  if (op.operands.size() > 1) values_[op.operands[0]].rows_expected = op.operands[1];
  const bool by_pair = program_.FillingCtas(ChannelOfSlot(op.operands[0])) > 1;
  if (op.As<ExpectAttrs>().leader != by_pair)
    return Broken(8, "the leader of a pair expects bytes; without pairs every CTA does");
  return Arrive(op.operands[0], Side::kFull, 1);
}

Status RoleVerifier::CheckPut(const Op& op) { return Open(op, SlotState::kPut); }
Status RoleVerifier::CheckTake(const Op& op) { return Open(op, SlotState::kTaken); }
Status RoleVerifier::CheckPeek(const Op& op) {
  uses_[static_cast<size_t>(ChannelOf(op))].peeks = true;
  return Ok();
}
Status RoleVerifier::CheckPreview(const Op& op) {
  const Channel& channel = program_.channels[static_cast<size_t>(ChannelOf(op))];
  if (channel.resident) return Broken(15, Cat("it previews a slot of channel ", channel.name, ", which is resident"));
  if (work_.pingpong_roles > 1) return Broken(14, "it previews a slot, which may be the other ping-pong role's");
  values_[op.result].slot = SlotState::kCursor;
  uses_[static_cast<size_t>(ChannelOf(op))].peeks = true;
  return Ok();
}
Status RoleVerifier::CheckSend(const Op& op) {
  const ValueId slot = op.operands[0];
  Use& use = uses_[static_cast<size_t>(slots_.Of(slot))];
  const bool late = op.kind == OpKind::kSendLate;
  if (values_[slot].on_their_way && !late)
    return Broken(11, Cat("slot %", slot, " is sent at once, and asynchronous copies into it are on their way"));
  (late ? use.sends_late : use.sends) = true;
  if (use.drains_sends) return Broken(11, "it is sent after the late sends of its channel were drained");
  return Close(op, SlotState::kPut);
}
Status RoleVerifier::CheckRelease(const Op& op) { return Close(op, SlotState::kTaken); }

Status RoleVerifier::CheckReserve(const Op& op) {
  if (!program_.channels[static_cast<size_t>(ChannelOf(op))].is_private)
    return Broken(10, "it reserves a slot of a channel that other roles use, too");
  return Open(op, SlotState::kPut);
}

Status RoleVerifier::CheckPass(const Op& op) {
  uses_[static_cast<size_t>(ChannelOf(op))].passes = true;
  return work_.pingpong_roles > 1 ? Ok() : Broken(14, "it passes slots and is not a ping-pong role");
}

Status RoleVerifier::CheckAdvance(const Op& op) {
  values_[op.operands[0]].slot = SlotState::kClosed;
  return Ok();
}

Status RoleVerifier::CheckAdvanceBy(const Op& op) {
  uses_[static_cast<size_t>(slots_.Of(op.operands[0]))].passes = true;
  return CheckAdvance(op);
}

Status RoleVerifier::CheckDrain(const Op& op) {
  const auto& attrs = op.As<DrainAttrs>();
  if (attrs.lag < 1) return Broken(8, "a drain without lag");
  uses_[static_cast<size_t>(attrs.channel)].drain_lag = attrs.lag;
  return Ok();
}

Status RoleVerifier::CheckDrainSends(const Op& op) {
  uses_[static_cast<size_t>(ChannelOf(op))].drains_sends = true;
  return Ok();
}

Status RoleVerifier::CheckCursor(const Op& op) {
  values_[op.result].slot = SlotState::kCursor;
  return CheckFilledOnce(op);
}

Status RoleVerifier::CheckBarrier(const Op& op) {
  const auto& attrs = op.As<BarrierAttrs>();
  const bool waits = op.kind == OpKind::kBarrierWait;
  if (attrs.inverted && !waits) return Broken(8, "only a wait can be inverted");
  const bool line = attrs.to == MulticastScope::kM || attrs.to == MulticastScope::kN;
  if (attrs.in_order && (op.kind != OpKind::kBarrierArrive || !line || attrs.by != Unit::kWarp))
    return Broken(8, "only a warp arrives in order, at the CTAs of a line");
  if (waits && attrs.to != MulticastScope::kOwn) return Broken(8, "a CTA can wait only at its own barriers");
  LS_TRY(CheckMulticastScope(attrs.to));
  if (!waits) {
    const bool one = role_->elected || op.kind == OpKind::kMmaCommit;
    const int threads = one ? 1 : attrs.by == Unit::kWarp ? role_->warps : 32 * role_->warps;
    const bool lanes = !role_->elected && attrs.by == Unit::kWarp;
    if (attrs.to != MulticastScope::kOwn && op.kind == OpKind::kBarrierArrive && !lanes &&
        !(one && attrs.to == MulticastScope::kAll))
      return Broken(8, "an arrival at other CTAs is made by the lanes of a warp, one for each CTA");
    const bool leaders = role_->leader && (attrs.to == MulticastScope::kAll || attrs.to == MulticastScope::kLeader);
    const int ctas = leaders ? program_.ctas : 1;
    return Arrive(op.operands[0], attrs.side, threads * program_.Arrivals(attrs.to) / ctas);
  }
  Use& use = uses_[static_cast<size_t>(slots_.Of(op.operands[0]))];
  (attrs.side == Side::kEmpty ? use.produces : use.consumes) = true;
  return Ok();
}

Status RoleVerifier::Open(const Op& op, SlotState state) {
  const auto channel = static_cast<size_t>(ChannelOf(op));
  Use& use = uses_[channel];
  (state == SlotState::kPut ? use.produces : use.consumes) = true;
  values_[op.result].slot = state;
  if (program_.channels[channel].resident && state == SlotState::kTaken)
    return Broken(15, Cat("it takes from channel ", program_.channels[channel].name, ", which is resident"));
  LS_TRY(CheckFilledOnce(op));
  const bool order = program_.channels[channel].space == Space::kOrder;
  if (work_.pingpong_roles > 1 && state == SlotState::kTaken && !order) {
    use.in_pingpong = true;
    if (!HoldsOrderSlot())
      return Broken(14,
                    Cat("it takes from channel ", program_.channels[channel].name, " outside of its ping-pong order"));
  }
  if (++use.open <= program_.channels[channel].stages) return Ok();
  return Broken(11, Cat("it holds ", use.open, " slots of channel ", program_.channels[channel].name, ", which has ",
                        program_.channels[channel].stages));
}

Status RoleVerifier::Close(const Op& op, SlotState expected) {
  const ValueId slot = op.operands[0];
  Value& value = values_[slot];
  if (value.slot != expected) {
    return Broken(11, Cat("slot %", slot, expected == SlotState::kPut ? " was taken, not put" : " was put, not taken"));
  }
  if (value.region != region_) return Broken(11, Cat("slot %", slot, " was opened in another region"));
  value.slot = SlotState::kClosed;
  Use& use = uses_[static_cast<size_t>(slots_.Of(slot))];
  --use.open;
  if (op.kind != OpKind::kReleaseLate) return Ok();
  const int lag = op.As<ReleaseAttrs>().lag;
  use.release_lag = lag;
  if (InRange(lag, 1, ChannelOfSlot(slot).stages)) return Ok();
  return Broken(
      11, Cat("lag ", lag, " is not at least 1 and below the ", ChannelOfSlot(slot).stages, " stages of the channel"));
}

// Resident slots are filled before the loop over tiles.
Status RoleVerifier::CheckFilledOnce(const Op& op) const {
  const Channel& channel = program_.channels[static_cast<size_t>(ChannelOf(op))];
  if (!channel.resident || !in_work_) return Ok();
  return Broken(15, Cat("it fills the slots of channel ", channel.name, ", which is resident, for each tile"));
}

Status RoleVerifier::CheckResident(const Op& op) {
  const auto channel = static_cast<size_t>(ChannelOf(op));
  const std::string& name = program_.channels[channel].name;
  if (!program_.channels[channel].resident) return Broken(15, Cat("channel ", name, " is not resident"));
  if (op.kind == OpKind::kAwait) {
    uses_[channel].consumes = true;
    return CheckFilledOnce(op);
  }
  values_[op.result].slot = SlotState::kResident;
  return uses_[channel].consumes ? Ok() : Broken(15, Cat("it has not awaited channel ", name));
}

}  // namespace laneshift::ir
