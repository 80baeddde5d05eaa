// tcgen05.alloc, dealloc, relinquish_alloc_permit: of one CTA, or of a pair, whose CTAs join.

#include <bit>
#include <cstring>

#include "base/text.h"
#include "emulator/exec/tensor_issue.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

// A block is this CTA's from here on: its contents are unknown.
void TakeBlock(Warp& w, Cta& cta, TensorMemoryAllocator::Block block) {
  const auto column = static_cast<uint16_t>(block.column);
  cta.tensor().Poison({0, 128, column, static_cast<uint16_t>(block.columns)});
  if (w.checks()) cta.tensor_shadow().Forget(column, static_cast<int>(block.columns));
}

// The address of an allocated block goes to shared memory.
Outcome StoreAddress(Warp& w, const Instruction& i, TensorMemoryAllocator::Block block, int lane) {
  const auto column = static_cast<uint16_t>(block.column);
  Located at;
  if (!Locate(w, i.space, w.AddressOf(i[0], lane), 4, lane, AccessKind::kWrite, at)) return Outcome::kFault;
  if (w.checks() && at.space == StateSpace::kShared) at.cta->shared_shadow->NoteWarpWrite(at.offset, 4);
  const uint32_t address = TensorAddress{0, column}.Pack();
  std::memcpy(at.host, &address, 4);
  return Outcome::kNext;
}

// Reports operations that still use columns which are being deallocated.
void CheckUnused(Warp& w, TensorAddress address, uint32_t columns, int lane) {
  for (const OpHandle& op : w.cta().cluster().unreleased()) {
    if (op->state == AsyncOp::State::kReleased) continue;
    for (const AsyncOp::TensorUse& use : op->tensor) {
      if (use.cta != &w.cta() || use.range.column >= address.column + columns ||
          use.range.column + use.range.columns <= address.column)
        continue;
      w.Report(HazardKind::kTensorRace, lane,
               Cat("dealloc while the ", NameOf(op->kind), " of line ", op->at.line, " on these columns is pending"));
      break;
    }
  }
}

// The joint instruction of both CTAs of a pair, done in both. False: it has to wait for columns to become free.
Result<bool> Serve(TensorPair& pair, TensorMemoryAllocator& even, TensorMemoryAllocator& odd) {
  const TensorPair::Side& side = pair.sides[0];
  switch (side.operation) {
    case TensorPair::Operation::kAlloc: {
      LS_ASSIGN(const auto block, TensorMemoryAllocator::AllocatePair(even, odd, side.columns));
      if (!block) return false;
      pair.block = *block;
      return true;
    }
    case TensorPair::Operation::kDealloc:
      LS_TRY(even.Release(side.address, side.columns));
      LS_TRY(odd.Release(side.address, side.columns));
      return true;
    case TensorPair::Operation::kRelinquish:
      LS_TRY(even.RelinquishPermit());
      LS_TRY(odd.RelinquishPermit());
      return true;
  }
  return true;
}

// One CTA's half of an instruction of the pair. kNext: it is done for both, and `block` is an alloc's result.
Outcome Meet(Warp& w, TensorPair::Side mine, int lane, TensorMemoryAllocator::Block& block) {
  Cluster& cluster = w.cta().cluster();
  TensorPair& pair = cluster.PairOf(w.cta());
  const size_t rank = w.cta().rank() & 1;
  TensorPair::Side &own = pair.sides[rank], &other = pair.sides[1 - rank];
  mine.warp = &w;
  const auto wait = [&](WaitState::Kind kind) { return w.Block(kind, mine.columns); };
  if (own.warp == nullptr && !pair.served) {
    own = mine;
    cluster.Signal();
  }
  // Another warp of this CTA is at such an instruction, or the other CTA has not left the last one yet.
  if (own.warp != &w) return wait(WaitState::Kind::kTensorPair);
  if (!pair.served) {
    // Once served, the other CTA may have left, and ended.
    const CtaGroup ctas = CtasOfGroup(w, 2, lane);
    if (ctas.empty()) return Outcome::kFault;
    if (other.warp == nullptr) return wait(WaitState::Kind::kTensorPair);
    TensorPair::Side theirs = other;
    theirs.warp = &w;
    if (!(theirs == mine)) {
      return w.Fault(FaultKind::kIllegalInstruction, lane,
                     "the CTAs of a pair execute different tcgen05 alloc, dealloc or relinquish instructions");
    }
    auto served = Serve(pair, ctas[0]->allocator, ctas[1]->allocator);
    if (!served.has_value()) return w.Fault(FaultKind::kIllegalInstruction, lane, served.error().message);
    if (!*served) return wait(WaitState::Kind::kTensorAlloc);
    pair.served = true;
    // In both at once: the CTA that leaves first may use the other one's columns.
    if (mine.operation == TensorPair::Operation::kAlloc) {
      for (Cta* cta : ctas) TakeBlock(w, *cta, pair.block);
    }
  }
  block = pair.block;
  own = {};
  if (other.warp == nullptr) pair.served = false;
  cluster.Signal();
  w.DoneWaiting();
  return Outcome::kNext;
}

template <int kGroup>
Outcome Alloc(Warp& w, const Instruction& i, uint32_t mask) {
  const int lane = std::countr_zero(mask);
  const auto columns = static_cast<uint32_t>(w.Value(i[1], lane));
  if constexpr (kGroup == 2) {
    TensorMemoryAllocator::Block block;
    const Outcome met = Meet(w, {nullptr, TensorPair::Operation::kAlloc, {}, columns}, lane, block);
    return met == Outcome::kNext ? StoreAddress(w, i, block, lane) : met;
  }
  auto block = w.cta().allocator.Allocate(columns);
  if (!block.has_value()) return w.Fault(FaultKind::kIllegalInstruction, lane, block.error().message);
  if (!block->has_value()) return w.Block(WaitState::Kind::kTensorAlloc, columns);
  w.DoneWaiting();
  TakeBlock(w, w.cta(), **block);
  return StoreAddress(w, i, **block, lane);
}

// Whether deallocating instructions of a pair wait for the other CTA; counts as a use of the policy.
bool ReleasesTogether(Warp& w) {
  if (w.path().wait.kind == WaitState::Kind::kNone) w.cta().cluster().NotePolicy(Policy::kPairRelease);
  return w.cta().cluster().machine().policies.pair_release == PairRelease::kWaits;
}

// Whether the block was allocated, and is free again.
bool IsFree(Warp& w, int group, TensorAddress address, uint32_t columns) {
  if (!w.cta().allocator.WasReleased(address, columns)) return false;
  // The half of a pair's dealloc that is still under way belongs to what that dealloc released.
  return group == 1 || w.cta().cluster().PairOf(w.cta()).sides[w.cta().rank() & 1].warp != &w;
}

template <int kGroup>
Outcome Dealloc(Warp& w, const Instruction& i, uint32_t mask) {
  const int lane = std::countr_zero(mask);
  const TensorAddress address = TensorAddress::Unpack(static_cast<uint32_t>(w.Value(i[0], lane)));
  const auto columns = static_cast<uint32_t>(w.Value(i[1], lane));
  if (IsFree(w, kGroup, address, columns)) {
    Cluster& cluster = w.cta().cluster();
    cluster.NotePolicy(Policy::kRepeatedDealloc);
    if (cluster.machine().policies.repeated_dealloc == RepeatedDealloc::kRefused) {
      w.Report(HazardKind::kDeallocatedTwice, lane,
               Cat("the ", columns, " columns at ", address.column, " were deallocated before"));
    }
    return w.DoneWaiting(), Outcome::kNext;
  }
  if (w.path().wait.kind == WaitState::Kind::kNone) CheckUnused(w, address, columns, lane);
  if constexpr (kGroup == 2) {
    if (ReleasesTogether(w)) {
      TensorMemoryAllocator::Block none;
      return Meet(w, {nullptr, TensorPair::Operation::kDealloc, address, columns}, lane, none);
    }
  }
  if (auto released = w.cta().allocator.Release(address, columns); !released.has_value()) {
    return w.Fault(FaultKind::kIllegalInstruction, lane, released.error().message);
  }
  w.cta().cluster().Signal();
  return Outcome::kNext;
}

template <int kGroup>
Outcome Relinquish(Warp& w, const Instruction&, uint32_t mask) {
  const int lane = std::countr_zero(mask);
  if constexpr (kGroup == 2) {
    if (ReleasesTogether(w)) {
      TensorMemoryAllocator::Block none;
      return Meet(w, {nullptr, TensorPair::Operation::kRelinquish, {}, 0}, lane, none);
    }
  }
  if (auto done = w.cta().allocator.RelinquishPermit(); !done.has_value()) {
    return w.Fault(FaultKind::kIllegalInstruction, lane, done.error().message);
  }
  return Outcome::kNext;
}

Handler OfGroup(const Match& match, Handler one, Handler two) { return CtaGroupOf(match) == 2 ? two : one; }

}  // namespace

Result<Handler> BindTensorAlloc(const Match& match, Instruction& i) {
  i.space = SpaceOf(match("SmemCta"));
  return OfGroup(match, Alloc<1>, Alloc<2>);
}
Result<Handler> BindTensorDealloc(const Match& match, Instruction&) { return OfGroup(match, Dealloc<1>, Dealloc<2>); }
Result<Handler> BindTensorRelinquish(const Match& match, Instruction&) {
  return OfGroup(match, Relinquish<1>, Relinquish<2>);
}

}  // namespace laneshift::emulator
