#include "base/file_size_signal.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <cerrno>

namespace laneshift::base {
namespace {

sigset_t FileSizeSignal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGXFSZ);
  return set;
}

bool FileSizeSignalPending() {
  sigset_t pending;
  return sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

}  // namespace

FileSizeSignalGuard::FileSizeSignalGuard() {
  const sigset_t set = FileSizeSignal();
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &set, &before);
  blocked_before_ = sigismember(&before, SIGXFSZ) == 1;
  // A signal can only have been waiting where it was blocked.
  if (blocked_before_) pending_before_ = FileSizeSignalPending();
}

FileSizeSignalGuard::~FileSizeSignalGuard() {
  const int error = errno;
  const sigset_t set = FileSizeSignal();
  if (!pending_before_ && FileSizeSignalPending()) {
    const timespec at_once = {};
    while (sigtimedwait(&set, nullptr, &at_once) < 0 && errno == EINTR) {
    }
  }
  if (!blocked_before_) pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  errno = error;
}

}  // namespace laneshift::base
