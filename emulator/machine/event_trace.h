// EventTrace: what the warps of a launch's first cluster did, in the order in which the emulator did it. Its time is
// counted in instructions of the cluster's warps, and is nobody's clock.
//
// Thread-safety: may be called from all host threads of a launch.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace laneshift::emulator {

struct EmulatedEvent {
  std::string kernel;
  uint32_t cta = 0, warp = 0;  // rank in the cluster; of an asynchronous operation, those that issued it
  bool asynchronous = false;   // an operation from its issue to its effect; otherwise a warp that runs
  uint64_t begin = 0, end = 0;
  std::string_view what{};  // the operation, or for what the warp waits at its end; empty: for nothing
};

class EventTrace {
 public:
  static constexpr size_t kMostEvents = 400000;

  void Add(EmulatedEvent event) {
    const std::lock_guard lock(mutex_);
    if (events_.size() < kMostEvents) events_.push_back(std::move(event));
  }
  std::vector<EmulatedEvent> Take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(events_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<EmulatedEvent> events_;
};

}  // namespace laneshift::emulator
