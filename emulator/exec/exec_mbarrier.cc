// mbarrier instructions.

#include <array>
#include <bit>

#include "base/text.h"
#include "emulator/decode/binders.h"
#include "emulator/exec/barrier_access.h"
#include "emulator/exec/lanes.h"
#include "emulator/machine/access.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

// The space is a separate field here: no suffix means a generic address.
Handler InSpace(const Match& match, Instruction& instruction, Handler handler) {
  instruction.space = SpaceOf(match.Has("Smem") ? match("Smem") : match("SmemCta"));
  return handler;
}

// modifiers of arrive and wait.
enum : uint64_t {
  kExpectTx = 1,
  kNoComplete = 2,
  kDrop = 4,
  kParity = 8,
  kTest = 16,
  kRelaxed = 32,
  kNarrow = 64,    // the scope is .cta
  kUnscoped = 128  // none is named
};

uint64_t OrderFlagsOf(const Match& match) {
  const std::string_view scope = match("MemScope");
  return (match("Sem") == "relaxed" ? uint64_t{kRelaxed} : 0) | (scope == "cta" ? uint64_t{kNarrow} : 0) |
         (scope.empty() ? uint64_t{kUnscoped} : 0);
}

// Whether an arrival or a wait of these modifiers orders threads of different CTAs.
bool ReachesOtherCtas(Warp& w, uint64_t modifiers) {
  if ((modifiers & kUnscoped) == 0) return (modifiers & kNarrow) == 0;
  w.cta().cluster().NotePolicy(Policy::kDefaultScope);
  return w.cta().cluster().machine().policies.default_scope == DefaultScope::kCluster;
}

// What the arriving lanes publish to the waiters. Unless it is relaxed an arrival releases all that they know; a
// relaxed one what came before their last fence.
void ReleaseAt(Warp& w, uint64_t modifiers, uint32_t mask, bool far, BarrierSlot& slot) {
  if (!w.checks() || (far && !ReachesOtherCtas(w, modifiers))) return;
  if ((modifiers & kRelaxed) == 0) return w.Release(mask, slot.Gathering(far));
  w.fences.Release(mask, far ? FenceScope::kCluster : FenceScope::kCta, slot.Gathering(far));
}

void AcquireAt(Warp& w, uint64_t modifiers, uint32_t mask, uint32_t parity, BarrierSlot& slot) {
  if (!w.checks()) return;
  const VectorClock& far = slot.Told(parity, true);
  const bool wide = !far.empty() && ReachesOtherCtas(w, modifiers);
  if ((modifiers & kRelaxed) != 0) {
    w.NoteWait(mask);
    w.fences.Observe(mask, FenceScope::kCta, slot.Told(parity));
    if (wide) w.fences.Observe(mask, FenceScope::kCluster, far);
    return;
  }
  w.Acquire(mask, slot.Told(parity));
  if (wide) w.Acquire(mask, far);
}

// The lanes of `rest` with the same address as `lane`.
uint32_t Alike(Warp& w, const DecodedOperand& address, uint32_t rest, int lane) {
  uint32_t alike = 0;
  const uint64_t first = w.AddressOf(address, lane);
  ForLanes(rest, [&](int other) { alike |= static_cast<uint32_t>(w.AddressOf(address, other) == first) << other; });
  return alike;
}

bool Check(Warp& w, int lane, const Status& status) {
  if (status.has_value()) return true;
  w.Fault(FaultKind::kLaunchFailure, lane, status.error().message);
  return false;
}

// One of the lanes `before` initialises the same object in the same way.
bool InitialisesAlike(Warp& w, const Instruction& i, uint32_t before, int lane) {
  bool alike = false;
  ForLanes(Alike(w, i[0], before, lane), [&](int other) { alike |= w.Value(i[1], other) == w.Value(i[1], lane); });
  return alike;
}

// A live object that nobody has used since its initialisation, of which this lane knows or which this instruction made.
bool MayInitialiseAgain(Warp& w, const Instruction& i, uint32_t before, int lane, const BarrierSlot& slot) {
  if (!slot.state.unused()) return false;
  if (w.checks() && !w.knowledge.Knows(static_cast<uint8_t>(lane), slot.initialised) &&
      !InitialisesAlike(w, i, before, lane))
    return false;
  w.cta().cluster().NotePolicy(Policy::kRepeatedInit);
  return w.cta().cluster().machine().policies.repeated_init == RepeatedInit::kIgnored;
}

Outcome Init(Warp& w, const Instruction& i, uint32_t mask) {
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Located at;
    if (!LocateShared(w, i.space, w.AddressOf(i[0], lane), 8, 8, lane, false, at)) return Outcome::kFault;
    BarrierSlot* slot = &w.cta().cluster().MakeBarrier(*at.cta, at.offset);
    if (slot->state.valid()) {
      if (!MayInitialiseAgain(w, i, mask & ~rest, lane, *slot))
        w.Report(HazardKind::kBarrierMisuse, lane,
                 Cat("mbarrier.init of the live object at shared offset ", at.offset));
      w.cta().cluster().DropBarrier(*at.cta, at.offset);
      slot = &w.cta().cluster().MakeBarrier(*at.cta, at.offset);
    }
    if (!Check(w, lane, slot->state.Init(static_cast<int64_t>(w.Value(i[1], lane))))) return Outcome::kFault;
    at.cta->shared().SetBarrier(at.offset, true);
    at.cta->shared().MarkWritten(at.offset, 8);
    if (w.checks()) {
      slot->initialised = w.knowledge.Now(static_cast<uint8_t>(lane));
      slot->init_fenced = false;
      slot->lanes.Clear();
      at.cta->shared_shadow->Forget(at.offset, at.offset + 8);
    }
  }
  w.cta().cluster().Signal();
  return Outcome::kNext;
}

Outcome Invalidate(Warp& w, const Instruction& i, uint32_t mask) {
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Located at;
    BarrierSlot* slot = FindBarrierAt(w, i.space, w.AddressOf(i[0], lane), lane, false, at);
    if (slot == nullptr) return Outcome::kFault;
    if (!Check(w, lane, slot->state.Invalidate())) return Outcome::kFault;
    w.cta().cluster().ReleaseTold(*slot, 0);
    w.cta().cluster().ReleaseTold(*slot, 1);
    w.cta().cluster().DropBarrier(*at.cta, at.offset);
    const BarrierSlot* neighbour = w.cta().cluster().FindBarrier(*at.cta, at.offset ^ 8);
    at.cta->shared().SetBarrier(at.offset, neighbour != nullptr);
  }
  return Outcome::kNext;
}

// operands: state, [a], count or bytes
Outcome Arrive(Warp& w, const Instruction& i, uint32_t mask) {
  const BarrierSlot* last = nullptr;
  // All lanes access the object before any of them releases: the arrival of one releases that for all.
  std::array<BarrierSlot*, kLanes> slots;
  std::array<bool, kLanes> far;
  BarrierLookup lookup(w, i.space, BarrierLookup::Scope::kAnyCta);
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    slots[static_cast<size_t>(lane)] = lookup.Find(w.AddressOf(i[1], lane), lane);
    if (slots[static_cast<size_t>(lane)] == nullptr) return Outcome::kFault;
    far[static_cast<size_t>(lane)] = lookup.at().cta != &w.cta();
  }
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    BarrierSlot* slot = slots[static_cast<size_t>(lane)];
    const int64_t value = i[2].slot != kNoSlot ? static_cast<int64_t>(static_cast<uint32_t>(w.Value(i[2], lane))) : 1;
    Mbarrier& state = slot->state;
    if (slot != last) slot->NoteArriver(&w);
    if (slot != last) ReleaseAt(w, i.modifiers, Alike(w, i[1], rest, lane), far[static_cast<size_t>(lane)], *slot);
    last = slot;
    const auto completion =
        i.modifiers & kNoComplete ? Mbarrier::Completion::kNoComplete : Mbarrier::Completion::kMayComplete;
    const uint32_t phase = state.phase();
    auto token = i.modifiers & kExpectTx
                     ? (i.modifiers & kDrop ? state.ArriveAndDropExpectBytes(value) : state.ArriveExpectBytes(value))
                 : i.modifiers & kDrop ? state.ArriveAndDrop(value, completion)
                                       : state.Arrive(value, completion);
    if (!token.has_value()) return w.Fault(FaultKind::kLaunchFailure, lane, token.error().message);
    w.At<uint64_t>(i[0])[lane] = token->Pack();
    if (w.checks()) w.cta().cluster().NoteLaneArrival(*slot, w, lane, phase);
  }
  w.cta().cluster().Signal();
  return Outcome::kNext;
}

template <bool kComplete>
Outcome Transact(Warp& w, const Instruction& i, uint32_t mask) {
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Located at;
    BarrierSlot* slot = FindBarrierAt(w, i.space, w.AddressOf(i[0], lane), lane, true, at);
    if (slot == nullptr) return Outcome::kFault;
    const auto bytes = static_cast<int64_t>(static_cast<uint32_t>(w.Value(i[1], lane)));
    if (!Check(w, lane, kComplete ? slot->state.CompleteBytes(bytes) : slot->state.ExpectBytes(bytes)))
      return Outcome::kFault;
  }
  w.cta().cluster().Signal();
  return Outcome::kNext;
}

// Whether the path has executed this wait before, and the phase that it waits for is still the current one: then it
// blocks again, as it did, without a look at each lane.
bool StillWaits(Warp& w, const Instruction& i) {
  const WaitState& wait = w.path().wait;
  Cluster& cluster = w.cta().cluster();
  if (wait.kind != WaitState::Kind::kMbarrier || wait.timed_out || (i.modifiers & kTest) || cluster.watch() != nullptr)
    return false;
  const BarrierSlot* slot = cluster.FindBarrier(w.cta(), wait.object);
  return slot != nullptr && slot->state.valid() && slot->state.phase() == wait.generation;
}

// operands: p, [a], parity or token. A try_wait that would fail blocks the path; it fails only when nothing else can
// make progress.
Outcome Wait(Warp& w, const Instruction& i, uint32_t mask) {
  if (StillWaits(w, i)) return Outcome::kBlocked;
  Cluster& cluster = w.cta().cluster();
  BarrierLookup lookup(w, i.space, BarrierLookup::Scope::kOwnCta);
  uint32_t done = 0, blocked_on = 0, parity_of_block = 0;
  uint64_t blocked_in = 0;
  const BarrierSlot* last = nullptr;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    BarrierSlot* slot = lookup.Find(w.AddressOf(i[1], lane), lane);
    if (slot == nullptr) return Outcome::kFault;
    const Located& at = lookup.at();
    const uint64_t value = w.Value(i[2], lane);
    uint32_t parity = static_cast<uint32_t>(value);
    if (!(i.modifiers & kParity)) parity = Mbarrier::PtxToken::Unpack(value).phase & 1;
    auto complete = i.modifiers & kParity ? slot->state.TestParity(parity)
                                          : slot->state.TestToken(Mbarrier::PtxToken::Unpack(value));
    if (!complete.has_value()) return w.Fault(FaultKind::kLaunchFailure, lane, complete.error().message);
    const bool waited = w.path().wait.kind == WaitState::Kind::kMbarrier && w.path().wait.object == at.offset;
    if (waited && slot->state.phase() >= w.path().wait.generation + 2) {
      w.Report(HazardKind::kMissedPhase, lane,
               Cat("phase ", w.path().wait.generation, " of the mbarrier at shared offset ", at.offset,
                   " is waited for, and it is in phase ", slot->state.phase(), " already"));
      w.path().wait.generation = slot->state.phase();
    }
    if (*complete) {
      done |= 1u << lane;
      cluster.ReleaseTold(*slot, parity);
      if (slot != last) AcquireAt(w, i.modifiers, Alike(w, i[1], rest, lane), parity, *slot);
      last = slot;
    } else {
      if (Spin* spin = cluster.watch()) spin->NoteBarrier(at.offset);
      blocked_on = at.offset;
      parity_of_block = parity;
      blocked_in = waited ? w.path().wait.generation : slot->state.phase();
    }
  }
  const bool may_block = !(i.modifiers & kTest);
  WaitState& wait = w.path().wait;
  if (done != mask && may_block && !wait.timed_out) {
    wait.generation = blocked_in;
    return w.Block(WaitState::Kind::kMbarrier, blocked_on, parity_of_block);
  }
  w.DoneWaiting();
  cluster.counters().barrier_waits += done != 0;
  w.SetPredicate(i[0], mask, done);
  return Outcome::kNext;
}

}  // namespace

BarrierSlot* BarrierLookup::Find(uint64_t address, int lane) {
  if (slot_ == nullptr || address != address_) {
    address_ = address;
    slot_ = Locate(lane);
    if (slot_ == nullptr) return nullptr;
  }
  if (!warp_.checks()) return slot_;
  Cluster& cluster = warp_.cta().cluster();
  if (at_.cta != &warp_.cta()) cluster.Visit(warp_, *at_.cta, lane);
  // fence.mbarrier_init and barrier.cluster, even with a relaxed arrive, show the object to all threads that waited.
  const bool shown = slot_->init_fenced && warp_.met_cluster && cluster.barrier_met_told.Knows(slot_->initialised);
  if (!shown && !warp_.knowledge.Knows(static_cast<uint8_t>(lane), slot_->initialised)) {
    warp_.Report(HazardKind::kBarrierRace, lane,
                 Cat("nothing orders the mbarrier.init of the object at shared offset ", at_.offset, " before this"));
  }
  return slot_;
}

BarrierSlot* BarrierLookup::Locate(int lane) {
  if (!LocateShared(warp_, space_, address_, 8, 8, lane, scope_ == Scope::kAnyCta, at_)) return nullptr;
  BarrierSlot* slot = warp_.cta().cluster().FindBarrier(*at_.cta, at_.offset);
  if (slot == nullptr)
    warp_.Fault(FaultKind::kLaunchFailure, lane, Cat("there is no initialised mbarrier at shared offset ", at_.offset));
  return slot;
}

BarrierSlot* FindBarrierAt(Warp& w, StateSpace space, uint64_t address, int lane, bool any_cta, Located& at) {
  BarrierLookup lookup(w, space, any_cta ? BarrierLookup::Scope::kAnyCta : BarrierLookup::Scope::kOwnCta);
  BarrierSlot* slot = lookup.Find(address, lane);
  at = lookup.at();
  return slot;
}

Result<Handler> BindMbarrierInit(const Match& match, Instruction& i) { return InSpace(match, i, Init); }
Result<Handler> BindMbarrierInval(const Match& match, Instruction& i) { return InSpace(match, i, Invalidate); }
Result<Handler> BindMbarrierArrive(const Match& match, Instruction& i) {
  i.modifiers = (match.Has("ExpectTx") ? uint64_t{kExpectTx} : 0) |
                (match.Has("NoComplete") ? uint64_t{kNoComplete} : 0) |
                (match.Has("arrive_drop") ? uint64_t{kDrop} : 0) | OrderFlagsOf(match);
  if (match.Has("ExpectTx") && i[2].slot == kNoSlot) return Wrong(".expect_tx needs the number of bytes");
  if (match.Has("NoComplete") && i[2].slot == kNoSlot) return Wrong(".noComplete needs a count");
  return InSpace(match, i, Arrive);
}
Result<Handler> BindMbarrierExpect(const Match& match, Instruction& i) { return InSpace(match, i, Transact<false>); }
Result<Handler> BindMbarrierComplete(const Match& match, Instruction& i) { return InSpace(match, i, Transact<true>); }
Result<Handler> BindMbarrierTestWait(const Match& match, Instruction& i) {
  return i.modifiers = kTest | OrderFlagsOf(match), InSpace(match, i, Wait);
}
Result<Handler> BindMbarrierTryWait(const Match& match, Instruction& i) {
  return i.modifiers = OrderFlagsOf(match), InSpace(match, i, Wait);
}
Result<Handler> BindMbarrierTestWaitParity(const Match& match, Instruction& i) {
  return i.modifiers = kTest | kParity | OrderFlagsOf(match), InSpace(match, i, Wait);
}
Result<Handler> BindMbarrierTryWaitParity(const Match& match, Instruction& i) {
  return i.modifiers = kParity | OrderFlagsOf(match), InSpace(match, i, Wait);
}
Result<Handler> BindMbarrierPendingCount(const Match&, Instruction&) {
  return Handler([](Warp& w, const Instruction& i, uint32_t mask) {
    return Map1<uint32_t, uint64_t>(
        w, i, mask, [](uint64_t a) { return static_cast<uint32_t>(Mbarrier::PtxToken::Unpack(a).pending); });
  });
}

}  // namespace laneshift::emulator
