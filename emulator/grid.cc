#include "emulator/grid.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace laneshift::emulator {
namespace {

// Whether the kernel asks for the cancellation of clusters, and is granted it.
bool Cancels(const Launch& launch) {
  const std::vector<std::string>& opcodes = launch.kernel->opcodes;
  return launch.machine->grants_cancellation && std::any_of(opcodes.begin(), opcodes.end(), [](const auto& opcode) {
           return opcode.starts_with("clusterlaunchcontrol.try_cancel");
         });
}

// The clusters of a grid: not yet started ones first, then those that spin on something other clusters must bring.
//
// Clusters form chains: one starts when its predecessor in the chain has ended, unless that one has cancelled it. A
// kernel that cancels runs in a quarter as many chains as clusters, any other one in as many. Which cluster cancels
// which does so not depend on the number of host threads.
class Queue {
 public:
  Queue(const Launch& launch, uint64_t clusters)
      : launch_(launch), clusters_(clusters), chains_(Cancels(launch) ? (clusters + 3) / 4 : clusters) {
    if (chains_ < clusters_) next_of_chain_.resize(chains_);
    for (uint64_t c = 0; c < next_of_chain_.size(); ++c) next_of_chain_[c] = c + chains_;
  }

  std::unique_ptr<Cluster> Take() {
    uint64_t index;
    {
      const std::lock_guard lock(mutex_);
      if (fault_) return nullptr;
      if (next_ < chains_) {
        index = next_++;
      } else if (!successors_.empty()) {
        index = successors_.front();
        successors_.pop_front();
      } else {
        if (yielded_.empty()) return nullptr;
        auto cluster = std::move(yielded_.front());
        yielded_.pop_front();
        return cluster;
      }
    }
    return std::make_unique<Cluster>(launch_, static_cast<uint32_t>(index), CancelOf(index % chains_));
  }

  void Return(std::unique_ptr<Cluster> cluster) {
    const std::lock_guard lock(mutex_);
    yielded_.push_back(std::move(cluster));
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
    counters_.Add(counters);
    if (cluster.fault() && !fault_) fault_ = cluster.fault();
    if (const auto next = NextOf(cluster.linear_index() % chains_)) successors_.push_back(*next);
  }

  GridResult Result() { return {fault_, counters_}; }

 private:
  // REQUIRES: mutex_ is held, or the caller is the chain's running cluster.
  std::optional<uint64_t> NextOf(uint64_t chain) {
    if (next_of_chain_.empty() || next_of_chain_[chain] >= clusters_) return std::nullopt;
    return std::exchange(next_of_chain_[chain], next_of_chain_[chain] + chains_);
  }
  Cluster::Cancel CancelOf(uint64_t chain) {
    if (next_of_chain_.empty()) return {};
    return [this, chain]() -> std::optional<std::array<uint32_t, 3>> {
      const auto cluster = NextOf(chain);
      if (!cluster) return std::nullopt;
      return FirstCtaOf(launch_.shape, static_cast<uint32_t>(*cluster));
    };
  }

  const Launch& launch_;
  uint64_t clusters_, chains_, next_ = 0;
  std::vector<uint64_t> next_of_chain_;  // empty: nothing can be cancelled
  std::deque<uint64_t> successors_;      // clusters whose predecessors have ended
  std::mutex mutex_;
  std::deque<std::unique_ptr<Cluster>> yielded_;
  std::optional<Fault> fault_;
  Counters counters_;
};

void Work(Queue& queue) {
  while (auto cluster = queue.Take()) {
    if (cluster->Run() == Cluster::Result::kYield) {
      queue.Return(std::move(cluster));
    } else {
      queue.Finish(*cluster);
    }
  }
}

}  // namespace

GridResult RunGrid(const Launch& launch, int host_threads) {
  const LaunchShape& shape = launch.shape;
  uint64_t clusters = 1;
  for (size_t d = 0; d < 3; ++d) clusters *= shape.grid[d] / shape.cluster[d];
  Queue queue(launch, clusters);
  const auto count = static_cast<int>(std::min<uint64_t>(clusters, static_cast<uint64_t>(std::max(1, host_threads))));
  std::vector<std::thread> threads;
  for (int t = 1; t < count; ++t) threads.emplace_back([&] { Work(queue); });
  Work(queue);
  for (std::thread& thread : threads) thread.join();
  return queue.Result();
}

}  // namespace laneshift::emulator
