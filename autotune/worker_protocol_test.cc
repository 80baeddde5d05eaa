#include "autotune/worker_protocol.h"

#include <gtest/gtest.h>

namespace laneshift::autotune {
namespace {

using store::Verdict;

TEST(WorkerProtocol, AnyTextPassesThroughAMessage) {
  Message message{"check"};
  message.Add("problem", "gemm m=1 n=2 k=3");
  message.Add("detail", "tab\there, line\nthere, back\\slash, a=b, \\t");
  message.Add("detail", "");
  const std::string line = PrintMessage(message);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto parsed = ParseMessage(line);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(*parsed, message);
  EXPECT_EQ(parsed->All("detail").size(), 2u);
  EXPECT_EQ(parsed->Find("absent"), "");
}

TEST(WorkerProtocol, WhatIsNoMessageIsRefused) {
  for (const char* line : {"check\tnothing", "check\t=value", "check\tname=\\x", "check\tname=\\"}) {
    const auto parsed = ParseMessage(line);
    ASSERT_FALSE(parsed.has_value()) << line;
    EXPECT_EQ(parsed.error().code, ErrorCode::kCorrupt);
  }
}

TEST(WorkerProtocol, HelloVerdictsAndErrorsComeBackAsTheyWere) {
  const WorkerHello hello{"sm_90a", "NVIDIA H200/sm_90/132sm", "NVIDIA H200", "13.0", {"ptxas 13.0.88", "/p"}, 132,
                          true};
  EXPECT_EQ(*DecodeHello(*ParseMessage(PrintMessage(Encode(hello)))), hello);
  std::vector<Trial> trials;
  for (const Verdict verdict :
       {Verdict::kPassed, Verdict::kWrong, Verdict::kCrashed, Verdict::kHung, Verdict::kRefused}) {
    trials.push_back({.verdict = verdict, .detail = verdict == Verdict::kPassed ? "" : "why"});
  }
  const auto decoded = DecodeVerdicts("checked", *ParseMessage(PrintMessage(EncodeVerdicts("checked", trials))));
  ASSERT_TRUE(decoded.has_value());
  ASSERT_EQ(decoded->size(), trials.size());
  for (size_t i = 0; i < trials.size(); ++i) {
    EXPECT_EQ((*decoded)[i].verdict, trials[i].verdict);
    EXPECT_EQ((*decoded)[i].detail, trials[i].detail);
  }
  const Error error = MakeError(ErrorCode::kNotFound, "no such device");
  const auto failed = DecodeHello(*ParseMessage(PrintMessage(EncodeError(error))));
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, error.code);
  EXPECT_EQ(failed.error().message, error.message);
  EXPECT_EQ(DecodeHello({"surprise"}).error().code, ErrorCode::kInternal);
}

TEST(WorkerProtocol, SamplesComeBackWithTheirConditions) {
  const SampleTable table = {
      {{12.5, {.sm_mhz = 1980, .memory_mhz = {}, .temperature_c = 41, .power_w = 320.25, .throttle_reasons = 4}},
       {0.1, {}}},
      {},
      {{1e-3, {.sm_mhz = {}, .memory_mhz = 2619, .temperature_c = {}, .power_w = {}, .throttle_reasons = 0}}}};
  const Message message = EncodeSamples(table);
  EXPECT_EQ(*DecodeSamples(*ParseMessage(PrintMessage(message)), table.size()), table);
  // A sample of a schedule that was not asked for is no answer.
  EXPECT_FALSE(DecodeSamples(message, 2).has_value());
}

}  // namespace
}  // namespace laneshift::autotune
