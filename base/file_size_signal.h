// FileSizeSignalGuard: while one lives, a write of its thread beyond the limit on file sizes (RLIMIT_FSIZE) fails with
// EFBIG. Otherwise the system sends SIGXFSZ with the error, whose default is to end the process: a library must neither
// let that happen to its host nor change how the host handles the signal.
//
// The signal goes to the thread that writes; it is blocked there and one that came up meanwhile is taken away.
// Thread-safety: a guard belongs to the thread that made it; guards may be nested.
#pragma once

namespace laneshift::base {

class FileSizeSignalGuard {
 public:
  FileSizeSignalGuard();
  FileSizeSignalGuard(const FileSizeSignalGuard&) = delete;
  FileSizeSignalGuard& operator=(const FileSizeSignalGuard&) = delete;
  ~FileSizeSignalGuard();  // leaves errno alone

 private:
  bool blocked_before_;
  bool pending_before_ = false;  // then it is not this guard's to take away
};

}  // namespace laneshift::base
