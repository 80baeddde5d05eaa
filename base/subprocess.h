// RunProgram: starts a program without a shell, feeds it, and waits for its end.
//
// The child gets its own process group, default signal handling and no descriptor but 0, 1 and 2. At the deadline the
// whole group is killed. Output is captured in memory.
//
// Thread-safety: may be called from any thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "laneshift/result.h"

namespace laneshift::base {

struct Executable {
  // argv[0] is looked up in PATH if it has no slash. REQUIRES: not empty.
  std::vector<std::string> argv;
  std::string_view input = {};
  // Zero: no deadline.
  std::chrono::milliseconds timeout{0};
};

struct ProgramResult {
  int exit_code = 0;     // of a normal exit
  int signal = 0;        // that ended the program, or 0
  std::string output;    // what it wrote to stdout
  std::string messages;  // what it wrote to stderr

  bool Succeeded() const { return exit_code == 0 && signal == 0; }
};

// Any end of the program is a ProgramResult. kNotFound if it cannot be started, kTimeout if it was killed at the
// deadline, kResourceExhausted if the system has no process, descriptor or memory left.
Result<ProgramResult> RunProgram(const Executable& program);

// Whether `path` is a file that may be executed.
bool IsProgram(const std::string& path);

// The first executable file `name` in the directories of $PATH and then in `more_directories`, or an empty string.
std::string FindProgram(std::string_view name, const std::vector<std::string>& more_directories = {});

}  // namespace laneshift::base
