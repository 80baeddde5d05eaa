// FlightLock: of all processes that need the same record, one makes it while the others wait for it.
//
// A lock is a byte of the file `<database>.flights`, located by the fingerprint of the key: thousands of keys, one
// file. The operating system releases it when its owner ends, for whatever reason, so a killed owner blocks nobody. It
// is advisory: if files cannot be locked (a read-only directory, an odd filesystem), or after the time-out, every
// process continues without it, and the work is done more than once. Take flights in one order only: tune before
// compile.
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
