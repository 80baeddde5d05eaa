#include "measure/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/threads.h"

namespace laneshift::measure {

void ParallelFor(int64_t count, const std::function<void(int64_t)>& body) {
  std::atomic<int64_t> next = 0;
  const auto work = [&] {
    for (int64_t i = next++; i < count; i = next++) body(i);
  };
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  base::RunOnThreads(std::min(cores, count), work);
}

}  // namespace laneshift::measure
