#include "emulator/grid.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "emulator/host_memory.h"

namespace laneshift::emulator {
namespace {

// Whether the kernel asks for the cancellation of clusters, and is granted it.
bool Cancels(const Launch& launch) { return launch.machine->grants_cancellation && launch.kernel->cancels_clusters; }

// The clusters of a grid: not yet started ones first, then those that spin on something other clusters must bring.
//
// Clusters form chains: one starts when its predecessor in the chain has ended, unless that one has cancelled it. A
// kernel that cancels runs in a quarter as many chains as clusters, any other one in as many. Which cluster cancels
// which does so not depend on the number of host threads.
//
// Livelock: `news_` counts the runs in which a cluster did anything. A cluster that was stuck in a whole run begun
// after the last news sees nothing new until there are more. When all are, each is run once more as a last resort; when
// that brings no news either, none ever will.
class Queue {
 public:
  Queue(const Launch& launch, uint64_t clusters)
      : launch_(launch), clusters_(clusters), chains_(Cancels(launch) ? (clusters + 3) / 4 : clusters) {}

  // A cluster that some host thread runs next, and how.
  struct Turn {
    std::unique_ptr<Cluster> cluster;  // nullptr: there is nothing left to do
    Cluster::Effort effort = Cluster::Effort::kUsual;
    uint64_t begun_at = 0;  // news_
  };
  Turn Take(HostThread& host) {
    std::unique_lock lock(mutex_);
    // A stuck cluster is worth a turn only when a running one may have changed something.
    changed_.wait(lock,
                  [this] { return fault_ || Startable() || running_ == 0 || (!waiting_.empty() && !AllStuck()); });
    if (fault_) return {};
    if (Startable()) {
      const uint64_t index = next_ < chains_ ? next_++ : successors_.front();
      if (index >= chains_) successors_.pop_front();
      ++running_;
      const uint64_t begun_at = news_;
      lock.unlock();
      return {std::make_unique<Cluster>(launch_, static_cast<uint32_t>(index), host, CancelOf(index % chains_)),
              Cluster::Effort::kUsual, begun_at};
    }
    if (waiting_.empty()) return {};
    auto next = waiting_.begin();
    auto effort = Cluster::Effort::kUsual;
    if (AllStuck()) {
      next = std::find_if(waiting_.begin(), waiting_.end(), [this](const Waiting& w) { return w.tried_at != news_; });
      if (next == waiting_.end()) return ReportLivelock(), Turn{};
      effort = Cluster::Effort::kLastResort;
    }
    Turn turn{std::move(next->cluster), effort, news_};
    waiting_.erase(next);
    ++running_;
    return turn;
  }

  // The cluster has something to wait for.
  void Return(Turn turn, bool stuck) {
    const std::lock_guard lock(mutex_);
    --running_;
    if (!stuck) ++news_;
    const bool last_resort = turn.effort == Cluster::Effort::kLastResort;
    waiting_.push_back(
        {std::move(turn.cluster), stuck ? turn.begun_at : kNever, stuck && last_resort ? turn.begun_at : kNever});
    changed_.notify_all();
  }

  void Finish(Cluster& cluster) {
    Counters counters = cluster.counters();
    std::vector<uint64_t> opcodes(launch_.kernel->opcodes.size());
    for (const auto& cta : cluster.ctas()) {
      for (const auto& warp : cta->warps) {
        counters.warp_instructions += warp->instructions();
        counters.thread_instructions += warp->thread_instructions();
        for (size_t o = 0; o < opcodes.size(); ++o) opcodes[o] += warp->opcode_counts()[o];
      }
    }
    for (size_t o = 0; o < opcodes.size(); ++o) {
      if (opcodes[o] == 0) continue;
      counters.opcodes[launch_.kernel->opcodes[o]] += opcodes[o];
      const uint32_t row = launch_.kernel->opcode_rows[o];
      if (counters.rows.size() <= row) counters.rows.resize(row + 1);
      counters.rows[row] += opcodes[o];
    }
    const std::lock_guard lock(mutex_);
    --running_;
    ++news_;
    counters_.Add(counters);
    if (cluster.fault() && !fault_) fault_ = cluster.fault();
    if (const auto next = NextOf(cluster.linear_index() % chains_)) successors_.push_back(*next);
    changed_.notify_all();
  }

  // The host has no more memory for what a thread was about to do.
  void GiveUp() {
    launch_.machine->meter->Trip(FaultKind::kMemoryLimit);
    const std::lock_guard lock(mutex_);
    if (!fault_) {
      fault_.emplace();
      fault_->kind = FaultKind::kMemoryLimit;
      fault_->place.kernel = launch_.kernel->name;
      fault_->message = "the host gave no more memory, though the limit host_memory was not exceeded";
    }
    changed_.notify_all();
  }

  GridResult Result() { return {fault_, counters_}; }

 private:
  // REQUIRES: mutex_ is held.
  std::optional<uint64_t> NextOf(uint64_t chain) {
    if (chains_ == clusters_) return std::nullopt;
    uint64_t& next = next_of_chain_.try_emplace(chain, chain + chains_).first->second;
    if (next >= clusters_) return std::nullopt;
    return std::exchange(next, next + chains_);
  }
  Cluster::Cancel CancelOf(uint64_t chain) {
    if (chains_ == clusters_) return {};
    return [this, chain]() -> std::optional<std::array<uint32_t, 3>> {
      const std::lock_guard lock(mutex_);
      const auto cluster = NextOf(chain);
      if (!cluster) return std::nullopt;
      return FirstCtaOf(launch_.shape, static_cast<uint32_t>(*cluster));
    };
  }

  static constexpr uint64_t kNever = ~uint64_t{0};
  struct Waiting {
    std::unique_ptr<Cluster> cluster;
    uint64_t stuck_at, tried_at;  // the news when it began a run in which it was stuck; and one as a last resort
  };

  // REQUIRES of these: mutex_ is held.
  bool Startable() const { return next_ < chains_ || !successors_.empty(); }
  bool AllStuck() const {
    return !waiting_.empty() &&
           std::all_of(waiting_.begin(), waiting_.end(), [this](const Waiting& w) { return w.stuck_at == news_; });
  }
  void ReportLivelock() {
    const auto first = std::min_element(waiting_.begin(), waiting_.end(), [](const Waiting& a, const Waiting& b) {
      return a.cluster->linear_index() < b.cluster->linear_index();
    });
    first->cluster->ReportLivelock();
    fault_ = first->cluster->fault();
    changed_.notify_all();
  }

  const Launch& launch_;
  uint64_t clusters_, chains_, next_ = 0;
  std::unordered_map<uint64_t, uint64_t> next_of_chain_;  // of chains that have gone on at least once
  std::deque<uint64_t> successors_;                       // clusters whose predecessors have ended
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  int running_ = 0;
  uint64_t news_ = 0;
  std::optional<Fault> fault_;
  Counters counters_;
};

void RunClusters(Queue& queue, HostThread& host) {
  while (true) {
    Queue::Turn turn = queue.Take(host);
    if (turn.cluster == nullptr) return;
    const Cluster::Result result = turn.cluster->Run(host, turn.effort);
    if (result == Cluster::Result::kYield || result == Cluster::Result::kStuck) {
      queue.Return(std::move(turn), result == Cluster::Result::kStuck);
    } else {
      queue.Finish(*turn.cluster);
      turn.cluster->Leave(host);
    }
  }
}

}  // namespace

GridResult RunGrid(const Launch& launch, Crew& crew, int host_threads) {
  const LaunchShape& shape = launch.shape;
  uint64_t clusters = 1;
  for (size_t d = 0; d < 3; ++d) clusters *= shape.grid[d] / shape.cluster[d];
  Queue queue(launch, clusters);
  crew.Run(std::min(static_cast<int64_t>(clusters), int64_t{host_threads}), [&](Crew::Seat& seat) {
    const auto work = [&] {
      if (seat == nullptr) seat = std::make_unique<HostThread>();
      seat->Prepare(SharedBytesOf(launch), launch.machine->hazards != nullptr);
      RunClusters(queue, *seat);
    };
    if (!RunWithinMemory(work)) queue.GiveUp();
  });
  return queue.Result();
}

}  // namespace laneshift::emulator
