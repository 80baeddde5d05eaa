#include "ir/grammar.h"

#include <gtest/gtest.h>

#include <set>

#include "base/text.h"
#include "laneshift/problem.h"
#include "laneshift/schedule.h"

namespace laneshift::ir {
namespace {

TEST(Grammar, EveryKeyIsTakenByTheParserAndExplained) {
  const std::pair<std::string_view, std::string> smallest[] = {
      {"gemm", "gemm m=16 n=16 k=16"},
      {"conv", "conv w=16 c=16 k=16 s=1"},
      {"conv_dgrad", "conv_dgrad w=16 c=16 k=16 s=1"},
      {"conv_wgrad", "conv_wgrad w=16 c=16 k=16 s=1"},
      {"grouped_gemm", "grouped_gemm groups=2 m=16 n=16 k=16"}};
  for (const auto& [kind, text] : smallest) {
    std::set<std::string> names;
    for (const GrammarRow& row : ProblemKeys(kind)) {
      EXPECT_FALSE(row.values.empty()) << row.name;
      EXPECT_FALSE(row.usual.empty()) << row.name;
      EXPECT_FALSE(row.doc.empty()) << row.name;
      names.insert(row.name);
      // What is refused is the value, not the key.
      const auto parsed = ParseProblem(base::Cat(text, " ", row.name, "=?"));
      ASSERT_FALSE(parsed.has_value()) << row.name;
      EXPECT_EQ(parsed.error().message.find("unknown key"), std::string::npos) << parsed.error().message;
    }
    EXPECT_GT(names.size(), 24u);
  }
}

TEST(Grammar, UsualValuesAreThoseOfTheParser) {
  for (const std::string_view kind : ProblemKinds()) {
    const std::string text = kind == "gemm"           ? "gemm m=16 n=16 k=16"
                             : kind == "grouped_gemm" ? "grouped_gemm groups=2 m=16 n=16 k=16"
                                                      : "conv h=8 w=16 c=16 k=16 r=1 s=1";
    const auto plain = ParseProblem(text);
    ASSERT_TRUE(plain.has_value());
    for (const GrammarRow& row : ProblemKeys(kind)) {
      const bool number = row.usual.find_first_not_of("0123456789.") == std::string::npos;
      const bool given = base::Cat(" ", text).find(base::Cat(" ", row.name, "=")) != std::string::npos;
      if (!number || given || row.name == "d" || row.name == "t") continue;
      const auto said = ParseProblem(base::Cat(text, " ", row.name, "=", row.usual));
      ASSERT_TRUE(said.has_value()) << said.error().message;
      EXPECT_EQ(PrintProblem(*said), PrintProblem(*plain)) << row.name;
    }
  }
}

TEST(Grammar, EveryStepIsTaken) {
  for (const GrammarRow& row : EpilogueSteps()) {
    if (row.name.starts_with("FILE")) continue;
    std::string step = row.name;
    if (const size_t numbers = step.find(":x"); numbers != std::string::npos) {
      step = step.substr(0, numbers) + (row.name.ends_with(":x:y") ? ":0:6" : ":0.5");
    }
    const auto parsed = ParseProblem(base::Cat("gemm m=16 n=16 k=16 epilogue=", step));
    EXPECT_TRUE(parsed.has_value()) << parsed.error().message;
  }
}

// What others call it, and what we say.
TEST(Grammar, WordsOfOthersAreAnsweredWithOurs) {
  const std::pair<const char*, const char*> cases[] = {
      {"matmul m=16 n=16 k=16", "write for example: gemm m=512"},
      {"conv2d n=1", "write for example: conv n=1"},
      {"moe m=16", "write for example: grouped_gemm groups=8"},
      {"gemn m=1", "write for example: gemm"},
      {"gemm M=16 n=16 k=16", "did you mean 'm'?"},
      {"gemm m=16,n=16,k=16", "keys are separated by blanks, not commas; write m=16 n=16 k=16"},
      {"gemm m=16 n=16 k=16 dtype=fp16", "types are a=, b= and d="},
      {"gemm m=16 n=16 k=16 a=float16", "did you mean f16?"},
      {"gemm m=16 n=16 k=16 a=FP8", "did you mean e4m3?"},
      {"gemm m=16 n=16 k=16 a=int8", "a=int8 is not a type; did you mean s8?"},
      {"gemm m=16 n=16 k=16 tile=128x128", "it is one of schedules: --schedule"},
      {"gemm m=16 n=16 k=16 epilogue=relu6", "use clamp:0:6"},
      {"gemm m=16 n=16 k=16 epilogue=gleu", "did you mean 'gelu'?"},
      {"gemm m 16", "not of the form key=value, without blanks, such as m=16"},
      {"conv w=16 c=16 k=16 s=1 padding=1", "use pad="},
      {"conv w=16 c=16 k=16 kernel_size=3", "r=3 s=3"},
      {"conv w=16 c=16 k=16 s=1 stirde=2", "did you mean 'stride'?"},
  };
  for (const auto& [text, message] : cases) {
    const auto parsed = ParseProblem(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_NE(parsed.error().message.find(message), std::string::npos) << text << ": " << parsed.error().message;
  }
  const std::pair<const char*, const char*> schedules[] = {{"bm=128", "tile=MxNxK"},
                                                           {"stage=4", "did you mean 'stages'?"},
                                                           {"tile=128x128,stages=4", "not commas"},
                                                           {"num_stages=4", "use stages="},
                                                           {"scheduler=dynamic", "use static or clc"}};
  for (const auto& [text, message] : schedules) {
    const auto parsed = ParseSchedule(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_NE(parsed.error().message.find(message), std::string::npos) << text << ": " << parsed.error().message;
  }
}

}  // namespace
}  // namespace laneshift::ir
