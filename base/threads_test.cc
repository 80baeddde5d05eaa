#include "base/threads.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/thread_famine.h"

namespace laneshift::base {
namespace {

TEST(Threads, RunBesideTheCaller) {
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
  RunOnThreads(8, [&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace laneshift::base
