// A cluster of CTAs: scheduling of their warps, barriers, and asynchronous operations.
//
// A cluster is run by one host thread at a time and shares nothing with other clusters but global memory. Warps run
// until they block or their quantum is used up. When an asynchronous operation takes effect is the completion policy's
// choice; what the ISA leaves open is exactly what the policy may choose. Thread-safety: one host thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/decode/decoded_kernel.h"
#include "emulator/hazards/access_shadow.h"
#include "emulator/hazards/global_order.h"
#include "emulator/hazards/report.h"
#include "emulator/machine/async_op.h"
#include "emulator/machine/barrier_slot.h"
#include "emulator/machine/cta_memory.h"
#include "emulator/machine/event_trace.h"
#include "emulator/machine/host_thread.h"
#include "emulator/machine/limits.h"
#include "emulator/machine/memory.h"
#include "emulator/machine/pending_ranges.h"
#include "emulator/machine/progress.h"
#include "emulator/machine/spin.h"
#include "emulator/machine/tensor_map_edits.h"
#include "emulator/machine/warp.h"
#include "emulator/units/fused_sum.h"
#include "emulator/units/mbarrier.h"
#include "emulator/units/tensor_memory.h"

namespace laneshift::emulator {

enum class Completion : uint8_t { kEager, kLate, kRandom };

// What all clusters of a launch share; immutable while they run, except for the log and global memory's bytes.
struct EmulatedMachine {
  GlobalMemory* memory = nullptr;
  GlobalOrder* order = nullptr;  // null without hazard checks
  HazardLog* hazards = nullptr;  // nullptr: do not check
  PrintLog* prints = nullptr;    // nullptr: what kernels print is dropped
  Completion completion = Completion::kEager;
  uint64_t seed = 0;
  SumArithmetic arithmetic = SumArithmetic::kHardware;
  LimitMeter* meter = nullptr;  // never null in a launch
  uint32_t multiprocessors = 1;
  bool has_tensor_memory = false;
  TensorMapEdits* map_edits = nullptr;
  Policies policies;
  bool has_long_rows = false;                           // of the 4-bit kinds of tcgen05.mma: K = 96
  bool accepts_cancellation = true;                     // clusterlaunchcontrol.try_cancel
  void (*progress)(const std::string& line) = nullptr;  // tells the user; nullptr: nobody wants to know
  EventTrace* trace = nullptr;                          // of the first cluster of each launch; nullptr: nobody looks
};

struct GridShape {
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  bool explicit_cluster = false;
  uint32_t dynamic_shared = 0;
};

uint32_t ClustersOf(const GridShape& shape);
// The index of the first CTA of a cluster of the grid.
std::array<uint32_t, 3> FirstCtaOf(const GridShape& shape, uint32_t cluster);

struct Launch {
  const EmulatedMachine* machine;
  const DecodedKernel* kernel;
  GridShape shape;
  std::vector<uint8_t> parameters;
  uint64_t serial = 0;  // of the launch, mixed into random choices
  // Of a kernel that may begin before the ones before it have ended: whether they have. Null: they have.
  const std::atomic<bool>* predecessors_ended = nullptr;
  bool has_dependent = false;  // the next kernel may begin once its clusters allow that
  uint32_t first_cluster = 1;  // as GlobalOrder counts
  uint32_t ended_before = 1;   // clusters of lower numbers are of kernels that ended before this one began
};
// Static and dynamic, per CTA.
uint32_t SharedBytesOf(const Launch& launch);

struct NamedBarrier {
  uint64_t generation = 0;
  uint32_t arrived = 0;
  uint32_t expected = 0;  // 0: all threads of the CTA
  // bar.red
  uint32_t votes = 0, result = 0;
  bool all = true, any = false, result_all = true, result_any = false;
  VectorClock gathering, told;  // from the threads that have arrived, to those that proceed

  void Complete();
};

// The four warps of a warpgroup that join at one instruction.
struct Rendezvous {
  uint32_t arrived = 0;
  uint64_t generation = 0;
  const Instruction* instruction = nullptr;
  OpHandle last;  // the latest wgmma: they take effect in order
};

// The two CTAs of a pair that join at one tcgen05 alloc, dealloc or relinquish_alloc_permit with cta_group::2.
struct TensorPair {
  enum class Operation : uint8_t { kAlloc, kDealloc, kRelinquish };
  struct Side {
    const Warp* warp = nullptr;  // nullptr: this CTA has not arrived yet
    Operation operation{};
    TensorAddress address;
    uint32_t columns = 0;
    bool operator==(const Side&) const = default;
  };
  std::array<Side, 2> sides;
  bool served = false;  // done for both; each CTA still has to leave
  TensorMemoryAllocator::Block block;
};

// How a strong access of a word orders memory.
struct WordOrder {
  bool reads, writes, acquires, releases;
  FenceScope reach;
};

class Cluster;

class Cta {
 public:
  Cta(Cluster& cluster, uint32_t rank, std::array<uint32_t, 3> index, std::unique_ptr<CtaMemory> memory,
      KeptWarps& kept);

  Cluster& cluster() { return cluster_; }
  uint32_t rank() const { return rank_; }
  const std::array<uint32_t, 3>& index() const { return index_; }
  SharedMemory& shared() { return memory_->shared; }
  // Reuse for the next CTA. REQUIRES: nothing runs in this one any more.
  std::unique_ptr<CtaMemory> TakeMemory() { return std::move(memory_); }
  TensorMemory& tensor();
  CtaState Units() { return {shared().Window(), &tensor()}; }
  uint32_t threads() const { return threads_; }
  uint32_t live_threads() const;
  bool done() const;
  std::vector<std::unique_ptr<Warp>> warps;
  // What has been an mbarrier there, and what the objects at one address have in common.
  struct BarrierPlace {
    BarrierRef slot;     // null: none at present
    uint16_t agent = 0;  // of all of them, with hazard checks
    uint32_t past = 0;   // phases of those that are gone
  };
  std::unordered_map<uint32_t, BarrierPlace> barriers;  // by offset
  std::array<NamedBarrier, 16> named;
  std::vector<Rendezvous> warpgroups;
  TensorMemoryAllocator allocator;
  // The last accesses of its memories; null without hazard checks.
  SharedShadow* shared_shadow = nullptr;
  TensorShadow& tensor_shadow();
  // The first agent of its warps.
  uint16_t first_agent() const { return static_cast<uint16_t>(rank_ * warps.size()); }
  // Accesses by warps of other CTAs that must be complete before it ends: the last one of each, with its PTX line.
  std::vector<std::pair<Epoch, SourcePlace>> visits;
  VectorClock known_at_exit;  // by any of its threads
  bool exit_checked = false;
  bool may_be_followed = false;  // griddepcontrol.launch_dependents
  // What the collector buffers of tcgen05.mma hold: A's, then b0 to b3.
  struct Collector {
    bool filled = false;
    uint64_t source = 0;  // descriptor, or Tensor Memory address
    uint64_t form = 0;    // shape and type of the operand
  };
  std::array<Collector, 5> collectors;
  bool saw_refused_cancellation = false;

 private:
  Cluster& cluster_;
  uint32_t rank_;
  std::array<uint32_t, 3> index_;
  uint32_t threads_;
  std::unique_ptr<CtaMemory> memory_;
  std::unique_ptr<TensorShadow> tensor_shadow_;
  MemoryCharge charge_;  // of its warps
};

class Cluster {
 public:
  // kStuck: all its warps wait or repeat their state, and nothing happened in the whole run.
  enum class Result : uint8_t { kDone, kYield, kStuck, kFault };
  // kLastResort: no other cluster can help either, so that waits end with "not yet" and lanes stop waiting for others.
  enum class Effort : uint8_t { kUsual, kLastResort };

  // Removes a cluster that has not started from the grid: the index of its first CTA.
  using Cancel = std::function<std::optional<std::array<uint32_t, 3>>()>;
  // `host` provides what its earlier clusters have left.
  Cluster(const Launch& launch, uint32_t linear_index, HostThread& host, Cancel cancel = {});
  // It has ended, and will not be run again: leaves to `host` what later clusters can reuse.
  void Leave(HostThread& host);
  ~Cluster();
  // Runs until the end, a fault, or until only other clusters can make progress.
  Result Run(HostThread& host, Effort effort);
  // A limit is exceeded, by this warp or meanwhile by others: makes that its fault, with the waits.
  Outcome EndAtLimit(Warp& warp, FaultKind which, int lane = -1);
  // It is stuck for good: makes that its fault, with the waits.
  void ReportLivelock();

  const Launch& launch() const { return launch_; }
  const EmulatedMachine& machine() const { return *launch_.machine; }
  bool checks() const { return machine().hazards != nullptr; }
  std::vector<std::unique_ptr<Cta>>& ctas() { return ctas_; }
  Cta* CtaOfRank(uint32_t rank) { return rank < ctas_.size() ? ctas_[rank].get() : nullptr; }
  const std::optional<Fault>& fault() const { return fault_; }
  void SetFault(Fault fault) {
    if (!fault_) fault_ = std::move(fault);
  }
  Counters& counters() { return counters_; }
  void NotePolicies(PolicySet used);
  void NotePolicy(Policy policy) { ++counters_.policies[static_cast<size_t>(policy)]; }
  // clusterlaunchcontrol: the first CTA of a cluster that will not start any more, or a refusal.
  std::optional<std::array<uint32_t, 3>> CancelOne();
  TensorPair& PairOf(const Cta& cta) { return pairs_[cta.rank() / 2]; }
  std::array<uint32_t, 3> cluster_index() const { return index_; }
  uint32_t linear_index() const { return linear_index_; }

  // An event that may unblock a path. Events are counted from 1.
  void Signal() { ++events_; }
  uint64_t events() const { return events_; }
  // A change that a running path may see: memory, a barrier, an asynchronous operation.
  void NoteChange() { ++changes_; }
  uint64_t news() const { return events_ + changes_; }
  // A read of global memory that may be a wait for another cluster. Then this one makes way after some rounds: a loop
  // that tells its CTA what it has read is not a repetition.
  void NotePoll() { polls_ = true; }
  // Records what a warp reads; nullptr unless a repetition is being searched.
  Spin* watch() const { return watch_; }
  // Host memory of operations and call stacks.
  MemoryLedger& ledger() { return ledger_; }
  // Instructions of its warps so far; counted where there is a trace.
  uint64_t Steps() const;
  // A clock for fences: strictly increasing.
  uint64_t Tick() { return ++clock_; }

  // ---- asynchronous operations ----
  OpHandle NewOperation() { return pools_.operations.Take(); }
  // Registers what the operation accesses, reports hazards with pending ones, and completes it if the policy is
  // eager. False after a fault.
  bool Issue(const OpHandle& op);
  // Completes the operation and everything that it must follow.
  bool Complete(const OpHandle& op);
  // A thread that may rely on it has observed its completion.
  void Release(const OpHandle& op);
  void ReleaseReads(const OpHandle& op);
  // The lanes of `mask` have waited for it individually: completes it, and lets them rely on it.
  bool Await(const OpHandle& op, Warp& warp, uint32_t mask);
  // The same for its reads of shared memory only.
  bool AwaitReads(const OpHandle& op, Warp& warp, uint32_t mask);
  const std::vector<OpHandle>& unreleased() const { return unreleased_; }
  // Reports an access of `range` of global memory that a pending store will write.
  bool PendingGlobal(uint64_t begin, uint64_t end, bool write) const {
    return pending_global_.Conflicts(begin, end, write);
  }
  // Exact, where the counts per KiB of SharedMemory are only a filter.
  bool PendingShared(Cta& cta, uint32_t begin, uint32_t end, bool write) const;
  bool has_pending_global() const { return !pending_global_.empty(); }

  // ---- barriers ----
  BarrierSlot* FindBarrier(Cta& cta, uint32_t offset);
  // The object at `offset`, new or old; a new one belongs to the agent that this address has.
  BarrierSlot& MakeBarrier(Cta& cta, uint32_t offset);
  void DropBarrier(Cta& cta, uint32_t offset);
  // A phase was waited for: releases what it covers.
  void ReleaseTold(BarrierSlot& barrier, uint32_t parity);

  // barrier.cluster
  uint64_t barrier_generation = 0;
  uint32_t barrier_arrived = 0;
  VectorClock barrier_gathering, barrier_told;
  VectorClock barrier_met;       // what came before it by execution only: enough to keep memory alive
  VectorClock barrier_met_told;  // of its last completed generation
  void ArriveAtClusterBarrier(Warp& warp, uint32_t mask);
  // Lanes of the warp exit: nobody waits for them, and their arrivals cover nobody else's.
  void LeaveClusterBarrier(Warp& warp, uint32_t mask);
  void CheckClusterBarrier();
  // A lane has just arrived in `phase`: reports lanes of its warp that do not keep step.
  void NoteLaneArrival(BarrierSlot& slot, Warp& warp, int lane, uint32_t phase);

  // ---- order (ordering.cc) ----
  // An ordinary access by `lane`: reports what it is not ordered after.
  void CheckOrder(Warp& warp, Cta& cta, uint32_t offset, uint32_t bytes, int lane, bool write, bool strong);
  // While `races` is not null, unordered stores of two threads to one word of shared memory are added to it instead of
  // being reported: it depends on the policy equal_stores and on what the caller is about to store. Otherwise
  // SettleStore does what is left to do about one.
  void DeferStoreRaces(std::vector<StoreRace>* races);
  void SettleStore(Warp& warp, const StoreRace& race, bool equal);
  // The same for weak accesses by all lanes of `mask`, one after the other.
  void CheckOrder(Warp& warp, Cta& cta, uint32_t mask, const std::array<uint64_t, kLanes>& offsets, uint32_t bytes,
                  bool write);
  // `lane` uses the memory of another CTA: it must have started, and must not end before.
  void Visit(Warp& warp, Cta& cta, int lane);
  // An ordinary access of `lane` to global memory, in one aligned block of at most 32 bytes (global_access.cc).
  void CheckGlobal(Warp& warp, int lane, const Allocation& allocation, uint64_t address, uint32_t bytes, bool write,
                   bool strong);
  // The same for weak accesses by all lanes of `mask`, one after the other.
  void CheckGlobal(Warp& warp, uint32_t mask, const Allocation& allocation,
                   const std::array<uint64_t, kLanes>& addresses, uint32_t bytes, bool write);
  // A strong access of `lane` to the word at `host`. `global`: clusters may synchronise by it.
  void SynchroniseAt(const uint8_t* host, bool global, Warp& warp, int lane, WordOrder order);
  uint32_t live_threads() const;
  void NoteExit(Cta& cta);

  // ---- griddepcontrol ----
  bool PredecessorsEnded() const {
    return launch_.predecessors_ended == nullptr || launch_.predecessors_ended->load(std::memory_order_acquire);
  }
  // Whether all its CTAs have let the next kernel begin.
  bool MayBeFollowed() const;
  // A CTA has just let the next kernel begin: whether that one goes first now. Then the cluster yields.
  bool MakesWay();

  // Of the thread that runs it now.
  HostThread& host() { return *host_; }

 private:
  enum class Repetition : uint8_t { kNone, kFound, kFault };
  bool RunRound(bool& ran);
  bool RunTraced(Warp& warp, size_t path, uint64_t quantum, uint64_t& executed);
  void TraceOperation(const AsyncOp& op);
  bool WaitsForGrids() const;
  void TellMeter();
  bool CompleteSomething();
  bool CompleteAtRandom();
  bool TimeOutWaiters();
  bool ReleaseParts();
  // livelock.cc
  Repetition AllRepeat();
  Repetition FindRepetition(Warp& warp, Spin& spin);
  std::string DescribeSpin(const Spin& spin) const;
  // progress.cc
  void BeginToWatch();
  void WatchProgress();
  void TellProgress();
  // deadlock.cc
  void ReportDeadlock();
  void DrawWaits(Fault& fault);
  std::string DescribeWait(Warp& warp, const Path& path);
  std::vector<Warp*> WhoCouldEnd(Warp& warp, const Path& path);
  std::vector<Warp*> Arrivers(Warp& warp, uint32_t barrier);
  void CheckExit(Cta& cta);
  bool FollowsInQueue(const AsyncOp& first, const AsyncOp& second, PolicySet& used) const;
  void FindPredecessors(AsyncOp& op);
  bool JoinChain(AsyncOp& op);
  bool FencedOnPath(const Epoch& moment, const Warp& user, int lane_of_user, ProxySpace space) const;
  // Whether a fence.proxy.async for `space` that `covers` accepts precedes what the lane does.
  template <typename Covers>
  bool AnyProxyFence(const Warp& user, int lane_of_user, ProxySpace space, Covers covers) const;
  // global_access.cc
  GlobalOrder::Directory* DirectoryOf(uint64_t address, uint64_t bytes, const Allocation* allocation = nullptr);
  // Calls body(directory, ranges) for each run of ranges in one allocation.
  template <typename Body>
  void ForEachDirectory(std::span<const GlobalRange> ranges, Body body);
  GlobalAccess AccessBy(const Warp& warp, int lane, int line) const;
  VectorClock FencedBefore(const Warp& warp, int lane) const;
  bool StoreIsFenced(const GlobalAccess& store, const Warp& user, int lane_of_user);
  void CheckGlobalUses(AsyncOp& op);
  void FinishGlobalUses(const AsyncOp& op);
  void ReportGlobal(const GlobalRival& rival, const SourcePlace& place, bool write, std::string_view what);
  std::string Describe(const GlobalRival& rival) const;
  void CheckIssue(AsyncOp& op);
  void CheckSharedUse(const AsyncOp& op, const AsyncOp::SharedUse& use);
  void CheckPendingShared(const AsyncOp& op, const AsyncOp::SharedUse& use);
  void CheckTensorUse(const AsyncOp& op, const AsyncOp::TensorUse& use);
  void CheckTensorOrder(const AsyncOp& op, const AsyncOp::TensorUse& use);
  void CheckSharedOrder(const AsyncOp& op, const AsyncOp::SharedUse& use);
  std::string Describe(const Rival& rival) const;
  void ReportRace(Warp& warp, int lane, bool write, const Rival& rival);
  bool Defer(int lane, bool write, const Rival& rival);
  void ReportRace(Warp& warp, int lane, bool write, const GlobalRival& rival);
  void NoteUses(const AsyncOp& op, bool reads, bool writes);
  void AddMoments(OpRecord& record, const Warp& warp, uint32_t mask);
  // Begins the record of an operation that is being issued.
  void MakeRecord(AsyncOp& op);
  uint16_t NewAgent();
  void Hazard(HazardKind kind, const AsyncOp& op, std::string message);
  void RemovePending(const AsyncOp& op);
  bool TakeEffect(const OpHandle& op);

  const Launch& launch_;
  ClusterPools pools_;       // outlive all that refers to operations
  EventTrace* const trace_;  // null: nobody looks
  uint64_t steps_ = 0, steps_of_running_ = 0;
  const Warp* running_ = nullptr;
  MemoryLedger ledger_;  // outlives what it counts
  Cancel cancel_;
  uint32_t linear_index_;
  std::array<uint32_t, 3> index_;
  std::vector<std::unique_ptr<Cta>> ctas_;
  std::optional<Fault> fault_;
  Counters counters_;
  HostThread* host_ = nullptr;
  uint64_t events_ = 1, changes_ = 0, clock_ = 1;
  uint64_t uncounted_ = 0;  // instructions not yet reported to the meter
  std::vector<StoreRace>* store_races_ = nullptr;
  std::vector<Warp*> round_;  // of RunRound; kept for its memory
  uint64_t live_operations_ = 0;
  uint64_t op_serial_ = 0;
  uint64_t timeouts_without_event_ = 0, last_timeout_event_ = 0;
  uint64_t releases_without_news_ = 0, last_release_news_ = 0;
  std::vector<Spin> spins_;  // found by AllRepeat
  std::optional<Progress> progress_;
  Spin* watch_ = nullptr;
  size_t next_warp_ = 0;
  bool makes_way_ = false;
  bool polls_ = false;            // since it began to run
  PendingRanges pending_global_;  // of operations that were not released yet
  OpHandle chain_;  // the end of a chain; null if another operation has come since, or its end is released
  std::vector<TensorPair> pairs_;
  size_t next_purge_ = 32;
  std::vector<OpHandle> told_;             // of ReleaseTold; kept for its memory
  std::vector<OpHandle> unreleased_;       // in issue order; released ones are dropped now and then
  std::vector<AsyncOp*> pending_;          // of these, what is not yet complete
  std::optional<std::mt19937_64> random_;  // of random completion: constructing one costs as much as a small CTA
  // The tcgen05 queues of single threads, by warp, lane and cta_group; their clocks count commits.
  std::map<std::array<int, 3>, std::pair<uint16_t, uint32_t>> queue_agents_;
  uint16_t next_agent_ = 0;
  // Words by which threads synchronise: what each CTA's threads have released there, for their own CTA and for all.
  struct Word {
    const Cta* cta;
    FenceScope reach;
    VectorClock clock;
  };
  std::map<const uint8_t*, std::vector<Word>> words_;
  uint32_t number_;  // its cluster number in GlobalOrder
  // The allocations that were accessed most recently.
  std::array<std::pair<const Allocation*, GlobalOrder::Directory*>, 8> directories_{};
  size_t next_directory_ = 0, last_directory_ = 0;
};

}  // namespace laneshift::emulator
