#include "base/line_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "base/text.h"

namespace laneshift::base {
namespace {

constexpr off_t kMessagesKept = 600;
// A child that has closed its output gets this long to exit by itself, so that its own exit code is reported.
constexpr std::chrono::milliseconds kGrace{500};

std::string Describe(int status) {
  if (WIFSIGNALED(status)) {
    return Cat("was ended by signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")");
  }
  return Cat("ended with exit code ", WEXITSTATUS(status));
}

}  // namespace

Result<LineProcess> LineProcess::Start(const std::vector<std::string>& argv) {
  // A pair of sockets rather than two pipes: writing to a child that is gone is then an error and not a SIGPIPE.
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return SystemError("socketpair", errno);
  Descriptor own(ends[0]), childs(ends[1]);
  LS_ASSIGN(Descriptor messages, MemoryFile("laneshift-messages", {}));
  LS_ASSIGN(const pid_t pid, StartProcess(argv, childs.get(), childs.get(), messages.get()));
  return LineProcess(pid, std::move(own), std::move(messages));
}

LineProcess::LineProcess(LineProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      lines_(std::move(other.lines_)),
      messages_(std::move(other.messages_)),
      unread_(std::move(other.unread_)) {}

LineProcess& LineProcess::operator=(LineProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(lines_, other.lines_);
  std::swap(messages_, other.messages_);
  std::swap(unread_, other.unread_);
  return *this;
}

LineProcess::~LineProcess() {
  if (pid_ >= 0) (void)End();
}

Status LineProcess::Write(std::string_view line) {
  LS_CHECK(line.find('\n') == std::string_view::npos, "a line must not hold a line feed");
  std::string text(line);
  text += '\n';
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t count = send(lines_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return MakeError(ErrorCode::kNotFound, Cat("the process is gone: ", std::strerror(errno)));
    rest.remove_prefix(static_cast<size_t>(count));
  }
  return Ok();
}

Result<std::string> LineProcess::Read(std::chrono::milliseconds timeout) {
  const SteadyDeadline deadline = SteadyClock::now() + timeout;
  char chunk[1 << 14];
  for (;;) {
    if (const size_t end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    pollfd polled = {lines_.get(), POLLIN, 0};
    const int ready = poll(&polled, 1, RemainingMs(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      return MakeError(ErrorCode::kTimeout, Cat("no answer within ", timeout.count(), " ms"));
    }
    const ssize_t count = read(lines_.get(), chunk, sizeof chunk);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return MakeError(ErrorCode::kNotFound, "the process is gone");
    unread_.append(chunk, static_cast<size_t>(count));
  }
}

std::string LineProcess::End() {
  if (pid_ < 0) return "has ended";
  // Whether the child closed its output by itself; if not, it is ours to end.
  pollfd polled = {lines_.get(), POLLIN, 0};
  char byte;
  const bool closed = poll(&polled, 1, 0) == 1 && recv(lines_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  std::optional<int> status;
  if (closed) status = WaitForProcess(pid_, SteadyClock::now() + kGrace);
  const bool killed = !status;
  if (killed) {
    // Before its input ends, at which it might go by itself.
    kill(-pid_, SIGKILL);
    status = WaitForProcess(pid_, std::nullopt);
  }
  lines_.Close();
  pid_ = -1;
  return killed && WIFSIGNALED(*status) && WTERMSIG(*status) == SIGKILL ? "was killed" : Describe(*status);
}

std::string LineProcess::LastMessages() const {
  struct stat status;
  if (!messages_.is_open() || fstat(messages_.get(), &status) != 0) return {};
  const off_t from = std::max<off_t>(0, status.st_size - kMessagesKept);
  std::string text(static_cast<size_t>(status.st_size - from), '\0');
  const ssize_t count = pread(messages_.get(), text.data(), text.size(), from);
  text.resize(count < 0 ? 0 : static_cast<size_t>(count));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return std::string(Trim(text));
}

}  // namespace laneshift::base
