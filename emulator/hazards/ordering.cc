// Happens-before: mbarrier phases, barriers and synchronising words as vector clocks, and the checks of
// accesses against them. Part of Cluster; only with hazard checks.

#include <algorithm>
#include <bit>

#include "base/text.h"
#include "emulator/machine/cluster.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

// Lanes as Knowledge names them.
uint8_t LaneOf(const AsyncOp& op) { return op.lane < 0 ? kAllLanes : static_cast<uint8_t>(op.lane); }

bool IsLaneAccess(uint8_t kind) {
  return kind == static_cast<uint8_t>(AsyncKind::kTensorLoad) || kind == static_cast<uint8_t>(AsyncKind::kTensorStore);
}

// Whether one thread's tcgen05 queue itself orders `op` after the operation of which `first` remains.
bool QueuedAfter(const OpRecord& first, const AsyncOp& op, QueueOrder order) {
  if (first.issuer != op.warp || first.lane != op.lane || first.cta_group != op.cta_group) return false;
  const auto kind = static_cast<AsyncKind>(first.kind);
  if (order == QueueOrder::kInOrder && IsTensorQueue(op.kind) && IsTensorQueue(kind) &&
      !(op.is_4x256b && first.shifts_a))
    return true;
  if (op.kind == AsyncKind::kMma) {
    return kind == AsyncKind::kTensorCopy || kind == AsyncKind::kTensorShift ||
           (kind == AsyncKind::kMma && first.order_key == op.order_key);
  }
  if (op.kind == AsyncKind::kTensorShift) return kind == AsyncKind::kMma;
  return op.kind == AsyncKind::kTensorCopy && op.is_4x256b && kind == AsyncKind::kTensorShift;
}

}  // namespace

// ---- mbarriers ----

void BarrierSlot::Reset() {
  state = {};
  for (auto& ops : told) ops.clear();
  agent = 0;
  past = settled_ = 0;
  initialised = {};
  init_fenced = false;
  lanes.Clear();
  arrivers.clear();
  for (auto* clocks : {&clocks_, &far_clocks_}) {
    for (VectorClock& clock : *clocks) clock.Clear();
  }
}

void BarrierSlot::Settle() {
  for (; settled_ != state.phase(); ++settled_) {
    clocks_[settled_ & 1].Learn({agent, kAllLanes, past + settled_ + 1});
    clocks_[(settled_ + 1) & 1] = clocks_[settled_ & 1];
    far_clocks_[(settled_ + 1) & 1] = far_clocks_[settled_ & 1];
  }
}

void BarrierSlot::Tell(std::span<const OpHandle> ops) {
  Settle();
  auto& waiting = told[settled_ & 1];
  for (const OpHandle& op : ops) {
    waiting.push_back(op);
    NoteArriver(op->warp);
    // Commits publish the contents of a tcgen05 queue.
    if (op->record && !(IsTensorQueue(op->kind) && op->cta_group != 0))
      op->record->over.push_back({agent, kAllLanes, past + settled_ + 1});
  }
}

VectorClock& BarrierSlot::Gathering(bool far) {
  Settle();
  return (far ? far_clocks_ : clocks_)[settled_ & 1];
}

const VectorClock& BarrierSlot::Told(uint32_t parity, bool far) {
  Settle();
  return (far ? far_clocks_ : clocks_)[parity & 1];
}

LaneArrivals::Of& LaneArrivals::At(const Warp& warp, uint32_t phase) {
  auto at = std::find_if(warps_.begin(), warps_.end(), [&](const Of& of) { return of.warp == &warp; });
  if (at == warps_.end()) at = warps_.insert(at, Of{&warp, phase, 0, 0, 0, 0});
  if (at->phase == phase) return *at;
  const bool several = std::popcount(at->once) > 1;
  at->earlier = several ? at->earlier | at->once : at->earlier & ~at->once;
  at->together |= several ? at->once : 0;
  at->phase = phase;
  at->once = at->twice = 0;
  return *at;
}

bool LaneArrivals::Arrive(const Warp& warp, int lane, uint32_t phase) {
  Of& of = At(warp, phase);
  const uint32_t bit = 1u << lane, waits = warp.waits[static_cast<size_t>(lane)];
  uint32_t& before = of.waits[static_cast<size_t>(lane)];
  const bool again = (of.earlier & bit) != 0 && waits == before;
  of.twice |= of.once & bit;
  of.once |= bit;
  of.earlier &= ~bit;
  before = waits;
  return again;
}

bool LaneArrivals::Complete(const Warp& warp, uint32_t phase) {
  const Of& of = At(warp, phase);
  return (of.together & of.twice) != 0 && (of.together & warp.live() & ~of.once) != 0;
}

void Cluster::NoteLaneArrival(BarrierSlot& slot, Warp& warp, int lane, uint32_t phase) {
  const auto report = [&](std::string_view what) {
    warp.Report(HazardKind::kDivergentArrival, lane, Cat("this arrival in phase ", phase, " of an mbarrier ", what));
  };
  if (slot.lanes.Arrive(warp, lane, phase))
    report("follows one in an earlier phase, with other lanes, and the lane has waited for nothing in between");
  if (slot.state.phase() != phase && slot.lanes.Complete(warp, phase))
    report("completes it: a lane of the warp has arrived twice, and one that usually does has not");
}

BarrierSlot& Cluster::MakeBarrier(Cta& cta, uint32_t offset) {
  const auto [known, fresh] = cta.barriers.try_emplace(offset);
  Cta::BarrierPlace& place = known->second;
  if (fresh && checks()) place.agent = NewAgent();
  if (!place.slot) {
    place.slot = pools_.barriers.Take();
    place.slot->agent = place.agent;
    place.slot->past = place.past;
  }
  return *place.slot;
}

void Cluster::DropBarrier(Cta& cta, uint32_t offset) {
  const auto known = cta.barriers.find(offset);
  if (known == cta.barriers.end() || !known->second.slot) return;
  known->second.past += known->second.slot->state.phase() + 1;
  known->second.slot = nullptr;
}

void NamedBarrier::Complete() {
  arrived = 0;
  ++generation;
  told = std::move(gathering);
  gathering.Clear();
}

void Cluster::SynchroniseAt(const uint8_t* host, bool global, Warp& warp, int lane, WordOrder order) {
  constexpr uint64_t kWordBytes = 256;  // of the host, approximately
  const uint32_t mask = uint32_t{1} << lane;
  const bool for_all = global && order.reach == FenceScope::kDevice;
  const auto take = [&](FenceScope distance, const VectorClock& told) {
    if (order.acquires) {
      warp.Acquire(mask, told);
    } else {
      warp.fences.Observe(mask, distance, told);
      warp.NoteWait(mask);
    }
  };
  if (const auto known = words_.find(host); order.reads && known != words_.end()) {
    for (const Word& word : known->second) {
      const bool near = word.cta == &warp.cta();
      if (!near && (word.reach == FenceScope::kCta || order.reach == FenceScope::kCta)) continue;
      take(near ? FenceScope::kCta : FenceScope::kCluster, word.clock);
    }
  }
  if (order.reads && for_all) {
    if (const VectorClock told = machine().order->Released(host); !told.empty()) take(FenceScope::kDevice, told);
  }
  if (!order.writes) return;
  for (const FenceScope reach : {FenceScope::kCta, FenceScope::kCluster, FenceScope::kDevice}) {
    VectorClock told;
    if (order.releases && reach == order.reach) warp.Release(mask, told);
    if (!order.releases && reach <= order.reach) warp.fences.Release(mask, reach, told);
    if (told.empty()) continue;
    if (for_all && reach == FenceScope::kDevice)
      machine().order->Release(host, number_, told, FencedBefore(warp, lane));
    const auto [at, fresh] = words_.try_emplace(host);
    if (fresh) ledger_.Take(kWordBytes);
    auto word = std::find_if(at->second.begin(), at->second.end(),
                             [&](const Word& w) { return w.cta == &warp.cta() && w.reach == reach; });
    if (word == at->second.end()) word = at->second.insert(word, Word{&warp.cta(), reach, {}});
    word->clock.Join(told);
  }
}

// ---- ordinary accesses ----

std::string Cluster::Describe(const Rival& rival) const {
  if (rival.record != nullptr)
    return Cat("the ", NameOf(static_cast<AsyncKind>(rival.record->kind)), " of line ", rival.record->line);
  const size_t warps = ctas_[0]->warps.size();
  const Epoch& moment = rival.moment;
  const std::string lane = moment.lane == kAllLanes ? std::string("several lanes") : Cat("lane ", int{moment.lane});
  return Cat("the ", rival.conflict == Conflict::kWriteAfterRead ? "read" : "write", " in line ", rival.line, " by ",
             lane, " of warp ", moment.agent % warps,
             ctas_.size() > 1 ? Cat(" of CTA rank ", moment.agent / warps) : std::string());
}

void Cluster::CheckOrder(Warp& warp, Cta& cta, uint32_t offset, uint32_t bytes, int lane, bool write, bool strong) {
  const Accessor by = {&warp.knowledge, static_cast<uint8_t>(lane), strong,
                       static_cast<uint16_t>(warp.proxy_fences[static_cast<size_t>(lane)]), warp.position().line};
  const Rival rival = write ? cta.shared_shadow->Write(offset, bytes, by) : cta.shared_shadow->Read(offset, bytes, by);
  if (rival) ReportRace(warp, lane, write, rival);
}

void Cluster::CheckOrder(Warp& warp, Cta& cta, uint32_t mask, const std::array<uint64_t, kLanes>& offsets,
                         uint32_t bytes, bool write) {
  WarpAccess access = {&warp.knowledge, mask, bytes, offsets.data(), warp.proxy_fences.data(), warp.position().line, 0};
  if (mask == kFullMask) {
    const uint64_t stride = offsets[1] - offsets[0];
    uint64_t differs = 0, expected = offsets[0];
    uint32_t fenced = 0;
    for (size_t lane = 0; lane < kLanes; ++lane, expected += stride) differs |= offsets[lane] ^ expected;
    for (size_t lane = 0; lane < kLanes; ++lane) fenced |= warp.proxy_fences[lane] ^ warp.proxy_fences[0];
    if ((differs | fenced) == 0) access.stride = static_cast<uint32_t>(stride);
  }
  SharedShadow& shadow = *cta.shared_shadow;
  for (const auto& [lane, rival] : write ? shadow.WriteLanes(access) : shadow.ReadLanes(access))
    ReportRace(warp, lane, write, rival);
}

void Cluster::DeferStoreRaces(std::vector<StoreRace>* races) {
  store_races_ = machine().policies.equal_stores == EqualStores::kAllowed ? races : nullptr;
}

bool Cluster::Defer(int lane, bool write, const Rival& rival) {
  if (store_races_ == nullptr || !write || rival.record != nullptr || rival.conflict != Conflict::kWriteAfterWrite)
    return false;
  store_races_->push_back({lane, rival});
  return true;
}

void Cluster::SettleStore(Warp& warp, const StoreRace& race, bool equal) {
  if (equal) return NotePolicy(Policy::kEqualStores);
  ReportRace(warp, race.lane, true, race.rival);
}

void Cluster::ReportRace(Warp& warp, int lane, bool write, const Rival& rival) {
  if (Defer(lane, write, rival)) return;
  warp.Report(rival.record != nullptr ? HazardKind::kUnobservedCompletion : HazardKind::kSharedRace, lane,
              Cat("shared offset ", rival.offset, " is ", write ? "written" : "read", " here, and nothing orders ",
                  Describe(rival), " before that"));
}

void Cluster::Visit(Warp& warp, Cta& cta, int lane) {
  const VectorClock& view = warp.knowledge.View(static_cast<uint8_t>(lane));
  const auto first = cta.first_agent();
  if (cta.done()) {
    warp.Report(HazardKind::kRemoteLifetime, lane, Cat("CTA rank ", cta.rank(), " has already ended"));
    return;
  }
  // Once all have arrived, all have started, whether that barrier ordered memory or not.
  if (barrier_generation == 0 && !view.KnowsAnyOf(first, static_cast<uint16_t>(first + cta.warps.size()))) {
    warp.Report(HazardKind::kRemoteLifetime, lane,
                Cat("nothing has shown this thread that CTA rank ", cta.rank(), " has started"));
  }
  const Epoch now = warp.knowledge.Now(static_cast<uint8_t>(lane));
  for (auto& [known, place] : cta.visits) {
    if (known.agent != now.agent || known.lane != now.lane) continue;
    known = now;
    place.line = warp.position().line;
    return;
  }
  cta.visits.emplace_back(now, warp.Here(lane));
}

// ---- asynchronous operations ----

void Cluster::CheckSharedOrder(const AsyncOp& op, const AsyncOp::SharedUse& use) {
  const SharedShadow& shadow = *use.cta->shared_shadow;
  const Knowledge& issuer = op.warp->knowledge;
  Rival rival;
  bool ordinary = false;
  use.ForEachWord([&](GranuleWord word) {
    if (rival) return;
    // Nearly always there is none, which is not worth a copy.
    if (const Rival found = shadow.CheckAsync(word, use.range, use.write, issuer, LaneOf(op)); found) rival = found;
    ordinary |= shadow.Ordinary(word);
  });
  if (ordinary) {
    use.ForEachRun([&](uint32_t begin, uint32_t end) {
      if (!rival) rival = shadow.CheckWords(begin, end, use.write, issuer, LaneOf(op));
    });
  }
  if (!rival) return;
  Hazard(rival.record != nullptr ? HazardKind::kUnobservedCompletion : HazardKind::kSharedRace, op,
         Cat("this ", NameOf(op.kind), use.write ? " overwrites" : " reads", " shared offset ", rival.offset,
             ", and nothing orders ", Describe(rival), " before it"));
}

void Cluster::CheckTensorOrder(const AsyncOp& op, const AsyncOp::TensorUse& use) {
  TensorShadow& shadow = use.cta->tensor_shadow();
  enum class Lack : uint8_t { kNothing, kOrder, kFence };
  // What is missing to order the earlier operation before this one.
  const auto lack_of = [&](const RecordRef& earlier, uint64_t when) {
    const bool own_lanes = earlier->issuer == op.warp && IsLaneAccess(earlier->kind);
    if (own_lanes || QueuedAfter(*earlier, op, machine().policies.queue_order)) return Lack::kNothing;
    if (!earlier->KnownTo(op.warp->knowledge, LaneOf(op))) return Lack::kOrder;
    // What a thread has waited for itself precedes its queue without fences.
    if (IsTensorQueue(op.kind) && IsTensorQueue(static_cast<AsyncKind>(earlier->kind))) return Lack::kNothing;
    const bool before = IsLaneAccess(earlier->kind) && earlier->issuer->before_fence < when;
    return !before && earlier->KnownTo(op.warp->fenced) ? Lack::kNothing : Lack::kFence;
  };
  const auto reported = [&](const RecordRef& earlier, uint64_t when, int column) {
    const Lack lack = lack_of(earlier, when);
    if (lack == Lack::kNothing) return false;
    const std::string_view what = NameOf(static_cast<AsyncKind>(earlier->kind));
    if (lack == Lack::kOrder) {
      Hazard(HazardKind::kUnobservedCompletion, op,
             Cat("column ", column, ": nothing orders the ", what, " of line ", earlier->line, " before this ",
                 NameOf(op.kind)));
      return true;
    }
    NotePolicy(Policy::kTensorFence);
    if (machine().policies.tensor_fence == TensorFence::kOptional) return false;
    const bool before = IsLaneAccess(earlier->kind) && earlier->issuer->before_fence < when;
    Hazard(HazardKind::kMissingTensorFence, op,
           Cat("column ", column, ": between the ", what, " of line ", earlier->line, " and this ", NameOf(op.kind),
               " a tcgen05.fence::", before ? "before" : "after", "_thread_sync is missing"));
    return true;
  };
  // What came before an operation that is still under way and precedes this one precedes this one too.
  const auto after_pending = [&](int column, int group) {
    return std::any_of(op.after.begin(), op.after.end(), [&](const OpHandle& before) {
      return std::any_of(before->tensor.begin(), before->tensor.end(), [&](const AsyncOp::TensorUse& held) {
        return held.cta == use.cta && column >= held.range.column && column < held.range.column + held.range.columns &&
               TensorShadow::GroupsOf(held.range).Contains(group);
      });
    });
  };
  const TensorShadow::Cell* fine = nullptr;  // mostly the same operations have touched the whole range
  const auto is_fine = [&](int begin, int end, int group, const TensorShadow::Cell& cell) {
    if (fine != nullptr && fine->read.get() == cell.read.get() && fine->write.get() == cell.write.get()) return true;
    // The later of the two came after the earlier one, and so does what comes after the later.
    const bool read_last = cell.read && (!cell.write || cell.read_at > cell.written_at);
    const RecordRef& last = read_last ? cell.read : cell.write;
    if (last && lack_of(last, read_last ? cell.read_at : cell.written_at) != Lack::kNothing) {
      int column = begin;
      while (column < end && after_pending(column, group)) ++column;
      if (column == end) return true;
      if (cell.write && reported(cell.write, cell.written_at, column)) return false;
      if (use.write && cell.read && reported(cell.read, cell.read_at, column)) return false;
    }
    fine = &cell;
    return true;
  };
  const int end = std::min<int>(use.range.column + use.range.columns, TensorMemory::kColumns);
  const TensorShadow::Groups groups = TensorShadow::GroupsOf(use.range);
  for (int group = groups.begin; group < groups.end; ++group) {
    const bool all_fine = shadow.ForEach(
        group, use.range.column, end,
        [&](int first, int last, const TensorShadow::Cell& cell) { return is_fine(first, last, group, cell); });
    if (!all_fine) return;
  }
}

void Cluster::NoteUses(const AsyncOp& op, bool reads, bool writes) {
  if (!op.record) return;
  if (writes) FinishGlobalUses(op);
  for (const AsyncOp::SharedUse& use : op.shared) {
    if (!(use.write ? writes : reads)) continue;
    const bool own = std::all_of(op.record->over.begin(), op.record->over.end(),
                                 [&](const Epoch& e) { return e.agent == op.warp->knowledge.agent(); });
    if (op.kind == AsyncKind::kCopy && own) {
      // A cp.async that its thread has waited for is a store of that thread, by the generic proxy.
      const Accessor by = {&op.warp->knowledge, LaneOf(op), false,
                           static_cast<uint16_t>(op.warp->proxy_fences[LaneOf(op)]), op.at.line};
      (void)use.cta->shared_shadow->Write(use.range.begin, use.range.end - use.range.begin, by);
    } else {
      use.ForEachWord([&](GranuleWord word) { use.cta->shared_shadow->NoteAsync(word, use.write, op.record); });
    }
  }
  const uint64_t now = Tick();
  for (const AsyncOp::TensorUse& use : op.tensor) {
    const int end = std::min<int>(use.range.column + use.range.columns, TensorMemory::kColumns);
    const TensorShadow::Groups groups = TensorShadow::GroupsOf(use.range);
    for (int group = groups.begin; group < groups.end; ++group) {
      use.cta->tensor_shadow().Update(group, use.range.column, end, [&](TensorShadow::Cell& cell) {
        (use.write ? cell.write : cell.read) = op.record;
        (use.write ? cell.written_at : cell.read_at) = now;
      });
    }
  }
}

uint16_t Cluster::NewAgent() {
  const size_t warps = ctas_.size() * ctas_[0]->warps.size();
  return static_cast<uint16_t>(warps + next_agent_++);
}

void Cluster::MakeRecord(AsyncOp& op) {
  op.record = pools_.records.Take();
  OpRecord& record = *op.record;
  record.issuer = op.warp;
  record.lane = op.lane;
  record.line = op.at.line;
  record.kind = static_cast<uint8_t>(op.kind);
  record.cta_group = static_cast<uint8_t>(op.cta_group);
  record.order_key = op.order_key;
  record.shifts_a = op.shifts_a;
  if (op.shared.size() == 1 && op.shared[0].granules == nullptr) {
    record.begin = op.shared[0].range.begin;
    record.end = op.shared[0].range.end;
  }
  if (op.kind == AsyncKind::kCommit) {
    op.issuer_knew = std::make_unique<VectorClock>();
    op.warp->Release(uint32_t{1} << op.lane, *op.issuer_knew);
  }
  if (!IsTensorQueue(op.kind) || op.cta_group == 0) return;
  // Each commit covers everything that its thread has queued, whichever thread has observed parts of that before.
  const auto [queue, fresh] =
      queue_agents_.try_emplace({op.warp->knowledge.agent(), op.lane, op.cta_group}, uint16_t{0}, 0u);
  if (fresh) queue->second.first = NewAgent();
  auto& [agent, commits] = queue->second;
  if (op.kind == AsyncKind::kCommit) {
    op.issuer_knew->Learn({agent, kAllLanes, ++commits});
  } else {
    record.over.push_back({agent, kAllLanes, commits + 1});
  }
}

void Cluster::AddMoments(OpRecord& record, const Warp& warp, uint32_t mask) {
  if ((warp.live() & ~mask) == 0) {
    // A wgmma is one operation of four warps, whichever of them has waited; so may be tcgen05.ld and st of one warp.
    const auto kind = static_cast<AsyncKind>(record.kind);
    const bool tensor = kind == AsyncKind::kTensorLoad || kind == AsyncKind::kTensorStore;
    const bool whole = kind == AsyncKind::kWgmma || (tensor && machine().policies.tensor_wait == TensorWait::kWhole);
    record.over.push_back(warp.knowledge.Now(whole ? kAnyLane : kAllLanes));
    return;
  }
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1)
    record.over.push_back(warp.knowledge.Now(static_cast<uint8_t>(std::countr_zero(rest))));
}

}  // namespace laneshift::emulator
