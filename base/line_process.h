// LineProcess: a child process with which its owner exchanges lines of text.
//
// The child reads lines from its standard input and writes lines to its standard output; what it writes to standard
// error is kept in memory. It is killed, with its process group, when it is no longer wanted. A child that outlives its
// owner finds its input at an end. Thread-safety: none; one owner.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"

namespace laneshift::base {

class LineProcess {
 public:
  // Errors as StartProcess.
  static Result<LineProcess> Start(const std::vector<std::string>& argv);
  LineProcess(LineProcess&& other) noexcept;
  LineProcess& operator=(LineProcess&& other) noexcept;
  ~LineProcess();

  pid_t pid() const { return pid_; }
  // kNotFound: the child has ended. REQUIRES: no line feed in `line`.
  Status Write(std::string_view line);
  // The next line. kTimeout: none came before the deadline; kNotFound: the child has ended or closed its output.
  Result<std::string> Read(std::chrono::milliseconds timeout);

  // Kills the child if it still runs, and says how it came to its end: "ended with exit code 1", "was ended by signal
  // 11 (Segmentation fault)". Afterwards it can no longer be written to or read from.
  std::string End();
  // The last of what the child wrote to standard error, in one line.
  std::string LastMessages() const;

 private:
  LineProcess(pid_t pid, Descriptor lines, Descriptor messages)
      : pid_(pid), lines_(std::move(lines)), messages_(std::move(messages)) {}

  pid_t pid_ = -1;  // -1: moved from, or reaped
  Descriptor lines_, messages_;
  std::string unread_;
};

}  // namespace laneshift::base
