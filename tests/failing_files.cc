#include "tests/failing_files.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/descriptor.h"
#include "base/text.h"

namespace laneshift::tests {
namespace {

using base::Cat;
using base::Descriptor;

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif

// How a system call names its file: by a descriptor or a path in an argument (a path after the descriptor of a
// directory counts in one argument later), or not at all.
enum class Names : uint8_t { kDescriptor, kPath, kPathAt, kNothing };

struct Operation {
  int number;
  const char* name;
  Names names;
  int argument;  // of the descriptor or, with kPathAt, of the directory's
  int error;     // what it fails with
  bool removes = false;
};

// clang-format off
constexpr Operation kOperations[] = {
    {SYS_openat,       "open",      Names::kPathAt,     0, EMFILE},
    {SYS_read,         "read",      Names::kDescriptor, 0, EIO},
    {SYS_readv,        "readv",     Names::kDescriptor, 0, EIO},
    {SYS_pread64,      "pread",     Names::kDescriptor, 0, EIO},
    {SYS_write,        "write",     Names::kDescriptor, 0, ENOSPC},
    {SYS_writev,       "writev",    Names::kDescriptor, 0, ENOSPC},
    {SYS_pwrite64,     "pwrite",    Names::kDescriptor, 0, ENOSPC},
    {SYS_close,        "close",     Names::kDescriptor, 0, EIO, true},
    {SYS_fsync,        "fsync",     Names::kDescriptor, 0, EIO},
    {SYS_fdatasync,    "fdatasync", Names::kDescriptor, 0, EIO},
    {SYS_ftruncate,    "ftruncate", Names::kDescriptor, 0, EIO},
    {SYS_flock,        "flock",     Names::kDescriptor, 0, ENOLCK},
    {SYS_fcntl,        "lock",      Names::kDescriptor, 0, ENOLCK},
    {SYS_mmap,         "mmap",      Names::kDescriptor, 4, ENOMEM},
    {SYS_getdents64,   "getdents",  Names::kDescriptor, 0, EIO, true},
    {SYS_memfd_create, "memfd",     Names::kNothing,    0, EMFILE},
    {SYS_mkdirat,      "mkdir",     Names::kPathAt,     0, ENOSPC},
    {SYS_unlinkat,     "unlink",    Names::kPathAt,     0, EIO, true},
    {SYS_renameat,     "rename",    Names::kPathAt,     0, EIO},
    {SYS_renameat2,    "rename",    Names::kPathAt,     0, EIO},
    {SYS_newfstatat,   "stat",      Names::kPathAt,     0, EIO},
    {SYS_statx,        "stat",      Names::kPathAt,     0, EIO},
    {SYS_fchmod,       "chmod",     Names::kDescriptor, 0, EIO},
#if defined(__x86_64__)
    {SYS_open,         "open",      Names::kPath,       0, EMFILE},
    {SYS_mkdir,        "mkdir",     Names::kPath,       0, ENOSPC},
    {SYS_unlink,       "unlink",    Names::kPath,       0, EIO, true},
    {SYS_rmdir,        "rmdir",     Names::kPath,       0, EIO, true},
    {SYS_rename,       "rename",    Names::kPath,       0, EIO},
    {SYS_stat,         "stat",      Names::kPath,       0, EIO},
    {SYS_lstat,        "stat",      Names::kPath,       0, EIO},
    {SYS_access,       "access",    Names::kPath,       0, EIO},
#endif
};
// clang-format on

const Operation* OperationOf(int number) {
  for (const Operation& operation : kOperations) {
    if (operation.number == number) return &operation;
  }
  return nullptr;
}

// Installs the filter in this process and all that it starts; the descriptor on which their calls arrive, or -1.
int InstallFilter() {
  std::vector<sock_filter> code = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
  for (const Operation& operation : kOperations) {
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(operation.number), 0, 1));
    code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF));
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program = {static_cast<unsigned short>(code.size()), code.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
}

struct ControlMessage {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  ControlMessage() {
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
  ControlMessage(const ControlMessage&) = delete;
};

bool SendDescriptor(int socket, int fd) {
  ControlMessage message;
  cmsghdr* control = CMSG_FIRSTHDR(&message.header);
  *control = {.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
  std::memcpy(CMSG_DATA(control), &fd, sizeof fd);
  return sendmsg(socket, &message.header, 0) == 1;
}

Descriptor ReceiveDescriptor(int socket) {
  ControlMessage message;
  int fd = -1;
  if (recvmsg(socket, &message.header, MSG_CMSG_CLOEXEC) != 1) return Descriptor();
  const cmsghdr* control = CMSG_FIRSTHDR(&message.header);
  if (control != nullptr) std::memcpy(&fd, CMSG_DATA(control), sizeof fd);
  return Descriptor(fd);
}

// In the child.
[[noreturn]] void BecomeProgram(const std::vector<std::string>& argv, const std::string& directory, int output,
                                int messages, int socket) {
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  setpgid(0, 0);
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(messages, STDERR_FILENO);
  if (chdir(directory.c_str()) != 0) _exit(126);
  const int listener = InstallFilter();
  if (listener < 0 || !SendDescriptor(socket, listener)) _exit(126);
  execv(words[0], words.data());
  _exit(127);
}

std::string LinkOf(const std::string& link) {
  char text[PATH_MAX];
  const ssize_t bytes = readlink(link.c_str(), text, sizeof text);
  return {text, bytes < 0 ? 0 : static_cast<size_t>(bytes)};
}

// The text at an address of the process, as far as it can be read.
std::string TextAt(int memory, uint64_t address) {
  std::string text;
  char byte = 0;
  while (text.size() < PATH_MAX && pread(memory, &byte, 1, static_cast<off_t>(address + text.size())) == 1 && byte != 0)
    text += byte;
  return text;
}

// What a call is about: the path of its file, or nothing.
std::string FileOf(const Operation& operation, const seccomp_notif& call) {
  const std::string process = Cat("/proc/", call.pid);
  const auto link_of = [&](uint64_t fd) {
    const bool here = static_cast<int>(fd) == AT_FDCWD;
    return LinkOf(here ? Cat(process, "/cwd") : Cat(process, "/fd/", static_cast<int>(fd)));
  };
  const auto at = static_cast<size_t>(operation.argument);
  if (operation.names == Names::kNothing) return "/memfd:";
  if (operation.names == Names::kDescriptor) return link_of(call.data.args[at]);
  const bool has_directory = operation.names == Names::kPathAt;
  const Descriptor memory(open(Cat(process, "/mem").c_str(), O_RDONLY | O_CLOEXEC));
  const std::string path = TextAt(memory.get(), call.data.args[at + has_directory]);
  if (path.starts_with('/')) return path;
  const std::string directory = link_of(has_directory ? call.data.args[at] : static_cast<uint64_t>(AT_FDCWD));
  return path.empty() ? directory : Cat(directory, "/", path);
}

// As one does to remove what is in it.
bool OpensDirectory(const seccomp_notif& call) {
  return call.data.nr == SYS_openat && (call.data.args[2] & O_DIRECTORY) != 0;
}

// What `call` would do below the directory, such as "write /d/x"; nothing, if it does nothing there.
std::optional<std::string> Deed(const Operation& operation, const seccomp_notif& call, const std::string& directory) {
  if (operation.number == SYS_fcntl) {
    const auto command = static_cast<int>(call.data.args[1]);
    if (command != F_SETLK && command != F_SETLKW && command != F_OFD_SETLK && command != F_OFD_SETLKW) return {};
  }
  const std::string file = FileOf(operation, call);
  if (!file.starts_with(Cat(directory, "/")) && !file.starts_with("/memfd:")) return {};
  return Cat(operation.name, " ", file);
}

// Answers the calls until nobody is left who could make one. False: the deadline came first.
bool Answer(int listener, const FileFault& fault, std::chrono::steady_clock::time_point deadline, FaultyRun& run) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd event = {listener, POLLIN, 0};
    if (poll(&event, 1, static_cast<int>(left.count())) < 0) continue;
    if ((event.revents & (POLLHUP | POLLERR)) != 0) return true;
    seccomp_notif call = {};
    if ((event.revents & POLLIN) == 0 || ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) continue;
    seccomp_notif_resp answer = {call.id, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    const Operation& operation = *OperationOf(call.data.nr);
    const auto deed = Deed(operation, call, fault.directory);
    const int64_t number = deed ? ++run.operations : 0;
    if (number > 0 && (number == fault.operation || (fault.and_all_after && number > fault.operation))) {
      if (run.failed.empty()) run.removes = operation.removes || OpensDirectory(call);
      if (run.failed.empty()) run.failed = *deed;
      answer = {call.id, 0, -operation.error, 0};
    }
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);  // a process that was killed waits for no answer
  }
}

}  // namespace

Result<FaultyRun> RunWithFileFault(const std::vector<std::string>& argv, const std::string& output,
                                   const std::string& messages, const FileFault& fault, std::chrono::seconds timeout) {
  const Descriptor out(open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)),
      err(open(messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  int ends[2];
  if (!out.is_open() || !err.is_open() || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return MakeError(ErrorCode::kResourceExhausted, Cat("cannot set up a run: ", std::strerror(errno)));
  }
  const Descriptor own(ends[0]);
  Descriptor childs(ends[1]);
  const pid_t pid = fork();
  if (pid == 0) BecomeProgram(argv, fault.directory, out.get(), err.get(), childs.get());
  childs.Close();
  const Descriptor listener = ReceiveDescriptor(own.get());
  FaultyRun run;
  const bool ended =
      listener.is_open() && Answer(listener.get(), fault, std::chrono::steady_clock::now() + timeout, run);
  if (!ended) kill(-pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  if (!listener.is_open()) return MakeError(ErrorCode::kUnsupported, "the kernel gives us no seccomp listener");
  if (!ended) return MakeError(ErrorCode::kTimeout, Cat("killed after ", timeout.count(), " s"));
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  run.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return run;
}

}  // namespace laneshift::tests
