// Rings: cursors, mbarriers, commits and fences.
#include "base/check.h"
#include "compiler/emit/emit_role.h"

namespace laneshift::compiler {

using ir::Op;
using ir::Side;

Value* RoleEmitter::Barrier(const Slot& slot, Side side) {
  const ir::Channel& channel = ChannelOf(slot);
  const int first = channel.barrier_offset + (side == Side::kEmpty ? channel.stages * ir::kBarrierBytes : 0);
  return e_.Offset(cx_.Shared(first), b_.CreateShl(slot.stage, 3));
}

Emitter::LoadBarrier RoleEmitter::BarrierOfLoads(const Slot& slot) {
  return {Barrier(slot, Side::kFull), cx_.program.FillingCtas(ChannelOf(slot)) > 1};
}

Value* RoleEmitter::Tile(const Slot& slot, int tile) {
  const ir::Channel& channel = ChannelOf(slot);
  return e_.Offset(cx_.Shared(channel.tiles[tile].offset), b_.CreateMul(slot.stage, e_.C32(channel.StageBytes())));
}

Value* RoleEmitter::Sums(const Slot& slot) {
  const ir::Channel& channel = ChannelOf(slot);
  return e_.Offset(cx_.Shared(channel.slots_offset), b_.CreateMul(slot.stage, e_.C32(channel.StageBytes())));
}

// Where partial sums are exchanged threads read what those of other CTAs have written; so do the MMAs of a pair.
Emitter::Scope RoleEmitter::ScopeOf(const Slot& slot) {
  const ir::Channel& channel = ChannelOf(slot);
  const bool of_others = channel.space == ir::Space::kSums || (channel.stored && cx_.program.ctas > 1);
  return of_others ? Emitter::Scope::kCluster : Emitter::Scope::kCta;
}

void RoleEmitter::ByUnit(ir::Unit by, const std::function<void()>& body) {
  if (by == ir::Unit::kThread) return body();
  e_.WarpSync();
  e_.If(b_.CreateICmpEQ(cx_.lane, e_.C32(0)), body);
}

void RoleEmitter::Cursor(const Op& op) {
  const auto& attrs = op.As<ir::CursorAttrs>();
  const CursorState& cursor = cursors_.at({attrs.channel, attrs.trail});
  slots_[op.result] = {attrs.channel, cursor, e_.Load(cursor.stage), e_.Load(cursor.phase)};
}

void RoleEmitter::ResidentSlot(const Op& op) {
  slots_[op.result] = {op.As<ir::ChannelAttrs>().channel, {}, Index(op, 0), nullptr};
}

void RoleEmitter::SetPosition(const Slot& slot, Value* stage, Value* phase) {
  e_.Store(slot.cursor.stage, stage);
  e_.Store(slot.cursor.phase, phase);
  if (slot.cursor.full) e_.Store(*slot.cursor.full, e_.False());
}

void RoleEmitter::Advance(const Op& op) {
  const Slot& slot = SlotOf(op);
  Value* next = b_.CreateAdd(slot.stage, e_.C32(1));
  Value* wraps = b_.CreateICmpEQ(next, e_.C32(ChannelOf(slot).stages));
  SetPosition(slot, b_.CreateSelect(wraps, e_.C32(0), next), b_.CreateXor(slot.phase, b_.CreateZExt(wraps, e_.I32())));
}

void RoleEmitter::AdvanceBy(const Op& op) {
  const Slot& slot = SlotOf(op);
  Value* stages = e_.C32(static_cast<uint32_t>(ChannelOf(slot).stages));
  Value* next = b_.CreateAdd(slot.stage, Index(op, 1));
  // The parity flips at each wraparound.
  Value* rounds = b_.CreateAnd(b_.CreateUDiv(next, stages), e_.C32(1));
  SetPosition(slot, b_.CreateURem(next, stages), b_.CreateXor(slot.phase, rounds));
}

void RoleEmitter::BarrierPeek(const Op& op) {
  const Slot& slot = SlotOf(op);
  e_.Store(*slot.cursor.full, e_.MbarrierTest(Barrier(slot, Side::kFull), slot.phase));
}

void RoleEmitter::BarrierWait(const Op& op) {
  const auto& attrs = op.As<ir::BarrierAttrs>();
  const Slot& slot = SlotOf(op);
  const auto wait = [&] {
    e_.MbarrierWait(Barrier(slot, attrs.side), b_.CreateXor(slot.phase, e_.C32(attrs.inverted)), ScopeOf(slot));
  };
  if (!slot.cursor.full || attrs.side == Side::kEmpty) return wait();
  e_.If(b_.CreateNot(e_.Load(*slot.cursor.full)), wait);
}

void RoleEmitter::BarrierExpect(const Op& op) {
  const auto& attrs = op.As<ir::ExpectAttrs>();
  const auto expect = [&] {
    Value* barrier = Barrier(SlotOf(op), Side::kFull);
    Value* bytes = e_.C32(static_cast<uint32_t>(attrs.bytes));
    if (op.operands.size() > 1) bytes = b_.CreateSub(bytes, BytesLeftOut(SlotOf(op), Index(op, 1)));
    e_.MbarrierExpect(barrier, bytes);
  };
  const auto expect_here = [&] { attrs.leader ? e_.If(cx_.cluster->IsLeader(), expect) : expect(); };
  if (role_.elected) return expect_here();
  // One thread for the role. What others copy may come before: the phase does not end without this arrival.
  e_.If(b_.CreateICmpEQ(cx_.thread, e_.C32(0)), expect_here);
}

// At its own barrier one thread arrives for each unit; at those of other CTAs the lanes of a warp, one lane for each,
// or one lane at all. That at the first of a line is then after those at the others, and so is all that the first does
// when it has seen it.
void RoleEmitter::BarrierArrive(const Op& op) {
  const auto& attrs = op.As<ir::BarrierAttrs>();
  if (attrs.to == ir::MulticastScope::kOwn)
    return ByUnit(attrs.by, [&] { e_.MbarrierArrive(Barrier(SlotOf(op), attrs.side)); });
  Value* barrier = Barrier(SlotOf(op), attrs.side);
  const ClusterPlace::Peers& peers = cx_.cluster->PeersOf(attrs.to);
  if (role_.elected) {
    LS_CHECK(attrs.to == ir::MulticastScope::kAll, "an elected thread arrives at only some CTAs");
    for (int rank = 0; rank < peers.count; ++rank) e_.MbarrierArriveAt(barrier, e_.C32(static_cast<uint32_t>(rank)));
    return;
  }
  if (attrs.in_order) {
    return ByUnit(attrs.by, [&] {
      for (int place = peers.count; place-- > 0;)
        e_.MbarrierArriveAt(barrier, cx_.cluster->RankAt(attrs.to, place), ScopeOf(SlotOf(op)));
    });
  }
  e_.WarpSync();
  e_.If(b_.CreateICmpULT(cx_.lane, e_.C32(static_cast<uint32_t>(peers.count))),
        [&] { e_.MbarrierArriveAt(barrier, peers.rank, ScopeOf(SlotOf(op))); });
}

void RoleEmitter::MmaCommit(const Op& op) {
  const auto& attrs = op.As<ir::BarrierAttrs>();
  e_.TensorCommit(Barrier(SlotOf(op), attrs.side), cx_.cluster->CommitMask(attrs.to));
}

void RoleEmitter::MmaWait(const Op& op) { e_.WgmmaWait(op.As<ir::PendingAttrs>().pending); }

void RoleEmitter::BlockStoreWait(const Op&) { e_.TensorStoreWait(); }

void RoleEmitter::CopyWait(const Op& op) {
  e_.CopyCommit();
  e_.CopyWait(op.As<ir::PendingAttrs>().pending);
}

void RoleEmitter::FenceProxy(const Op&) { e_.FenceProxyAsyncShared(); }

void RoleEmitter::FenceTensor(const Op& op) { e_.TensorFence(op.As<ir::FenceAttrs>().edge == ir::Edge::kAfter); }

}  // namespace laneshift::compiler
