#include "emulator/grid.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <thread>

namespace laneshift::emulator {
namespace {

// The clusters of a grid: not yet started ones first, then those that spin on something other clusters must bring.
class Queue {
 public:
  Queue(const Launch& launch, uint64_t clusters) : launch_(launch), clusters_(clusters) {}

  std::unique_ptr<Cluster> Take() {
    uint64_t index;
    {
      const std::lock_guard lock(mutex_);
      if (fault_) return nullptr;
      if (next_ == clusters_) {
        if (yielded_.empty()) return nullptr;
        auto cluster = std::move(yielded_.front());
        yielded_.pop_front();
        return cluster;
      }
      index = next_++;
    }
    return std::make_unique<Cluster>(launch_, static_cast<uint32_t>(index));
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
  }

  GridResult Result() { return {fault_, counters_}; }

 private:
  const Launch& launch_;
  uint64_t clusters_, next_ = 0;
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
