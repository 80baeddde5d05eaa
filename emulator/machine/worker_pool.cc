#include "emulator/machine/worker_pool.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/threads.h"
#include "emulator/machine/out_of_memory.h"

namespace laneshift::emulator {
namespace {

// An idle member ends after this time: who unloads the library soon after its last launch finds no
// thread in its code.
constexpr auto kPatienceOfMembers = std::chrono::milliseconds(200);

}  // namespace

// What members share with Run; it lives as long as any of them.
struct WorkerPool::State {
  std::mutex mutex;
  std::condition_variable called, left;
  const std::function<void(size_t)>* work = nullptr;  // of the running call, by seat
  size_t free_seats = 0;                              // 1 to free_seats are not taken yet
  size_t members = 0, working = 0;
  bool closing = false;
};

WorkerPool::WorkerPool() : state_(std::make_shared<State>()), process_(getpid()) {}

WorkerPool::~WorkerPool() {
  const std::lock_guard lock(state_->mutex);
  state_->closing = true;
  state_->called.notify_all();
}

void WorkerPool::Serve(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  while (state->called.wait_for(lock, kPatienceOfMembers, [&] { return state->closing || state->free_seats != 0; })) {
    if (state->closing) break;
    const size_t seat = state->free_seats--;
    ++state->working;
    lock.unlock();
    (*state->work)(seat);
    lock.lock();
    if (--state->working == 0) state->left.notify_one();
  }
  --state->members;
}

void WorkerPool::Enlist(size_t members) {
  std::unique_lock lock(state_->mutex);
  while (state_->members < members) {
    ++state_->members;  // it may end before Start returns
    lock.unlock();
    bool started = false;
    (void)RunWithinMemory([&] {
      auto thread = base::Thread::Start([state = state_] { Serve(state); });
      started = thread.has_value();
      if (started) thread->Detach();
    });
    lock.lock();
    if (started) continue;
    --state_->members;
    return;
  }
}

void WorkerPool::Run(int64_t count, const std::function<void(Seat&)>& work) {
  const auto seats = static_cast<size_t>(std::max<int64_t>(count, 1));
  if (seats_.size() < seats) seats_.resize(seats);
  const std::function<void(size_t)> at_seat = [&](size_t seat) { work(seats_[seat]); };
  if (process_ != getpid()) {
    // The members exist in the parent only. Nobody may touch the state that they hold.
    state_ = std::make_shared<State>();
    process_ = getpid();
  }
  if (seats > 1) {
    // Before members are counted: one that times out in between finds a seat, and continues.
    {
      const std::lock_guard lock(state_->mutex);
      state_->work = &at_seat;
      state_->free_seats = seats - 1;
      state_->called.notify_all();
    }
    Enlist(seats - 1);
  }
  at_seat(0);
  if (seats == 1) return;
  // Members that have not joined by now are not needed any more.
  std::unique_lock lock(state_->mutex);
  state_->free_seats = 0;
  state_->left.wait(lock, [&] { return state_->working == 0; });
  state_->work = nullptr;
}

}  // namespace laneshift::emulator
