#include "tests/failing_threads.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "tests/failing_countdown.h"

namespace laneshift::tests {
namespace {

constinit FailingCountdown countdown;

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

void FailThread(int n, bool for_good) { countdown.Start(n, for_good); }

bool StopFailingThreads() { return countdown.Stop(); }

}  // namespace laneshift::tests

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                              void* argument) {
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static auto* const create = reinterpret_cast<Create*>(dlsym(RTLD_NEXT, "pthread_create"));
  if (!laneshift::tests::countdown.FailsNow()) return create(thread, attributes, body, argument);
  laneshift::tests::Note();
  return EAGAIN;
}
