#include "base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>

#include "base/check.h"
#include "base/process.h"
#include "base/text.h"

namespace laneshift::base {
namespace {

using Deadline = SteadyDeadline;

struct Pipe {
  Descriptor read_end, write_end;
};

Result<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return SystemError("pipe2", errno);
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

// Reads both pipes to their end. False at the deadline.
bool Drain(std::array<Descriptor, 2> pipes, std::array<std::string*, 2> texts, const Deadline& deadline) {
  std::vector<char> chunk(1 << 16);
  while (pipes[0].is_open() || pipes[1].is_open()) {
    // poll() skips negative descriptors.
    pollfd polled[2] = {{pipes[0].get(), POLLIN, 0}, {pipes[1].get(), POLLIN, 0}};
    int ready = poll(polled, 2, RemainingMs(deadline));
    if (ready < 0 && errno == EINTR) continue;
    LS_CHECK(ready >= 0, "poll of own pipes failed: ", std::strerror(errno));
    if (ready == 0 && deadline && SteadyClock::now() >= *deadline) return false;
    for (int i = 0; i < 2; ++i) {
      if (polled[i].revents == 0) continue;
      ssize_t count = read(pipes[i].get(), chunk.data(), chunk.size());
      if (count > 0) texts[i]->append(chunk.data(), static_cast<size_t>(count));
      if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) pipes[i].Close();
    }
  }
  return true;
}

}  // namespace

Result<ProgramResult> RunProgram(const Executable& program) {
  LS_CHECK(!program.argv.empty(), "a program needs a name");
  LS_ASSIGN(Descriptor input, MemoryFile("laneshift-input", program.input));
  LS_ASSIGN(Pipe output, MakePipe());
  LS_ASSIGN(Pipe messages, MakePipe());
  Deadline deadline;
  if (program.timeout.count() > 0) deadline = SteadyClock::now() + program.timeout;
  LS_ASSIGN(pid_t pid, StartProcess(program.argv, input.get(), output.write_end.get(), messages.write_end.get()));
  output.write_end.Close();
  messages.write_end.Close();

  ProgramResult result;
  std::optional<int> status;
  if (Drain({std::move(output.read_end), std::move(messages.read_end)}, {&result.output, &result.messages}, deadline)) {
    status = WaitForProcess(pid, deadline);
  }
  if (!status) {
    kill(-pid, SIGKILL);
    WaitForProcess(pid, std::nullopt);
    return MakeError(ErrorCode::kTimeout, Cat(program.argv[0], " did not end within ", program.timeout.count(), " ms"));
  }
  if (WIFSIGNALED(*status)) result.signal = WTERMSIG(*status);
  if (WIFEXITED(*status)) result.exit_code = WEXITSTATUS(*status);
  return result;
}

bool IsProgram(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(path.c_str(), X_OK) == 0;
}

std::string FindProgram(std::string_view name, const std::vector<std::string>& more_directories) {
  std::vector<std::string> directories;
  // PATH is how any Unix program is found, not an option of laneshift.
  if (const char* path = std::getenv("PATH")) {
    for (std::string_view directory : Split(path, ':')) directories.emplace_back(directory);
  }
  directories.insert(directories.end(), more_directories.begin(), more_directories.end());
  for (const std::string& directory : directories) {
    std::string candidate = Cat(directory.empty() ? "." : directory, "/", name);
    if (IsProgram(candidate)) return candidate;
  }
  return {};
}

}  // namespace laneshift::base
