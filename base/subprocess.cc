#include "base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
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
#include "base/text.h"

extern char** environ;

namespace laneshift::base {
namespace {

using Clock = std::chrono::steady_clock;
using Deadline = std::optional<Clock::time_point>;

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { Close(); }
  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_;
};

Error SystemError(std::string_view what, int code) {
  return MakeError(ErrorCode::kResourceExhausted, Cat(what, ": ", std::strerror(code)));
}

// A file in memory rather than a pipe: the child may stop reading early without a SIGPIPE here, and no thread is needed
// to feed it.
Result<Descriptor> InputFile(std::string_view input) {
  Descriptor file(memfd_create("laneshift-input", MFD_CLOEXEC));
  if (!file.is_open()) return SystemError("memfd_create", errno);
  while (!input.empty()) {
    ssize_t written = write(file.get(), input.data(), input.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError("writing a program's input", errno);
    input.remove_prefix(static_cast<size_t>(written));
  }
  lseek(file.get(), 0, SEEK_SET);
  return file;
}

struct Pipe {
  Descriptor read_end, write_end;
};

Result<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return SystemError("pipe2", errno);
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

Result<pid_t> Spawn(const Program& program, int input, int output, int messages) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, messages, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigaddset(&signals, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &signals);

  std::vector<char*> argv;
  for (const std::string& argument : program.argv) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t pid = -1;
  int failure = posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failure == EAGAIN || failure == ENOMEM) return SystemError(Cat("starting ", program.argv[0]), failure);
  if (failure != 0) {
    return MakeError(ErrorCode::kNotFound, Cat("cannot start ", program.argv[0], ": ", std::strerror(failure)));
  }
  return pid;
}

int RemainingMs(const Deadline& deadline) {
  if (!deadline) return -1;
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*deadline - Clock::now()).count();
  return left < 0 ? 0 : static_cast<int>(left) + 1;
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
    if (ready == 0 && deadline && Clock::now() >= *deadline) return false;
    for (int i = 0; i < 2; ++i) {
      if (polled[i].revents == 0) continue;
      ssize_t count = read(pipes[i].get(), chunk.data(), chunk.size());
      if (count > 0) texts[i]->append(chunk.data(), static_cast<size_t>(count));
      if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) pipes[i].Close();
    }
  }
  return true;
}

// The wait status, or nothing at the deadline.
std::optional<int> WaitFor(pid_t pid, const Deadline& deadline) {
  for (;;) {
    int status = 0;
    pid_t ended = waitpid(pid, &status, deadline ? WNOHANG : 0);
    if (ended == pid) return status;
    LS_CHECK(ended == 0 || errno == EINTR, "waitpid of an own child failed: ", std::strerror(errno));
    if (deadline && Clock::now() >= *deadline) return std::nullopt;
    if (deadline) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

Result<ProgramResult> RunProgram(const Program& program) {
  LS_CHECK(!program.argv.empty(), "a program needs a name");
  LS_ASSIGN(Descriptor input, InputFile(program.input));
  LS_ASSIGN(Pipe output, MakePipe());
  LS_ASSIGN(Pipe messages, MakePipe());
  Deadline deadline;
  if (program.timeout.count() > 0) deadline = Clock::now() + program.timeout;
  LS_ASSIGN(pid_t pid, Spawn(program, input.get(), output.write_end.get(), messages.write_end.get()));
  output.write_end.Close();
  messages.write_end.Close();

  ProgramResult result;
  std::optional<int> status;
  if (Drain({std::move(output.read_end), std::move(messages.read_end)}, {&result.output, &result.messages}, deadline)) {
    status = WaitFor(pid, deadline);
  }
  if (!status) {
    kill(-pid, SIGKILL);
    WaitFor(pid, std::nullopt);
    return MakeError(ErrorCode::kTimeout, Cat(program.argv[0], " did not end within ", program.timeout.count(), " ms"));
  }
  if (WIFSIGNALED(*status)) result.signal = WTERMSIG(*status);
  if (WIFEXITED(*status)) result.exit_code = WEXITSTATUS(*status);
  return result;
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
    struct stat status;
    if (stat(candidate.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
  }
  return {};
}

}  // namespace laneshift::base
