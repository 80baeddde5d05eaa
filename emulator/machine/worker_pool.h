// WorkerPool: the host threads that run a device's launches, and what each of them keeps from one launch to the next.
//
// A launch of a small kernel takes less time than starting a thread or mapping a CTA's memories. Threads start when
// work needs them, as far as the host allows, and exit after a while without any.
// Thread-safety: one thread at a time calls Run and Forget. A process that was forked meanwhile has a pool without
// threads.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <vector>

#include "emulator/machine/host_thread.h"

namespace laneshift::emulator {

class WorkerPool {
 public:
  // One seat of the pool: the place for what its host thread keeps, null at first.
  using Seat = std::unique_ptr<HostThread>;

  WorkerPool();
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Calls `work` on this thread and, at the same time, on up to `count` - 1 others; returns when all calls have. So
  // `work` itself has to distribute the work over its callers. It must not throw.
  void Run(int64_t count, const std::function<void(Seat&)>& work);
  // Frees what the host threads keep.
  void Forget() { seats_.clear(); }

 private:
  struct State;
  static void Serve(const std::shared_ptr<State>& state);
  void Enlist(size_t members);

  std::shared_ptr<State> state_;
  pid_t process_;
  std::vector<Seat> seats_;
};

}  // namespace laneshift::emulator
