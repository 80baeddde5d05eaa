// Runs a program in which one operation on files fails, below libc: a seccomp filter hands each system call on files to
// this process (seccomp_unotify(2)), which continues it or answers with an error. This covers stdio, streams, SQLite,
// the program's children and all their threads, and the program does not notice.
//
// Only operations on files below one directory count, and on files in memory (memfd_create). Thread-safety: one run at
// a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "laneshift/result.h"

namespace laneshift::tests {

struct FileFault {
  std::string directory;       // its path has no links
  int64_t operation = 0;       // that fails, counted from 1; 0: none
  bool and_all_after = false;  // a disk that is gone, instead of one call that failed
};

struct FaultyRun {
  int exit_code = 0;       // of a normal exit
  int signal = 0;          // that ended the program, or 0
  int64_t operations = 0;  // how many there were
  std::string failed;      // the first that did, such as "write /d/x.npy"; empty: none
  bool removes = false;    // it would have removed a file or closed one
};

// The program runs in `fault.directory`, with these standard streams; it may change the environment by env(1).
// kUnsupported: the kernel has no such filters for us. kTimeout: the program was killed at the deadline.
Result<FaultyRun> RunWithFileFault(const std::vector<std::string>& argv, const std::string& output,
                                   const std::string& messages, const FileFault& fault, std::chrono::seconds timeout);

}  // namespace laneshift::tests
