#include "base/file_size_signal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <functional>

namespace laneshift::base {
namespace {

// In a child process whose files may have ten bytes; how it ended.
int InLimitedChild(const std::function<int(int file)>& work) {
  const pid_t child = fork();
  if (child == 0) {
    std::FILE* const temporary = std::tmpfile();
    const int file = temporary != nullptr ? fileno(temporary) : -1;
    const rlimit limit = {10, 10};
    if (file < 0 || setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(99);
    const rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    signal(SIGXFSZ, SIG_DFL);
    _exit(work(file));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool WriteFails(int file) { return pwrite(file, "x", 1, 10) == -1 && errno == EFBIG; }

TEST(FileSizeSignalGuard, WithoutItTheProcessEnds) {
  EXPECT_EQ(InLimitedChild([](int file) { return WriteFails(file) ? 0 : 1; }), 128 + SIGXFSZ);
}

TEST(FileSizeSignalGuard, MakesTheSignalAnError) {
  EXPECT_EQ(InLimitedChild([](int file) {
              const FileSizeSignalGuard outer;
              {
                const FileSizeSignalGuard inner;
                if (!WriteFails(file)) return 1;
              }
              return WriteFails(file) ? 0 : 2;
            }),
            0);
}

TEST(FileSizeSignalGuard, LeavesErrnoAndTheMaskAsTheyWere) {
  EXPECT_EQ(InLimitedChild([](int file) {
              {
                const FileSizeSignalGuard guard;
                if (pwrite(file, "x", 1, 10) != -1) return 1;
              }
              if (errno != EFBIG) return 2;
              sigset_t mask;
              pthread_sigmask(SIG_BLOCK, nullptr, &mask);
              if (sigismember(&mask, SIGXFSZ) != 0) return 3;
              // The host's own writes are its own business again.
              return WriteFails(file) ? 4 : 5;
            }),
            128 + SIGXFSZ);
}

TEST(FileSizeSignalGuard, LeavesASignalThatWasWaitingBefore) {
  EXPECT_EQ(InLimitedChild([](int file) {
              sigset_t set, pending;
              sigemptyset(&set);
              sigaddset(&set, SIGXFSZ);
              pthread_sigmask(SIG_BLOCK, &set, nullptr);
              if (!WriteFails(file)) return 1;
              { const FileSizeSignalGuard guard; }
              sigpending(&pending);
              return sigismember(&pending, SIGXFSZ) == 1 ? 0 : 2;
            }),
            0);
}

}  // namespace
}  // namespace laneshift::base
