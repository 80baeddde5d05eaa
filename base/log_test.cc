#include "base/log.h"

#include <gtest/gtest.h>

namespace laneshift::base {
namespace {

class LogTest : public testing::Test {
 protected:
  void TearDown() override { SetLogLevel(LogLevel::kWarn); }
};

TEST_F(LogTest, OneLineWithChannelLevelAndValuesOnStderrOnly) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  LS_LOG(kStore, warn, "page ", 7, " {braces} %d");
  std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_NE(text.find("warning store: page 7 {braces} %d\n"), std::string::npos) << text;
}

TEST_F(LogTest, BelowTheLevelNothingIsPrintedOrEvaluated) {
  int evaluated = 0;
  auto count = [&] { return ++evaluated; };
  testing::internal::CaptureStderr();
  LS_LOG(kTune, info, count());
  SetLogLevel(LogLevel::kOff);
  LS_LOG(kTune, error, count());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(evaluated, 0);
  SetLogLevel(LogLevel::kDebug);
  testing::internal::CaptureStderr();
  LS_LOG(kTune, debug, count());
  EXPECT_NE(testing::internal::GetCapturedStderr().find("debug tune: 1"), std::string::npos);
}

}  // namespace
}  // namespace laneshift::base
