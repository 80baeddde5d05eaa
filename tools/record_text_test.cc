#include "tools/record_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace laneshift::tools {
namespace {

using store::Record;

std::vector<Record> Examples() {
  return {store::ChoiceRecord{.problem = "gemm m=1 n=2 k=3",
                              .target = "sm_90a",
                              .device = "NVIDIA H200/sm_90",
                              .schedule = "tile=128x256x64",
                              .source = store::ChoiceSource::kMeasured,
                              .time_us = 12.1,
                              .generator = "35",
                              .driver = "13.0",
                              .created = 1700000000},
          store::ChoiceRecord{.problem = "p", .target = "t", .device = "d", .schedule = "s", .basis = "0f1e"},
          store::FactRecord{.device = "d", .name = "n", .answer = "\"quoted\"\n\\", .created = 5},
          store::KernelRecord{.key = "k",
                              .target = "t",
                              .problem = "p",
                              .schedule = "s",
                              .generator = "35",
                              .ptx = ".version 8.6\n\t// tab",
                              .cubin = store::CubinRecord{"ptxas 13.0.88", std::string("\177ELF\0\xff\x80", 7)},
                              .created = 1,
                              .last_used = 2},
          store::TrialRecord{.problem = "p",
                             .target = "t",
                             .device = "d",
                             .schedule = "s",
                             .generator = "35",
                             .driver = "13.0",
                             .verdict = store::Verdict::kHung,
                             .detail = "caf\xc3\xa9",
                             .predicted_us = 1.0 / 3,
                             .order = store::TimingOrder::kInSeries,
                             .samples = {{0.1, {.sm_mhz = 1979.5, .throttle_reasons = 4}},
                                         {std::numeric_limits<double>::denorm_min(), {}},
                                         {1e300, {.memory_mhz = 1, .temperature_c = -3, .power_w = 700.25}}},
                             .time_us = 5,
                             .low_us = 4.999999999999999,
                             .high_us = 6,
                             .created = 9}};
}

TEST(RecordText, EveryRecordComesBackAsItWas) {
  for (const Record& record : Examples()) {
    const std::string line = PrintRecord(record);
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    const auto parsed = ParseRecord(line);
    ASSERT_TRUE(parsed) << parsed.error().message << "\n" << line;
    EXPECT_EQ(*parsed, record) << line;
  }
  EXPECT_TRUE(CheckRecordHeader(PrintRecordHeader()));
}

TEST(RecordText, KeysThatAreUnknownArePassedOver) {
  const auto parsed =
      ParseRecord(R"({"record":"fact","device":"d","name":"n","answer":"a","created":5,"mood":"good"})");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(std::get<store::FactRecord>(*parsed).answer, "a");
}

TEST(RecordText, WhatIsWrongIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "not a JSON object"},
      {"[1]", "not a JSON object"},
      {R"({"record":"song"})", "record 'song' is unknown"},
      {R"({"record":"fact","device":"d","name":"n","answer":7,"created":5})", "key 'answer' is not a string"},
      {R"({"record":"fact","device":"d","name":"n","answer":"a"})", "key 'created' is not a whole number"},
      {R"({"record":"trial","problem":"p","target":"t","device":"d","schedule":"s","generator":"g","driver":"r",)"
       R"("verdict":"fine"})",
       "verdict 'fine' is unknown"},
      {R"({"record":"trial","problem":"p","target":"t","device":"d","schedule":"s","generator":"g","driver":"r",)"
       R"("verdict":"passed","detail":"","predicted_us":null,"time_us":1,"low_us":1,"high_us":1,"created":5,)"
       R"("order":"backwards","samples":[]})",
       "order 'backwards' is unknown"}};
  for (const auto& [line, message] : cases) {
    const auto parsed = ParseRecord(line);
    ASSERT_FALSE(parsed) << line;
    EXPECT_EQ(parsed.error().code, ErrorCode::kCorrupt);
    EXPECT_NE(parsed.error().message.find(message), std::string::npos) << parsed.error().message;
  }
  EXPECT_EQ(CheckRecordHeader(R"({"laneshift_store":2})").error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(CheckRecordHeader(R"({"record":"fact"})").error().code, ErrorCode::kCorrupt);
}

TEST(RecordText, Base64OfEveryLengthComesBack) {
  EXPECT_EQ(EncodeBase64("Ma"), "TWE=");
  std::string bytes;
  for (int i = 0; i < 260; ++i) {
    EXPECT_EQ(*DecodeBase64(EncodeBase64(bytes)), bytes);
    bytes += static_cast<char>(i * 7);
  }
  for (const char* bad : {"TWE", "TW=E", "T===", "TW!=", "=WFu"}) EXPECT_FALSE(DecodeBase64(bad)) << bad;
}

}  // namespace
}  // namespace laneshift::tools
