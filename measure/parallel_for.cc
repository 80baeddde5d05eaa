#include "measure/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace laneshift::measure {

void ParallelFor(int64_t count, const std::function<void(int64_t)>& body) {
  std::atomic<int64_t> next = 0;
  const auto work = [&] {
    for (int64_t i = next++; i < count; i = next++) body(i);
  };
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> threads;
  for (int64_t i = 1; i < std::min(cores, count); ++i) threads.emplace_back(work);
  work();
}

}  // namespace laneshift::measure
