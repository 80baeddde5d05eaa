#include "emulator/machine/grid.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "emulator/machine/out_of_memory.h"

namespace laneshift::emulator {
namespace {

// Whether the kernel requests the cancellation of clusters (CLC work stealing), and may succeed.
bool Cancels(const Launch& launch) { return launch.machine->accepts_cancellation && launch.kernel->cancels_clusters; }

// The clusters of grids: not yet started ones first, of the last grid that may begin, then those that spin on something
// other clusters must provide, or that wait for the grids before theirs.
//
// Clusters of a grid form chains: one starts when its predecessor in the chain has ended, unless that one has cancelled
// it. A kernel that cancels runs a quarter as many chains as clusters, any other one runs as many. Which cluster
// cancels which does so not depend on the number of host threads.
//
// Livelock: `news_` counts the runs in which a cluster made progress. A cluster that was stuck in a whole run begun
// after the last news sees nothing new until there are more. When all are, each is run once more as a last resort; when
// that brings no news either, the grid is stuck for good.
class Queue {
 public:
  explicit Queue(std::span<Launch> launches) {
    for (Launch& launch : launches) {
      launch.has_dependent = &launch != &launches.back();
      Grid& grid = grids_.emplace_back(launch, grids_.size());
      if (&launch != &launches.front()) launch.predecessors_ended = &grid.predecessors_ended;
    }
  }

  // A cluster that some host thread runs next, and how.
  struct TimeSlice {
    std::unique_ptr<Cluster> cluster;  // nullptr: no work is left
    size_t grid = 0;
    Cluster::Effort effort = Cluster::Effort::kUsual;
    uint64_t begun_at = 0;  // news_
  };
  TimeSlice Take(std::span<HostThread* const> hosts) {
    std::unique_lock lock(mutex_);
    // A stuck cluster is worth a run only when a running one may have changed something.
    changed_.wait(lock, [this] {
      return faulted_ || Startable() != nullptr || running_ == 0 || (!waiting_.empty() && !AllStuck());
    });
    if (faulted_) return {};
    if (Grid* const grid = Startable(); grid != nullptr) {
      const size_t number = grid->number;
      const uint64_t index = grid->next < grid->chains ? grid->next++ : grid->successors.front();
      if (index >= grid->chains) grid->successors.pop_front();
      ++running_;
      const uint64_t begun_at = news_;
      lock.unlock();
      return {std::make_unique<Cluster>(grid->launch, static_cast<uint32_t>(index), *hosts[number],
                                        CancelOf(*grid, index % grid->chains)),
              number, Cluster::Effort::kUsual, begun_at};
    }
    if (waiting_.empty()) return {};
    auto next = waiting_.begin();
    auto effort = Cluster::Effort::kUsual;
    if (AllStuck()) {
      next = std::find_if(waiting_.begin(), waiting_.end(), [this](const Waiting& w) { return w.tried_at != news_; });
      if (next == waiting_.end()) return ReportLivelock(), TimeSlice{};
      effort = Cluster::Effort::kLastResort;
    }
    TimeSlice slice{std::move(next->cluster), next->grid, effort, news_};
    waiting_.erase(next);
    ++running_;
    return slice;
  }

  // The cluster has something to wait for.
  void Return(TimeSlice slice, bool stuck) {
    const std::lock_guard lock(mutex_);
    --running_;
    if (!stuck) ++news_;
    const bool last_resort = slice.effort == Cluster::Effort::kLastResort;
    if (slice.cluster->MayBeFollowed()) NoteFollowed(grids_[slice.grid], slice.cluster->linear_index());
    waiting_.push_back({std::move(slice.cluster), slice.grid, stuck ? slice.begun_at : kNever,
                        stuck && last_resort ? slice.begun_at : kNever});
    changed_.notify_all();
  }

  void Finish(TimeSlice& slice) {
    Cluster& cluster = *slice.cluster;
    Grid& grid = grids_[slice.grid];
    Counters counters = cluster.counters();
    const std::lock_guard lock(mutex_);
    for (const auto& cta : cluster.ctas()) {
      for (const auto& warp : cta->warps) {
        counters.warp_instructions += warp->instructions();
        counters.thread_instructions += warp->thread_instructions();
        for (size_t o = 0; o < grid.opcodes.size(); ++o) grid.opcodes[o] += warp->opcode_counts()[o];
      }
    }
    --running_;
    ++news_;
    grid.result.counters.Add(counters);
    if (cluster.fault()) SetFault(grid, *cluster.fault());
    if (const auto next = NextOf(grid, cluster.linear_index() % grid.chains)) grid.successors.push_back(*next);
    NoteFollowed(grid, cluster.linear_index());
    NoteEnded(grid);
    changed_.notify_all();
  }

  // The host has no more memory for a thread's next step.
  void GiveUp() {
    const std::lock_guard lock(mutex_);
    Grid& grid = grids_.front();
    grid.launch.machine->meter->Trip(FaultKind::kMemoryLimit);
    Fault fault;
    fault.kind = FaultKind::kMemoryLimit;
    fault.place.kernel = grid.launch.kernel->name;
    fault.message = "the host gave no more memory, though the limit host_memory was not exceeded";
    SetFault(grid, std::move(fault));
    changed_.notify_all();
  }

  std::vector<GridResult> Results() {
    std::vector<GridResult> results;
    for (Grid& grid : grids_) {
      NameOpcodes(grid);
      results.push_back(std::move(grid.result));
    }
    return results;
  }

 private:
  struct Grid {
    Grid(const Launch& of, size_t at)
        : launch(of),
          number(at),
          clusters(ClustersOf(of.shape)),
          chains(Cancels(of) ? (clusters + 3) / 4 : clusters),
          unfinished(clusters),
          unfollowed(clusters),
          followed(of.has_dependent ? clusters : 0),
          opcodes(of.kernel->opcodes.size()) {}

    const Launch& launch;
    size_t number;
    uint64_t clusters, chains, next = 0;
    std::unordered_map<uint64_t, uint64_t> next_of_chain;  // of chains that have advanced at least once
    std::deque<uint64_t> successors;                       // clusters whose predecessors have ended
    uint64_t unfinished, unfollowed;  // clusters that have not ended, and that do not let the next grid begin
    std::vector<bool> followed;
    std::vector<uint64_t> opcodes;  // warp instructions, by opcode of the kernel
    std::atomic<bool> predecessors_ended{false};
    GridResult result;
  };

  // REQUIRES of all these: mutex_ is held.
  std::optional<uint64_t> NextOf(Grid& grid, uint64_t chain) {
    if (grid.chains == grid.clusters) return std::nullopt;
    uint64_t& next = grid.next_of_chain.try_emplace(chain, chain + grid.chains).first->second;
    if (next >= grid.clusters) return std::nullopt;
    return std::exchange(next, next + grid.chains);
  }
  Cluster::Cancel CancelOf(Grid& grid, uint64_t chain) {
    if (grid.chains == grid.clusters) return {};
    return [this, &grid, chain]() -> std::optional<std::array<uint32_t, 3>> {
      const std::lock_guard lock(mutex_);
      const auto cluster = NextOf(grid, chain);
      if (!cluster) return std::nullopt;
      NoteFollowed(grid, *cluster);
      NoteEnded(grid);
      return FirstCtaOf(grid.launch.shape, static_cast<uint32_t>(*cluster));
    };
  }
  void NoteFollowed(Grid& grid, uint64_t cluster) {
    if (grid.followed.empty() || grid.followed[cluster]) return;
    grid.followed[cluster] = true;
    --grid.unfollowed;
  }
  // One more of its clusters will not run any more.
  void NoteEnded(Grid& grid) {
    --grid.unfinished;
    for (Grid& other : grids_) {
      other.predecessors_ended.store(true, std::memory_order_release);
      if (other.unfinished != 0) return;
    }
  }
  // Once for a grid: a map of names is slow.
  static void NameOpcodes(Grid& grid) {
    const DecodedKernel& kernel = *grid.launch.kernel;
    Counters& counters = grid.result.counters;
    for (size_t o = 0; o < grid.opcodes.size(); ++o) {
      if (grid.opcodes[o] == 0) continue;
      counters.opcodes[kernel.opcodes[o]] += grid.opcodes[o];
      const uint32_t row = kernel.opcode_rows[o];
      if (counters.rows.size() <= row) counters.rows.resize(row + 1);
      counters.rows[row] += grid.opcodes[o];
    }
  }
  void SetFault(Grid& grid, Fault fault) {
    if (!std::exchange(faulted_, true)) grid.result.fault = std::move(fault);
  }

  static constexpr uint64_t kNever = ~uint64_t{0};
  struct Waiting {
    std::unique_ptr<Cluster> cluster;
    size_t grid;
    uint64_t stuck_at, tried_at;  // the news when it began a run in which it was stuck; and one as a last resort
  };

  // The last grid that has a cluster to start and may begin; nullptr if there is none.
  Grid* Startable() {
    Grid* found = nullptr;
    for (Grid& grid : grids_) {
      if (grid.next < grid.chains || !grid.successors.empty()) found = &grid;
      const bool late = grid.launch.machine->completion == Completion::kLate;
      if ((late ? grid.unfinished : grid.unfollowed) != 0) break;
    }
    return found;
  }
  bool AllStuck() const {
    return !waiting_.empty() &&
           std::all_of(waiting_.begin(), waiting_.end(), [this](const Waiting& w) { return w.stuck_at == news_; });
  }
  void ReportLivelock() {
    const auto first = std::min_element(waiting_.begin(), waiting_.end(), [](const Waiting& a, const Waiting& b) {
      return a.cluster->linear_index() < b.cluster->linear_index();
    });
    first->cluster->ReportLivelock();
    if (first->cluster->fault()) SetFault(grids_[first->grid], *first->cluster->fault());
    changed_.notify_all();
  }

  std::deque<Grid> grids_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  int running_ = 0;
  uint64_t news_ = 0;
  bool faulted_ = false;
};

void RunClusters(Queue& queue, std::span<HostThread* const> hosts) {
  while (true) {
    Queue::TimeSlice slice = queue.Take(hosts);
    if (slice.cluster == nullptr) return;
    HostThread& host = *hosts[slice.grid];
    const Cluster::Result result = slice.cluster->Run(host, slice.effort);
    if (result == Cluster::Result::kYield || result == Cluster::Result::kStuck) {
      queue.Return(std::move(slice), result == Cluster::Result::kStuck);
    } else {
      queue.Finish(slice);
      slice.cluster->Leave(host);
    }
  }
}

}  // namespace

std::vector<GridResult> RunGrids(std::span<Launch> launches, WorkerPool& crew, int host_threads) {
  int64_t clusters = 0;
  for (const Launch& launch : launches) clusters += ClustersOf(launch.shape);
  Queue queue(launches);
  const bool checks = launches.front().machine->hazards != nullptr;
  crew.Run(std::min(clusters, int64_t{host_threads}), [&](WorkerPool::Seat& seat) {
    const auto work = [&] {
      if (seat == nullptr) seat = std::make_unique<HostThread>();
      // The first grid's is kept for the next launch; concurrent kernels differ in what they need.
      std::vector<HostThread> others(launches.size() - 1);
      std::vector<HostThread*> hosts = {seat.get()};
      for (HostThread& other : others) hosts.push_back(&other);
      for (size_t i = 0; i < hosts.size(); ++i) hosts[i]->Prepare(SharedBytesOf(launches[i]), checks);
      RunClusters(queue, hosts);
    };
    if (!RunWithinMemory(work)) queue.GiveUp();
  });
  return queue.Results();
}

}  // namespace laneshift::emulator
