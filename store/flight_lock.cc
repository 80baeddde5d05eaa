#include "store/flight_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "base/fingerprint.h"
#include "base/text.h"
#include "store/file_trust.h"

namespace laneshift::store {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kFirstPause{1}, kLongestPause{20};

// Locks of an open file description: unlike those of a process, they exclude threads too.
int TryLock(int fd, off_t place) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = place;
  lock.l_len = 1;
  return fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : errno;
}

off_t PlaceOf(std::string_view key) {
  const base::Fingerprint print = base::Fingerprinter().Text("flight", key).Finish();
  return static_cast<off_t>(print.low >> 2);
}

}  // namespace

FlightLock FlightLock::Acquire(const std::string& database_path, std::string_view key, int timeout_ms) {
  FlightLock lock;
  lock.fd_ = OpenLockFile(base::Cat(database_path, ".flights"));
  if (lock.fd_ < 0) return lock;
  const auto deadline = steady_clock::now() + milliseconds(timeout_ms);
  for (milliseconds pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    const int error = TryLock(lock.fd_, PlaceOf(key));
    if (error == 0) return lock;
    const bool busy = error == EAGAIN || error == EACCES;
    if (busy) lock.waited_ = true;
    if ((!busy && error != EINTR) || steady_clock::now() >= deadline) break;
    std::this_thread::sleep_for(pause);
  }
  close(std::exchange(lock.fd_, -1));
  return lock;
}

FlightLock::FlightLock(FlightLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)), waited_(other.waited_) {}

FlightLock& FlightLock::operator=(FlightLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(waited_, other.waited_);
  return *this;
}

FlightLock::~FlightLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace laneshift::store
