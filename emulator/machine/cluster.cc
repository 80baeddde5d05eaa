#include "emulator/machine/cluster.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/text.h"
#include "emulator/ptx/function_names.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

constexpr uint64_t kQuantum = 4096;
// A waiter gets "not yet" this often without any event before the cluster counts as deadlocked.
constexpr uint64_t kPatience = 8;
// The most times that lanes may proceed without the others in vain.
constexpr uint64_t kFruitlessReleases = 64;
// Rounds of spinning without an event before other clusters get the host thread.
constexpr int kRoundsBeforeYield = 4;
constexpr int kRoundsOfPolling = 1 << 12;

uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x7f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 27);
}

}  // namespace

// ---- Cta ----

Cta::Cta(Cluster& cluster, uint32_t rank, std::array<uint32_t, 3> index, std::unique_ptr<CtaMemory> memory,
         KeptWarps& kept)
    : cluster_(cluster),
      rank_(rank),
      index_(index),
      threads_(cluster.launch().shape.block[0] * cluster.launch().shape.block[1] * cluster.launch().shape.block[2]),
      memory_(std::move(memory)) {
  shared_shadow = memory_->shadow.get();
  const int count = static_cast<int>((threads_ + kLanes - 1) / kLanes);
  warps.reserve(static_cast<size_t>(count));
  for (int w = 0; w < count; ++w) {
    const uint32_t lanes = std::min<uint32_t>(kLanes, threads_ - static_cast<uint32_t>(w) * kLanes);
    warps.push_back(std::make_unique<Warp>(*this, w, lanes == kLanes ? kFullMask : (1u << lanes) - 1, kept.Take()));
  }
  warpgroups.resize((static_cast<size_t>(count) + 3) / 4);
  const DecodedKernel& kernel = *cluster.launch().kernel;
  charge_ = {*cluster.machine().meter,
             static_cast<uint64_t>(count) * (sizeof(Warp) + kernel.register_bytes + kernel.local_bytes * kLanes)};
}

TensorShadow& Cta::tensor_shadow() {
  if (!tensor_shadow_) tensor_shadow_ = std::make_unique<TensorShadow>();
  return *tensor_shadow_;
}

TensorMemory& Cta::tensor() {
  if (memory_->tensor == nullptr) {
    memory_->tensor = std::make_unique<TensorMemory>();
    memory_->tensor_charge = {*cluster_.machine().meter, TensorMemory::kHostBytes};
  }
  return *memory_->tensor;
}

uint32_t Cta::live_threads() const {
  uint32_t count = 0;
  for (const auto& warp : warps) count += static_cast<uint32_t>(std::popcount(warp->live()));
  return count;
}

bool Cta::done() const {
  return std::all_of(warps.begin(), warps.end(), [](const auto& warp) { return warp->done(); });
}

// ---- Cluster ----

uint32_t ClustersOf(const GridShape& shape) {
  uint32_t clusters = 1;
  for (size_t d = 0; d < 3; ++d) clusters *= shape.grid[d] / shape.cluster[d];
  return clusters;
}

uint32_t SharedBytesOf(const Launch& launch) {
  return launch.kernel->dynamic_shared_offset - kSharedBase + launch.shape.dynamic_shared;
}

std::array<uint32_t, 3> FirstCtaOf(const GridShape& shape, uint32_t cluster) {
  std::array<uint32_t, 3> first{};
  for (size_t d = 0; d < 3; ++d) {
    const uint32_t count = shape.grid[d] / shape.cluster[d];
    first[d] = cluster % count * shape.cluster[d];
    cluster /= count;
  }
  return first;
}

namespace {

// All CTAs of a launch have memories of one size.
std::unique_ptr<CtaMemory> TakeMemory(const Launch& launch, HostThread& host) {
  std::vector<std::unique_ptr<CtaMemory>>& memories = host.kept().memories;
  if (memories.empty()) {
    return std::make_unique<CtaMemory>(SharedBytesOf(launch), launch.machine->hazards != nullptr,
                                       *launch.machine->meter);
  }
  std::unique_ptr<CtaMemory> memory = std::move(memories.back());
  memories.pop_back();
  return memory;
}

}  // namespace

Cluster::Cluster(const Launch& launch, uint32_t linear_index, HostThread& host, Cancel cancel)
    : launch_(launch),
      trace_(linear_index == 0 ? launch.machine->trace : nullptr),
      ledger_(*launch.machine->meter),
      cancel_(std::move(cancel)),
      linear_index_(linear_index),
      number_(launch.first_cluster + linear_index) {
  pools_.Refill(host.pools);
  pending_global_.Refill(host.pending_global);
  if (launch.machine->completion == Completion::kRandom)
    random_.emplace(Mix(Mix(launch.machine->seed, launch.serial), linear_index));
  const GridShape& shape = launch.shape;
  const std::array<uint32_t, 3> first = FirstCtaOf(shape, linear_index);
  for (size_t d = 0; d < 3; ++d) index_[d] = first[d] / shape.cluster[d];
  uint32_t rank = 0;
  for (uint32_t z = 0; z < shape.cluster[2]; ++z) {
    for (uint32_t y = 0; y < shape.cluster[1]; ++y) {
      for (uint32_t x = 0; x < shape.cluster[0]; ++x) {
        ctas_.push_back(std::make_unique<Cta>(*this, rank++,
                                              std::array<uint32_t, 3>{first[0] + x, first[1] + y, first[2] + z},
                                              TakeMemory(launch, host), host.warps));
      }
    }
  }
  pairs_.resize((ctas_.size() + 1) / 2);
}

Cluster::~Cluster() {
  if (progress_) machine().meter->Told();  // it has ended instead
}

void Cluster::Leave(HostThread& host) {
  if (fault_) return;  // what was cut short may have changed more than it has marked
  for (const auto& cta : ctas_) {
    host.kept().memories.push_back(cta->TakeMemory());
    host.kept().memories.back()->Reset();
    for (const auto& warp : cta->warps) host.warps.Keep(warp->TakeMemory());
  }
  // All that refers to operations.
  ctas_.clear();
  unreleased_.clear();
  pending_.clear();
  chain_ = nullptr;
  host.pools.Refill(pools_);
  pending_global_.Clear();
  host.pending_global.Refill(pending_global_);
}

void Cluster::NotePolicies(PolicySet used) {
  if (used.empty()) return;
  for (size_t p = 0; p < kPolicies; ++p) counters_.policies[p] += used.Has(static_cast<Policy>(p));
}

std::optional<std::array<uint32_t, 3>> Cluster::CancelOne() {
  if (!cancel_ || !machine().accepts_cancellation) return std::nullopt;
  auto first = cancel_();
  counters_.cancelled_clusters += first.has_value();
  return first;
}

uint32_t Cluster::live_threads() const {
  uint32_t count = 0;
  for (const auto& cta : ctas_) count += cta->live_threads();
  return count;
}

// One quantum for every path that can run. `ran`: at least one made progress.
bool Cluster::RunRound(bool& ran) {
  const bool random = machine().completion == Completion::kRandom;
  round_.clear();
  for (const auto& cta : ctas_) {
    for (const auto& warp : cta->warps) {
      if (!warp->done()) round_.push_back(warp.get());
    }
  }
  if (random) std::shuffle(round_.begin(), round_.end(), *random_);
  for (Warp* warp : round_) {
    for (size_t p = 0; p < warp->paths().size(); ++p) {
      Path& path = warp->paths()[p];
      if (path.state == Path::State::kBlocked && (path.seen_event != events_ || path.wait.timed_out)) {
        path.state = Path::State::kRunnable;
      }
      if (path.state != Path::State::kRunnable) continue;
      uint64_t executed = 0;
      const uint64_t quantum = random ? 1 + (*random_)() % 256 : kQuantum;
      const bool runs = trace_ == nullptr ? warp->Run(p, quantum, executed) : RunTraced(*warp, p, quantum, executed);
      if (!runs) return false;
      uncounted_ += executed;
      if (uncounted_ >= kQuantum) TellMeter();
      ran = ran || executed != 0;
      if (random && !pending_.empty() && ((*random_)() & 1) != 0 && !CompleteAtRandom()) return false;
    }
  }
  return true;
}

void Cluster::TellMeter() {
  if (machine().meter->Count(std::exchange(uncounted_, 0))) BeginToWatch();
}

Outcome Cluster::EndAtLimit(Warp& warp, FaultKind which, int lane) {
  machine().meter->Trip(which);  // the other clusters end too
  emulator::Fault fault;
  fault.kind = which;
  fault.place = warp.Here(lane);
  fault.place.kernel = KernelAt(warp.kernel(), fault.place.line);
  fault.message = DescribeLimit(machine().meter->limits(), which);
  DrawWaits(fault);
  SetFault(std::move(fault));
  return Outcome::kFault;
}

Cluster::Result Cluster::Run(HostThread& host, Effort effort) {
  host_ = &host;
  if (launch_.has_dependent || launch_.predecessors_ended != nullptr) Signal();  // waits for grids are retried
  const uint64_t news_before = news();
  int rounds = 0, idle_rounds = 0;
  polls_ = false;
  while (true) {
    if (std::all_of(ctas_.begin(), ctas_.end(), [](const auto& cta) { return cta->done(); })) {
      while (!pending_.empty()) {
        if (!Complete(OpHandle(pending_.front()))) return Result::kFault;
      }
      return Result::kDone;
    }
    const uint64_t events = events_;
    bool ran = false;
    if (!RunRound(ran)) return Result::kFault;
    TellMeter();
    if (progress_) WatchProgress();
    if (std::exchange(makes_way_, false) || (++rounds >= kRoundsOfPolling && polls_)) return Result::kYield;
    if (events_ != events) {
      idle_rounds = 0;
      continue;
    }
    // Nothing but spinning happened: time for something asynchronous, and for other clusters.
    if (!pending_.empty()) {
      if (!CompleteSomething()) return Result::kFault;
      continue;
    }
    if (ran) {
      if (++idle_rounds < kRoundsBeforeYield) continue;
      idle_rounds = 0;
      if (effort == Effort::kLastResort && (TimeOutWaiters() || ReleaseParts())) continue;
      if (news() != news_before) return Result::kYield;
      const Repetition all = AllRepeat();
      if (all == Repetition::kFault) return Result::kFault;
      return all == Repetition::kFound && news() == news_before ? Result::kStuck : Result::kYield;
    }
    if (WaitsForGrids()) {
      if (!PredecessorsEnded()) return news() != news_before ? Result::kYield : Result::kStuck;
      Signal();  // another host thread has ended them since the check
      continue;
    }
    if (TimeOutWaiters() || ReleaseParts()) continue;
    ReportDeadlock();
    return Result::kFault;
  }
}

bool Cluster::WaitsForGrids() const {
  return std::any_of(ctas_.begin(), ctas_.end(), [](const auto& cta) {
    return std::any_of(cta->warps.begin(), cta->warps.end(), [](const auto& warp) {
      return std::any_of(warp->paths().begin(), warp->paths().end(), [](const Path& path) {
        return path.state == Path::State::kBlocked && path.wait.kind == WaitState::Kind::kGrid;
      });
    });
  });
}

bool Cluster::MayBeFollowed() const {
  return std::all_of(ctas_.begin(), ctas_.end(), [](const auto& cta) { return cta->may_be_followed || cta->done(); });
}

bool Cluster::MakesWay() {
  if (!launch_.has_dependent || !MayBeFollowed()) return false;
  const Completion completion = machine().completion;
  const bool makes = completion == Completion::kEager || (completion == Completion::kRandom && ((*random_)() & 1) != 0);
  makes_way_ |= makes;  // another warp may have in this round
  return makes;
}

bool Cluster::ReleaseParts() {
  if (last_release_news_ != news()) {
    last_release_news_ = news();
    releases_without_news_ = 0;
  }
  if (++releases_without_news_ > kFruitlessReleases) return false;
  bool released = false;
  for (const auto& cta : ctas_) {
    for (const auto& warp : cta->warps) released = warp->ReleaseParts() || released;
  }
  return released;
}

bool Cluster::TimeOutWaiters() {
  if (last_timeout_event_ == events_) {
    if (++timeouts_without_event_ > kPatience) return false;
  } else {
    last_timeout_event_ = events_;
    timeouts_without_event_ = 0;
  }
  bool any = false;
  for (const auto& cta : ctas_) {
    for (const auto& warp : cta->warps) {
      for (Path& path : warp->paths()) {
        if (path.state != Path::State::kBlocked || path.wait.kind != WaitState::Kind::kMbarrier) continue;
        path.wait.timed_out = true;
        any = true;
      }
    }
  }
  return any;
}

void Cluster::ArriveAtClusterBarrier(Warp& warp, uint32_t mask) {
  if (warp.cluster_generation != barrier_generation) warp.cluster_arrived = 0;
  warp.cluster_generation = barrier_generation;
  if (const uint32_t again = warp.cluster_unwaited & mask; again != 0) {
    warp.Report(HazardKind::kBarrierMisuse, std::countr_zero(again),
                "a second barrier.cluster.arrive of the thread without a wait between");
  }
  barrier_arrived += static_cast<uint32_t>(std::popcount(mask & ~warp.cluster_arrived));
  warp.cluster_arrived |= mask;
  warp.cluster_unwaited |= mask;
  NoteChange();
  CheckClusterBarrier();
}

void Cluster::LeaveClusterBarrier(Warp& warp, uint32_t mask) {
  if (warp.cluster_generation != barrier_generation) return;
  barrier_arrived -= static_cast<uint32_t>(std::popcount(warp.cluster_arrived & mask));
  warp.cluster_arrived &= ~mask;
}

void Cluster::CheckClusterBarrier() {
  if (barrier_arrived == 0 || barrier_arrived < live_threads()) return;
  barrier_arrived = 0;
  ++barrier_generation;
  barrier_told = std::move(barrier_gathering);
  barrier_gathering.Clear();
  if (checks()) {
    barrier_met_told = barrier_met;
    for (const auto& cta : ctas_) cta->known_at_exit.Join(barrier_met);
  }
  Signal();
}

void Cluster::NoteExit(Cta& cta) {
  Signal();
  for (NamedBarrier& barrier : cta.named) {
    if (barrier.arrived == 0 || barrier.expected != 0 || barrier.arrived < cta.live_threads()) continue;
    barrier.Complete();
  }
  CheckClusterBarrier();
  if (cta.done() && !cta.exit_checked) CheckExit(cta);
}

void Cluster::CheckExit(Cta& cta) {
  cta.exit_checked = true;
  if (!checks()) return;
  for (const OpHandle& op : unreleased_) {
    if (op->state == AsyncOp::State::kReleased) continue;
    if (op->kind == AsyncKind::kBulkStore && op->reads_released) continue;
    const bool uses =
        std::any_of(op->shared.begin(), op->shared.end(), [&](const auto& use) { return use.cta == &cta; });
    if (!uses) continue;
    if (op->kind == AsyncKind::kBulkStore) {
      NotePolicy(Policy::kExitStore);
      if (machine().policies.exit_store == ExitStore::kKept) continue;
    }
    Hazard(HazardKind::kPendingAtExit, *op, Cat("nobody waited for this ", NameOf(op->kind), " before its CTA ended"));
  }
  const SourcePlace end = cta.warps[0]->Here(-1);
  for (const auto& [moment, place] : cta.visits) {
    if (cta.known_at_exit.Knows(moment)) continue;
    machine().hazards->Add(
        HazardKind::kRemoteLifetime, place,
        Cat("CTA rank ", cta.rank(), ", whose shared memory this uses, ended without waiting for it"));
  }
  for (const auto& [offset, place] : cta.barriers) {
    if (!place.slot || place.slot->state.bytes() == 0) continue;
    machine().hazards->Add(HazardKind::kBarrierUnbalanced, end,
                           Cat("the mbarrier at shared offset ", offset, " ends in phase ", place.slot->state.phase(),
                               " with ", place.slot->state.bytes(), " bytes outstanding"));
  }
  for (const auto& block : cta.allocator.live()) {
    machine().hazards->Add(HazardKind::kLeakedTensor, cta.warps[0]->Here(-1),
                           Cat(block.columns, " columns at ", block.column, " were never deallocated"));
  }
}

// ---- barriers ----

BarrierSlot* Cluster::FindBarrier(Cta& cta, uint32_t offset) {
  const auto known = cta.barriers.find(offset);
  return known == cta.barriers.end() ? nullptr : known->second.slot.get();
}

void Cluster::ReleaseTold(BarrierSlot& barrier, uint32_t parity) {
  told_.swap(barrier.told[parity & 1]);
  for (const OpHandle& op : told_) Release(op);
  told_.clear();
}

}  // namespace laneshift::emulator
