#include "base/process.h"

#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "base/check.h"
#include "base/file_size_signal.h"
#include "base/text.h"

extern char** environ;

namespace laneshift::base {

Error SystemError(std::string_view what, int code) {
  return MakeError(ErrorCode::kResourceExhausted, Cat(what, ": ", std::strerror(code)));
}

// A file in memory rather than a pipe: the child may stop reading early without a SIGPIPE here, and no thread is needed
// to feed it.
Result<Descriptor> MemoryFile(const char* name, std::string_view bytes) {
  const FileSizeSignalGuard guard;
  Descriptor file(memfd_create(name, MFD_CLOEXEC));
  if (!file.is_open()) return SystemError("memfd_create", errno);
  while (!bytes.empty()) {
    ssize_t written = write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError(Cat("writing ", name), errno);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  lseek(file.get(), 0, SEEK_SET);
  return file;
}

Result<pid_t> StartProcess(const std::vector<std::string>& words, int input, int output, int messages) {
  LS_CHECK(!words.empty(), "a program needs a name");
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
  for (const std::string& argument : words) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t pid = -1;
  int failure = posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failure == EAGAIN || failure == ENOMEM) return SystemError(Cat("starting ", words[0]), failure);
  if (failure != 0) {
    return MakeError(ErrorCode::kNotFound, Cat("cannot start ", words[0], ": ", std::strerror(failure)));
  }
  return pid;
}

int RemainingMs(const SteadyDeadline& deadline) {
  if (!deadline) return -1;
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*deadline - SteadyClock::now()).count();
  return left < 0 ? 0 : static_cast<int>(left) + 1;
}

std::optional<int> WaitForProcess(pid_t pid, const SteadyDeadline& deadline) {
  for (;;) {
    int status = 0;
    pid_t ended = waitpid(pid, &status, deadline ? WNOHANG : 0);
    if (ended == pid) return status;
    LS_CHECK(ended == 0 || errno == EINTR, "waitpid of an own child failed: ", std::strerror(errno));
    if (deadline && SteadyClock::now() >= *deadline) return std::nullopt;
    if (deadline) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace laneshift::base
