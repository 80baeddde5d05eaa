#include "base/line_process.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace laneshift::base {
namespace {

using std::chrono::milliseconds;

TEST(LineProcess, ExchangesLines) {
  auto child = LineProcess::Start({"sh", "-c", "while read line; do echo \"<$line>\"; echo tail of it; done"});
  ASSERT_TRUE(child.has_value()) << child.error().message;
  for (const char* text : {"one", "", "three words here"}) {
    ASSERT_TRUE(child->Write(text).has_value());
    const auto answer = child->Read(milliseconds(5000));
    ASSERT_TRUE(answer.has_value()) << answer.error().message;
    EXPECT_EQ(*answer, std::string("<") + text + ">");
    EXPECT_EQ(*child->Read(milliseconds(5000)), "tail of it");
  }
  EXPECT_EQ(child->End(), "was killed");
}

TEST(LineProcess, TellsSilenceFromTheEnd) {
  auto silent = LineProcess::Start({"sleep", "60"});
  ASSERT_TRUE(silent.has_value());
  EXPECT_EQ(silent->Read(milliseconds(30)).error().code, ErrorCode::kTimeout);
  auto crashed = LineProcess::Start({"sh", "-c", "echo last words >&2; kill -SEGV $$"});
  ASSERT_TRUE(crashed.has_value());
  EXPECT_EQ(crashed->Read(milliseconds(5000)).error().code, ErrorCode::kNotFound);
  EXPECT_NE(crashed->End().find("signal 11"), std::string::npos);
  EXPECT_EQ(crashed->LastMessages(), "last words");
  // The system may still accept the first write after the end; the second write reports the child's end at the latest.
  EXPECT_FALSE(crashed->Write("a") && crashed->Write("b"));
  auto left = LineProcess::Start({"sh", "-c", "exit 3"});
  ASSERT_TRUE(left.has_value());
  EXPECT_EQ(left->Read(milliseconds(5000)).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(left->End(), "ended with exit code 3");
}

TEST(LineProcess, EndsWithItsOwner) {
  pid_t pid = -1;
  {
    auto child = LineProcess::Start({"sleep", "60"});
    ASSERT_TRUE(child.has_value());
    pid = child->pid();
    EXPECT_EQ(kill(pid, 0), 0);
  }
  EXPECT_NE(kill(pid, 0), 0);
}

TEST(LineProcess, NamesAProgramThatIsNotThere) {
  const auto child = LineProcess::Start({"/no/such/program"});
  ASSERT_FALSE(child.has_value());
  EXPECT_EQ(child.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace laneshift::base
