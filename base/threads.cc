#include "base/threads.h"

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/text.h"

namespace laneshift::base {
namespace {

void* Enter(void* body) {
  const std::unique_ptr<std::function<void()>> owned(static_cast<std::function<void()>*>(body));
  (*owned)();
  return nullptr;
}

}  // namespace

Result<Thread> Thread::Start(std::function<void()> body) {
  auto owned = std::make_unique<std::function<void()>>(std::move(body));
  pthread_t handle;
  if (const int failure = pthread_create(&handle, nullptr, Enter, owned.get()); failure != 0) {
    return MakeError(ErrorCode::kResourceExhausted, Cat("no thread could be started: ", std::strerror(failure)));
  }
  (void)owned.release();  // Enter deletes it
  return Thread(handle);
}

Thread::Thread(Thread&& other) noexcept : handle_(std::exchange(other.handle_, std::nullopt)) {}

Thread::~Thread() {
  if (handle_) pthread_join(*handle_, nullptr);
}

void Thread::Detach() {
  if (handle_) pthread_detach(*std::exchange(handle_, std::nullopt));
}

int RunOnThreads(int64_t count, const std::function<void()>& body) {
  std::vector<Thread> others;
  for (int64_t i = 1; i < count; ++i) {
    auto thread = Thread::Start(body);
    if (!thread) break;
    others.push_back(std::move(*thread));
  }
  body();
  return static_cast<int>(others.size()) + 1;
}

}  // namespace laneshift::base
