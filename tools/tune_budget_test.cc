#include "tools/tune_budget.h"

#include <gtest/gtest.h>

namespace laneshift::tools {
namespace {

TEST(TuneBudget, TakesTrialsAndTime) {
  EXPECT_EQ(ParseBudget("200trials")->trials, 200);
  EXPECT_EQ(ParseBudget("200trials")->seconds, 0);
  EXPECT_EQ(ParseBudget("60s")->seconds, 60);
  EXPECT_GT(ParseBudget("60s")->trials, 10000);
  EXPECT_EQ(ParseBudget("16trials,5m")->seconds, 300);
  EXPECT_EQ(ParseBudget("16trials,5m")->trials, 16);
  EXPECT_EQ(ParseBudget("")->trials, TuneBudget{}.trials);
  for (const char* wrong : {"60", "s", "0s", "-1s", "60h", "1.5s", "16trials,", "99999999999s"}) {
    const auto budget = ParseBudget(wrong);
    ASSERT_FALSE(budget.has_value()) << wrong;
    EXPECT_EQ(budget.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(Shard, DealsEveryProblemOutOnce) {
  std::vector<Problem> problems;
  for (int i = 1; i <= 7; ++i) problems.push_back(GemmProblem{.m = i});
  std::vector<int64_t> seen;
  for (const char* text : {"1/3", "2/3", "3/3"}) {
    for (const Problem& problem : ProblemsOf(*ParseShard(text), problems)) {
      seen.push_back(std::get<GemmProblem>(problem).m);
    }
  }
  EXPECT_EQ(seen, (std::vector<int64_t>{1, 4, 7, 2, 5, 3, 6}));
  EXPECT_EQ(ProblemsOf(*ParseShard(""), problems).size(), 7u);
  for (const char* wrong : {"0/3", "4/3", "1", "1/", "/2", "a/b", "1/2/3"}) {
    EXPECT_FALSE(ParseShard(wrong).has_value()) << wrong;
  }
}

TEST(Devices, AreNumbersEachOnce) {
  EXPECT_EQ(*ParseDevices("0,2,1"), (std::vector<int>{0, 2, 1}));
  for (const char* wrong : {"", "0,", "a", "-1", "1,1", "5000"}) EXPECT_FALSE(ParseDevices(wrong).has_value()) << wrong;
}

}  // namespace
}  // namespace laneshift::tools
