#include "base/threads.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>

#include "base/thread_famine.h"

namespace laneshift::base {
namespace {

TEST(Threads, RunConcurrentlyWithTheCaller) {
  std::atomic<int> calls = 0;
  std::atomic<int> inside = 0;
  RunOnThreads(3, [&] {
    ++calls;
    // Only if all three run at the same time does this end.
    ++inside;
    while (inside < 3) {
    }
  });
  EXPECT_EQ(calls, 3);
}

TEST(Threads, AnEndedThreadIsJoined) {
  std::atomic<bool> done = false;
  {
    auto thread = Thread::Start([&] { done = true; });
    ASSERT_TRUE(thread) << thread.error().message;
  }
  EXPECT_TRUE(done);
}

TEST(Threads, ThatCannotBeStartedAreDoneWithout) {
  const ThreadFamine famine;
  const auto thread = Thread::Start([] {});
  ASSERT_FALSE(thread);
  EXPECT_EQ(thread.error().code, ErrorCode::kResourceExhausted);
  EXPECT_NE(thread.error().message.find("no thread could be started"), std::string::npos);
  int calls = 0;
  EXPECT_EQ(RunOnThreads(8, [&] { ++calls; }), 1);
  EXPECT_EQ(calls, 1);
}

// A child whose stacks find no room in the address space starts one thread at most, and does the work all the same.
TEST(Threads, AreAsManyAsTheHostAllows) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    rlimit limit{};
    getrlimit(RLIMIT_AS, &limit);
    rlim_t used = 0;
    std::ifstream("/proc/self/statm") >> used;
    limit.rlim_cur = used * static_cast<rlim_t>(getpagesize()) + (24 << 20);
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
    std::atomic<int> ran{0};
    const int had = RunOnThreads(64, [&] {
      ++ran;
      usleep(50000);
    });
    _exit(had >= 1 && had < 64 && ran == had ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace laneshift::base
