#include "tests/failing_threads.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <string_view>

namespace laneshift::tests {
namespace {

std::atomic<int> countdown{0};  // the thread that does not start; 0: none
std::atomic<bool> none_after{false};
std::atomic<bool> has_failed{false};

bool FailsNow() {
  if (has_failed && none_after) return true;
  if (countdown == 0 || --countdown != 0) return false;
  has_failed = true;
  return true;
}

void Note() {
  const char* file = getenv("LANESHIFT_FAILED_THREADS");
  if (file == nullptr) return;
  const int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || write(fd, "!", 1) != 1) abort();
  close(fd);
}

__attribute__((constructor)) void ReadEnvironment() {
  const char* text = getenv("LANESHIFT_FAILING_THREAD");
  if (text != nullptr) FailThread(atoi(text), std::string_view(text).ends_with('+'));
}

}  // namespace

void FailThread(int n, bool for_good) {
  has_failed = false;
  none_after = for_good;
  countdown = n;
}

bool StopFailingThreads() {
  countdown = 0;
  none_after = false;
  return has_failed.exchange(false);
}

}  // namespace laneshift::tests

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                              void* argument) {
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static auto* const create = reinterpret_cast<Create*>(dlsym(RTLD_NEXT, "pthread_create"));
  if (!laneshift::tests::FailsNow()) return create(thread, attributes, body, argument);
  laneshift::tests::Note();
  return EAGAIN;
}
