#include "runtime/background_tuner.h"

#include <utility>

#include "base/host_memory.h"
#include "base/log.h"

namespace laneshift::runtime {

BackgroundTuner::~BackgroundTuner() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    jobs_.clear();
  }
  changed_.notify_all();
  thread_.reset();
}

Status BackgroundTuner::Add(Job job) {
  const std::lock_guard lock(mutex_);
  if (!thread_) {
    LS_ASSIGN(base::Thread thread, base::Thread::Start([this] { Work(); }));
    thread_.emplace(std::move(thread));
  }
  jobs_.push_back(std::move(job));
  changed_.notify_all();
  return Ok();
}

void BackgroundTuner::Finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return jobs_.empty() && !busy_; });
}

void BackgroundTuner::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (stopping_) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    const Status done = base::WithinHostMemory([&] {
      job([this] { return stopping_.load(); });
      return Ok();
    });
    // Reporting takes memory, too, and a thread has no caller to report to.
    (void)base::WithinHostMemory([&] {
      if (!done) LS_LOG(kRuntime, warn, "measuring in the background ended: ", done.error().message);
      return Ok();
    });
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace laneshift::runtime
