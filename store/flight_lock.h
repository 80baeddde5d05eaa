// FlightLock: of all processes that lack the same thing, one makes it while the others wait for what it makes.
//
// A lock is a byte of the file `<database>.flights`, found by the fingerprint of the key: thousands of keys, one file.
// The kernel gives it back when its owner ends, however it ends, so a killed owner blocks nobody. It is advice: where
// files cannot be locked (a read-only directory, an odd filesystem), or past the time-out, everybody goes on without,
// and the work is done more than once. Take flights in one order only: tune before compile.
// Thread-safety: a FlightLock belongs to one owner; threads of one process exclude each other as processes do. A child
// made by fork() shares its parent's locks until it calls exec().
#pragma once

#include <string>
#include <string_view>

namespace laneshift::store {

class FlightLock {
 public:
  FlightLock() = default;  // held by nobody
  // Waits until the lock is free, at most `timeout_ms`.
  static FlightLock Acquire(const std::string& database_path, std::string_view key, int timeout_ms);
  FlightLock(FlightLock&& other) noexcept;
  FlightLock& operator=(FlightLock&& other) noexcept;
  ~FlightLock();

  bool held() const { return fd_ >= 0; }
  // Whether somebody else had it when it was asked for: then what is missing may be there now.
  bool waited() const { return waited_; }

 private:
  int fd_ = -1;
  bool waited_ = false;
};

}  // namespace laneshift::store
