#include "base/subprocess.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace laneshift::base {
namespace {

TEST(Subprocess, CapturesBothStreamsAndTheExitCode) {
  auto result = RunProgram({.argv = {"sh", "-c", "echo out; echo err >&2; exit 3"}});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->output, "out\n");
  EXPECT_EQ(result->messages, "err\n");
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_FALSE(result->Succeeded());
}

TEST(Subprocess, FeedsInputLargerThanAPipe) {
  std::string input(1 << 21, 'x');
  auto result = RunProgram({.argv = {"cat"}, .input = input});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->output, input);
}

TEST(Subprocess, InputMayBeIgnored) {
  auto result = RunProgram({.argv = {"true"}, .input = std::string(1 << 20, 'x')});
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->Succeeded());
}

TEST(Subprocess, ArgumentsAreNotReadByAShell) {
  auto result = RunProgram({.argv = {"printf", "%s|", "$HOME", "a b", "`x`"}});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->output, "$HOME|a b|`x`|");
}

TEST(Subprocess, TheDeadlineKillsTheWholeGroup) {
  auto start = std::chrono::steady_clock::now();
  // The grandchild holds the pipes; killing only the shell would leave us waiting for it.
  auto result = RunProgram({.argv = {"sh", "-c", "sleep 30 & sleep 30"}, .timeout = std::chrono::milliseconds(100)});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kTimeout);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(Subprocess, TheDeadlineHoldsForAProgramThatClosedItsOutput) {
  auto result =
      RunProgram({.argv = {"sh", "-c", "exec >&- 2>&-; sleep 30"}, .timeout = std::chrono::milliseconds(100)});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kTimeout);
}

TEST(Subprocess, ASignalIsReported) {
  auto result = RunProgram({.argv = {"sh", "-c", "kill -SEGV $$"}});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->signal, SIGSEGV);
  EXPECT_FALSE(result->Succeeded());
}

TEST(Subprocess, AMissingProgramIsNotFound) {
  auto result = RunProgram({.argv = {"/nonexistent/ptxas"}});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
  EXPECT_NE(result.error().message.find("/nonexistent/ptxas"), std::string::npos);
}

TEST(Subprocess, FindProgramSearchesPathThenTheGivenDirectories) {
  EXPECT_NE(FindProgram("sh"), "");
  EXPECT_EQ(FindProgram("no-such-program-anywhere"), "");
  EXPECT_EQ(FindProgram("bin", {"/usr"}), "") << "a directory is no program";
}

}  // namespace
}  // namespace laneshift::base
