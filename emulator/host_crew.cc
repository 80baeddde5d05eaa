#include "emulator/host_crew.h"

#include <pthread.h>

#include <new>
#include <vector>

namespace laneshift::emulator {
namespace {

void* RunWork(void* work) {
  (*static_cast<const std::function<void()>*>(work))();
  return nullptr;
}

}  // namespace

int RunOnCrew(int threads, const std::function<void()>& work) {
  // Not std::thread, which throws where none can be started.
  std::vector<pthread_t> crew;
  crew.reserve(static_cast<size_t>(threads > 1 ? threads - 1 : 0));
  for (int t = 1; t < threads; ++t) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, RunWork, const_cast<std::function<void()>*>(&work)) != 0) break;
    crew.push_back(thread);
  }
  work();
  for (const pthread_t thread : crew) pthread_join(thread, nullptr);
  return static_cast<int>(crew.size()) + 1;
}

bool RunWithinMemory(const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const std::bad_alloc&) {
    // The limit on host memory is there to prevent this; a host with less than was thought gets here.
    return false;
  }
}

}  // namespace laneshift::emulator
