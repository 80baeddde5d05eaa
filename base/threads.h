// Threads that may not come: a host refuses one where a limit on processes or on memory is reached, and std::thread
// answers that with an exception.
//
// Thread-safety: a Thread belongs to one owner; RunOnThreads may be called from any thread.
#pragma once

#include <pthread.h>

#include <functional>
#include <optional>

#include "laneshift/result.h"

namespace laneshift::base {

class Thread {
 public:
  // kResourceExhausted: the host gives no thread.
  static Result<Thread> Start(std::function<void()> body);
  Thread(Thread&& other) noexcept;
  Thread& operator=(Thread&&) = delete;
  // Joins.
  ~Thread();

  // Detaches: the thread runs to its end or to the end of the process.
  void Detach();

 private:
  explicit Thread(pthread_t handle) : handle_(handle) {}
  std::optional<pthread_t> handle_;
};

// Calls `body` on this thread and, at the same time, on up to `count` - 1 others, as many as the host gives; returns
// when all calls have, with their number. So the work has to be shared out by the body, to whoever comes.
int RunOnThreads(int64_t count, const std::function<void()>& body);

}  // namespace laneshift::base
