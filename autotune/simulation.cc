#include "autotune/simulation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "autotune/step_clocks.h"
#include "base/check.h"

namespace laneshift::autotune {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// The slots of a ring. Slot i of n is used for the i-th, (i+n)-th, … time round.
class SlotRing {
 public:
  explicit SlotRing(const PipelineRing& ring)
      : ring_(ring), full_(Slots()), free_(Slots()), sent_(Slots(), 0), freed_(Slots(), 0) {}

  // The time at which the `index`-th use of a slot may begin, or its contents are there; null: not known yet.
  const Moment* Free(int index) const {
    const Use use = UseOf(index);
    return freed_[use.slot] >= use.round * std::max(1, ring_.consumers) ? &free_[use.slot] : nullptr;
  }
  const Moment* Full(int index) const {
    const Use use = UseOf(index);
    return sent_[use.slot] >= (use.round + 1) * std::max(1, ring_.producers) ? &full_[use.slot] : nullptr;
  }
  void Fill(int index, const Moment& moment) {
    const Use use = UseOf(index);
    full_[use.slot].Await(moment);
    ++sent_[use.slot];
  }
  void Release(int index, const Moment& moment) {
    const Use use = UseOf(index);
    free_[use.slot].Await(moment);
    ++freed_[use.slot];
  }

 private:
  struct Use {
    size_t slot;
    int round;
  };
  size_t Slots() const { return static_cast<size_t>(std::max(1, ring_.stages)); }
  // One division: it is made in every step of a simulation.
  Use UseOf(int index) const {
    const auto slots = static_cast<uint32_t>(full_.size()), number = static_cast<uint32_t>(index);
    return {number % slots, static_cast<int>(number / slots)};
  }

  PipelineRing ring_;
  std::vector<Moment> full_, free_;
  std::vector<int> sent_, freed_;
};

// What the CTAs of an SM share.
struct Resources {
  Moment tensor, loads, memory, stores;
  double memory_busy = 0;  // clocks
};

// The position of a role in a ring.
struct Place {
  int put = 0, sent = 0, taken = 0, freed = 0;
  int of_tile = 0;               // slots that each tile takes
  std::vector<Moment> unsent{};  // when the loads into slots are done that were not sent, oldest first
};

// Where a role's steps are traced.
struct TracePlace {
  std::vector<TracedSpan>* spans = nullptr;
  int role = 0, cta = 0;
};

class RoleRun {
 public:
  RoleRun(const PipelineRole& role, const std::vector<PipelineRing>& rings, const TracePlace& trace)
      : role_(role), places_(rings.size()), trace_(trace) {
    for (size_t i = 0; i < role.tile.kinds(); ++i) {
      const Step& step = role.tile.kind(i);
      if (step.kind == StepKind::kTake && !rings[static_cast<size_t>(step.ring)].order)
        places_[static_cast<size_t>(step.ring)].of_tile += static_cast<int>(role.tile.times(i));
    }
  }

  const Moment& time() const { return time_; }
  void Await(const Moment& moment) { time_.Await(moment); }
  bool finished() const { return list_ == 3; }
  int tiles() const { return tiles_; }
  // When each listed tile was done.
  const std::vector<Moment>& tile_ends() const { return tile_ends_; }
  // Clocks and causes of one MMA in the later half of a tile's.
  const Moment& early_product() const { return early_; }
  const Moment& last_product() const { return done_; }

  // Runs until the role has to wait for another one. False: it could not make progress at all.
  bool Run(std::vector<SlotRing>& rings, Resources& shared, const Machine& machine, const SmShare& share, int tiles,
           double early, bool once, double until) {
    bool moved = false;
    while (!finished() && time_.clocks <= until) {
      if (list_ == 1 && next_ == 0 && tiles_ % role_.pingpong_roles != role_.pingpong_index) {
        PassTile(tiles);
        moved = true;
        continue;
      }
      const StepList& steps = list_ == 0 ? role_.before : list_ == 1 ? role_.tile : role_.after;
      if (list_ == 1 && next_ == 0 && !began_) {
        began_ = true;
        time_.Spend(Bound::kIssue, machine.tile_start);
        products_ = 0;
      }
      if (next_ == steps.size()) {
        moved = true;
        next_ = 0;
        if (list_ != 1) {
          ++list_;
          continue;
        }
        began_ = false;
        tile_ends_.push_back(time_);
        if (++tiles_ == tiles) ++list_;
        if (once && list_ == 1) return true;
        continue;
      }
      const double before = time_.clocks;
      if (!Step1(steps[next_], rings, shared, machine, share)) return moved;
      if (trace_.spans != nullptr) Trace(steps[next_], before, shared, machine, share);
      if (IsProduct(steps[next_].kind) && ++products_ == early) early_ = done_;
      ++next_;
      moved = true;
    }
    return moved;
  }

 private:
  // The tile is that of the other ping-pong role.
  void PassTile(int tiles) {
    for (Place& place : places_) {
      place.taken += place.of_tile;
      place.freed += place.of_tile;
    }
    tile_ends_.push_back(time_);
    if (++tiles_ == tiles) ++list_;
  }

  bool Step1(const Step& step, std::vector<SlotRing>& rings, Resources& shared, const Machine& machine,
             const SmShare& share) {
    switch (step.kind) {
      case StepKind::kPut: {
        Place& place = places_[static_cast<size_t>(step.ring)];
        const Moment* free = rings[static_cast<size_t>(step.ring)].Free(place.put);
        if (free == nullptr) return false;
        if (place.put > 0) time_.Await(*free, Bound::kIssue, free->clocks > 0 ? machine.signal : 0);
        ++place.put;
        arrived_ = {};
        return true;
      }
      case StepKind::kSend: {
        Place& place = places_[static_cast<size_t>(step.ring)];
        Moment full = time_;
        full.Await(arrived_);
        if (multiplied_ && !step.at_once) full.Await(done_, Bound::kProductLatency, signal_);
        rings[static_cast<size_t>(step.ring)].Fill(place.sent++, full);
        return true;
      }
      case StepKind::kSendLate:
      case StepKind::kDrainSends: {
        Place& place = places_[static_cast<size_t>(step.ring)];
        if (step.kind == StepKind::kSendLate) place.unsent.push_back(arrived_);
        const auto kept = static_cast<size_t>(step.lag);
        const size_t sent = place.unsent.size() - std::min(place.unsent.size(), kept);
        for (size_t i = 0; i < sent; ++i) {
          time_.Await(place.unsent[i]);
          rings[static_cast<size_t>(step.ring)].Fill(place.sent++, time_);
        }
        place.unsent.erase(place.unsent.begin(), place.unsent.begin() + static_cast<std::ptrdiff_t>(sent));
        return true;
      }
      case StepKind::kTake: {
        Place& place = places_[static_cast<size_t>(step.ring)];
        const Moment* full = rings[static_cast<size_t>(step.ring)].Full(place.taken);
        if (full == nullptr) return false;
        time_.Await(*full, Bound::kIssue, machine.signal);
        ++place.taken;
        return true;
      }
      case StepKind::kRelease: {
        Place& place = places_[static_cast<size_t>(step.ring)];
        Moment freed = time_;
        if (multiplied_ && !step.at_once) freed.Await(done_, Bound::kProductLatency, signal_);
        rings[static_cast<size_t>(step.ring)].Release(place.freed++, freed);
        return true;
      }
      case StepKind::kReleaseLate: {
        Place& place = places_[static_cast<size_t>(step.ring)];
        time_.Await(own_before_, Bound::kProductLatency, own_before_.clocks > 0 ? signal_ : 0);
        if (place.taken - place.freed > step.lag) rings[static_cast<size_t>(step.ring)].Release(place.freed++, time_);
        return true;
      }
      case StepKind::kAwaitProducts:
        time_.Await(own_done_);  // between blocks of rows of a warpgroup, without a barrier
        return true;
      case StepKind::kDrain: {
        Place& place = places_[static_cast<size_t>(step.ring)];
        time_.Await(own_done_, Bound::kProductLatency, signal_);
        Moment freed = time_;
        freed.Await(done_, Bound::kProductLatency, signal_);
        while (place.freed < place.taken) rings[static_cast<size_t>(step.ring)].Release(place.freed++, freed);
        return true;
      }
      case StepKind::kLoad:
        return Load(step, shared, machine, share);
      case StepKind::kGather:
        time_.Spend(Bound::kGather, step.accesses / GatherRate(step.gather, machine));
        return true;
      case StepKind::kMma: {
        const ProductTime product = TimeOf(step, machine);
        time_.Spend(Bound::kIssue, step.depth * machine.product_issue);
        Begin(shared.tensor);
        own_before_ = own_done_;
        own_done_ = shared.tensor.After(product.bound, product.clocks * step.own);
        own_done_.Spend(Bound::kProductLatency, machine.product_latency);
        shared.tensor.Spend(product.bound, product.clocks);
        done_ = shared.tensor.After(Bound::kProductLatency, machine.product_latency);
        if (step.interleaved) own_done_ = done_ = shared.tensor;
        signal_ = step.interleaved ? 0 : machine.product_signal + (step.pair ? machine.pair_signal : 0);
        multiplied_ = true;
        return true;
      }
      case StepKind::kTensorCopy:
        Begin(shared.tensor);
        shared.tensor.Spend(Bound::kSharedMemory, CopyClocks(step, machine));
        return true;
      case StepKind::kTensorMove:
        Begin(shared.tensor);
        shared.tensor.Spend(Bound::kSharedMemory, MoveClocks(step, machine));
        return true;
      case StepKind::kTensorStore:
        time_.Spend(Bound::kSharedMemory, TensorStoreClocks(step, machine));
        return true;
      case StepKind::kReadAccumulator:
        time_.Spend(Bound::kEpilogue, AccumulatorReadClocks(step, machine));
        return true;
      case StepKind::kConvert:
        time_.Spend(step.multiplied ? Bound::kIssue : Bound::kEpilogue, ArithmeticClocks(step, machine));
        return true;
      case StepKind::kMultiply:
        time_.Spend(Bound::kIssue, ArithmeticClocks(step, machine));
        done_ = time_;
        return true;
      case StepKind::kReadGlobal:
        time_.Spend(step.multiplied ? Bound::kLoadLatency : Bound::kEpilogue, step.issues * machine.global_latency);
        time_.Spend(step.multiplied ? Bound::kL2 : Bound::kEpilogue, step.bytes / share.load_rate);
        return true;
      case StepKind::kStoreSums:
        time_.Spend(Bound::kEpilogue, step.bytes / machine.shared_read);
        return true;
      case StepKind::kAddSums:
        time_.Spend(Bound::kEpilogue, machine.cluster_exchange + step.bytes / machine.dsmem_rate);
        return true;
      case StepKind::kStage:
        time_.Spend(Bound::kEpilogue, StageClocks(step, machine));
        return true;
      case StepKind::kStore: {
        // Of the copies of all warps, which go on one after the other: on average half are read before a warp's own.
        Begin(shared.stores);
        const double half = StoreClocks(step, share) / 2;
        shared.stores.Spend(share.store_bound, half);
        stored_.push_back(shared.stores.After(Bound::kStore, machine.store_latency));
        shared.stores.Spend(share.store_bound, half);
        return true;
      }
      case StepKind::kStoreWait: {
        const size_t kept = static_cast<size_t>(step.lag);
        if (stored_.size() > kept) time_.Await(stored_[stored_.size() - 1 - kept]);
        return true;
      }
      case StepKind::kStoreThreads:
        Begin(shared.stores);
        shared.stores.Spend(share.store_bound, ThreadStoreClocks(step, machine, share));
        time_.Await(shared.stores);
        return true;
    }
    return true;
  }

  bool Load(const Step& step, Resources& shared, const Machine& machine, const SmShare& share) {
    time_.Spend(step.accesses > 0 ? Bound::kGather : Bound::kIssue, LoadIssueClocks(step, machine));
    // The first byte arrives a latency after the issue, but not before those of earlier loads.
    Moment first = time_.After(Bound::kLoadLatency, share.load_latency);
    if (share.memory_queue > 0) {
      shared.memory_busy += MemoryClocks(step, share);
      first.Spend(Bound::kLoadLatency, share.memory_queue * std::min(1.0, shared.memory_busy / first.clocks));
    }
    shared.loads.Await(first);
    shared.loads.Spend(Bound::kL2, LoadClocks(step, machine, share));
    if (step.outside > 0) shared.loads.Spend(Bound::kOutside, OutsideClocks(step, share));
    arrived_.Await(shared.loads);
    if (share.memory_clocks > 0) {
      // If SMs are in step, all wait for memory at once; otherwise memory serves others while this one requests
      // nothing.
      if (share.in_step) shared.memory.Await(first);
      shared.memory.Spend(Bound::kMemory, MemoryClocks(step, share));
      arrived_.Await(shared.memory);
    }
    return true;
  }

  // A step that was made: what the role did since `before`, and for how long a unit is busy with it.
  void Trace(const Step& step, double before, const Resources& shared, const Machine& machine,
             const SmShare& share) const {
    const auto add = [&](TraceUnit unit, double begin, double end) {
      if (end <= begin) return;
      const bool waits = unit == TraceUnit::kRole && Waits(step.kind);
      trace_.spans->push_back({unit, trace_.role, trace_.cta, list_ < 2 ? tiles_ : tiles_ - 1, step.kind, step.ring,
                               step.of_b, waits, begin, end});
    };
    const auto busy = [&](TraceUnit unit, const Moment& until, double clocks) {
      add(unit, until.clocks - clocks, until.clocks);
    };
    add(TraceUnit::kRole, before, time_.clocks);
    if (step.kind == StepKind::kMma) busy(TraceUnit::kTensorCore, shared.tensor, TimeOf(step, machine).clocks);
    if (step.kind == StepKind::kTensorCopy) busy(TraceUnit::kTensorCore, shared.tensor, CopyClocks(step, machine));
    if (step.kind == StepKind::kTensorMove) busy(TraceUnit::kTensorCore, shared.tensor, MoveClocks(step, machine));
    if (step.kind == StepKind::kLoad)
      busy(TraceUnit::kLoads, shared.loads, LoadClocks(step, machine, share) + OutsideClocks(step, share));
    if (step.kind == StepKind::kStore) busy(TraceUnit::kStores, shared.stores, StoreClocks(step, share));
    if (step.kind == StepKind::kStoreThreads)
      busy(TraceUnit::kStores, shared.stores, ThreadStoreClocks(step, machine, share));
  }
  static bool Waits(StepKind kind) { return kind <= StepKind::kDrain || kind == StepKind::kStoreWait; }

  // The resource is not used before the role asks for it.
  void Begin(Moment& resource) const { resource.Await(time_); }

  const PipelineRole& role_;
  std::vector<Place> places_;
  Moment time_, arrived_, done_, early_;
  Moment own_done_, own_before_;  // of the warpgroup whose MMAs come first
  std::vector<Moment> stored_, tile_ends_;
  double signal_ = 0;
  size_t next_ = 0;
  int list_ = 0, tiles_ = 0, products_ = 0;
  bool began_ = false, multiplied_ = false;
  const TracePlace trace_;
};

// A CTA that is persistent on its SM, or successors each of which begins when the previous one has ended.
class CtaRun {
 public:
  CtaRun(const Pipeline& pipeline, TracePlace trace) : pipeline_(pipeline) {
    for (const PipelineRing& ring : pipeline.rings) rings_.emplace_back(ring);
    for (const PipelineRole& role : pipeline.roles) {
      roles_.emplace_back(role, pipeline.rings, trace);
      ++trace.role;
    }
  }

  // Roles run until they have to wait, or have passed `until`. False: no role could make progress.
  bool Run(Resources& shared, const Machine& machine, const SmShare& share, int tiles, double until) {
    const double early = std::max(1.0, std::floor(pipeline_.counted / 2));
    bool moved = false;
    for (RoleRun& role : roles_) {
      if (!pipeline_.persistent && role.tiles() > done_) continue;
      moved |= role.Run(rings_, shared, machine, share, tiles, early, !pipeline_.persistent, until);
    }
    if (!pipeline_.persistent && !finished() &&
        std::all_of(roles_.begin(), roles_.end(), [&](const RoleRun& r) { return r.tiles() > done_; })) {
      ++done_;
      const Moment begin = end().After(Bound::kLaunch, machine.cta_start);
      for (RoleRun& role : roles_) role.Await(begin);
      moved = true;
    }
    return moved;
  }
  // The least time beyond `after` of a role that still has something to do.
  double Front(double after) const {
    double front = kNever;
    for (const RoleRun& role : roles_) {
      const double time = role.time().clocks;
      if (time > after && !role.finished() && (pipeline_.persistent || role.tiles() == done_))
        front = std::min(front, time);
    }
    return front;
  }
  bool finished() const {
    return std::all_of(roles_.begin(), roles_.end(), [](const RoleRun& r) { return r.finished(); });
  }
  Moment end() const {
    Moment end;
    for (const RoleRun& role : roles_) end.Await(role.time());
    return end;
  }
  // When the last role was done with a tile.
  Moment TileEnd(int tile) const {
    Moment end;
    for (const RoleRun& role : roles_) {
      if (static_cast<size_t>(tile) < role.tile_ends().size()) end.Await(role.tile_ends()[static_cast<size_t>(tile)]);
    }
    return end;
  }
  const RoleRun* Multiplier() const {
    for (const RoleRun& role : roles_) {
      if (role.last_product().clocks > 0) return &role;
    }
    return nullptr;
  }

 private:
  const Pipeline& pipeline_;
  std::vector<SlotRing> rings_;
  std::vector<RoleRun> roles_;
  int done_ = 0;  // tiles of a CTA that is not persistent
};

// `moment` plus `times` the average difference between two others.
void Repeat(Moment& moment, const Moment& from, const Moment& to, double times) {
  const double clocks = std::max(0.0, to.clocks - from.clocks) * times;
  if (clocks <= 0) return;
  Moment between;
  for (size_t i = 0; i < kBoundCount; ++i) {
    between.Spend(static_cast<Bound>(i), std::max(0.0, to.by[i] - from.by[i]));
  }
  // If the causes of both differ, those of the later one stand for both.
  const Moment& shares = between.clocks > 0 ? between : to;
  for (size_t i = 0; i < kBoundCount; ++i) {
    moment.Spend(static_cast<Bound>(i), clocks * shares.by[i] / shares.clocks);
  }
}

}  // namespace

SmTime SimulateSm(const Pipeline& pipeline, const Machine& machine, const SmShare& share, double tiles,
                  std::vector<TracedSpan>* trace) {
  const double count = std::max(1.0, std::min(pipeline.ctas_per_sm, tiles));
  const double per_cta = std::ceil(tiles / count);
  const int simulated = static_cast<int>(std::min<double>(per_cta, pipeline.simulated_tiles));
  std::vector<CtaRun> ctas;
  for (int i = 0; i < static_cast<int>(count); ++i) ctas.emplace_back(pipeline, TracePlace{.spans = trace, .cta = i});
  Resources shared;
  // Several CTAs, or roles that fill the same slots, run in the order of time, so that a shared resource is given to
  // the first request.
  const bool in_order = ctas.size() > 1 || std::any_of(pipeline.rings.begin(), pipeline.rings.end(),
                                                       [](const PipelineRing& ring) { return ring.producers > 1; });
  const auto run = [&](double until) {
    bool moved = false;
    for (CtaRun& cta : ctas) moved |= cta.Run(shared, machine, share, simulated, until);
    return moved;
  };
  const auto next_front = [&](double after) {
    double front = kNever;
    for (const CtaRun& cta : ctas) front = std::min(front, cta.Front(after));
    return front;
  };
  for (bool moved = true; moved;) {
    // The role with the least time may wait for one that is ahead.
    double front = in_order ? next_front(-kNever) : kNever;
    while (!(moved = run(front)) && front < kNever) front = next_front(front);
  }
  SmTime time;
  const CtaRun* last = &ctas.front();
  for (const CtaRun& cta : ctas) {
    LS_CHECK(cta.finished(), "the roles of a pipeline wait for each other");
    if (cta.end().clocks > last->end().clocks) last = &cta;
  }
  time.end = last->end();
  // Tiles, then iterations of the K loop, that were not listed.
  if (per_cta > simulated && simulated >= 3) {
    Repeat(time.end, last->TileEnd(simulated - 3), last->TileEnd(simulated - 1), (per_cta - simulated) / 2);
  }
  if (const RoleRun* multiplier = last->Multiplier(); multiplier != nullptr && pipeline.products > pipeline.counted) {
    const double early = std::max(1.0, std::floor(pipeline.counted / 2));
    Repeat(time.end, multiplier->early_product(), multiplier->last_product(),
           (pipeline.products - pipeline.counted) / (pipeline.counted - early) * per_cta);
  }
  const BusyClocks& busy = time.busy = BusyOf(pipeline, machine, share, tiles);
  // The extrapolation may repeat a part that was faster than the whole can be.
  const auto last_at = [&](Bound bound, double clocks) {
    if (clocks > time.end.clocks) time.end.Spend(bound, clocks - time.end.clocks);
  };
  last_at(Bound::kTensorCore, busy.tensor);
  last_at(Bound::kIssue, busy.role);
  last_at(Bound::kL2, busy.loads);
  last_at(Bound::kMemory, busy.memory);
  last_at(share.store_bound, busy.stores);
  return time;
}

}  // namespace laneshift::autotune
