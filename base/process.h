// Starting and ending child processes, without a shell: what RunProgram and ConversingProcess share.
//
// A child gets its own process group, default signal handling and no descriptor but 0, 1 and 2.
// Thread-safety: may be called from any thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "laneshift/result.h"

namespace laneshift::base {

using SteadyClock = std::chrono::steady_clock;
using SteadyDeadline = std::optional<SteadyClock::time_point>;  // nothing: no deadline

// kNotFound if the program cannot be started, kResourceExhausted if the system has no process or memory left.
// REQUIRES: argv is not empty.
Result<pid_t> StartProcess(const std::vector<std::string>& argv, int input, int output, int messages);

// The wait status, or nothing at the deadline.
std::optional<int> WaitForProcess(pid_t pid, const SteadyDeadline& deadline);

// For poll(): -1 without a deadline.
int RemainingMs(const SteadyDeadline& deadline);

// A file in memory with these bytes, at its beginning.
Result<Descriptor> MemoryFile(const char* name, std::string_view bytes);

// What the system call said: kResourceExhausted.
Error SystemError(std::string_view what, int code);

}  // namespace laneshift::base
