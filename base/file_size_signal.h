// FileSizeSignalGuard: while one exists, a write of its thread beyond the limit on file sizes (RLIMIT_FSIZE) fails with
// EFBIG. Otherwise the system sends SIGXFSZ with the error, whose default is to end the process. A library must not end
// its host, and must not change how the host handles the signal.
//
// The signal goes to the thread that writes. It is blocked there, and one that arrives meanwhile is consumed.
// Thread-safety: a guard belongs to the thread that made it; guards may be nested.
#pragma once

namespace laneshift::base {

class FileSizeSignalGuard {
 public:
  FileSizeSignalGuard();
  FileSizeSignalGuard(const FileSizeSignalGuard&) = delete;
  FileSizeSignalGuard& operator=(const FileSizeSignalGuard&) = delete;
  ~FileSizeSignalGuard();  // leaves errno unchanged

 private:
  bool blocked_before_;
  bool pending_before_ = false;  // then it is not this guard's to take away
};

}  // namespace laneshift::base
