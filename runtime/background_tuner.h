// BackgroundTuner: works through problems one after another on a separate thread, which starts with the first of them.
//
// Thread-safety: all members except the destructor may be called from any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>

#include "base/threads.h"

namespace laneshift::runtime {

class BackgroundTuner {
 public:
  // A job should end soon after it is asked to stop.
  using Job = std::function<void(const std::function<bool()>& stop)>;

  BackgroundTuner() = default;
  BackgroundTuner(const BackgroundTuner&) = delete;
  BackgroundTuner& operator=(const BackgroundTuner&) = delete;
  // Stops the current job and drops the others.
  ~BackgroundTuner();

  // kResourceExhausted: the host cannot start a thread; the job is dropped.
  Status Add(Job job);
  // Waits until no job is left.
  void Finish();

 private:
  void Work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;  // guarded by mutex_, as is `busy_`
  bool busy_ = false;
  std::atomic<bool> stopping_ = false;
  std::optional<base::Thread> thread_;
};

}  // namespace laneshift::runtime
