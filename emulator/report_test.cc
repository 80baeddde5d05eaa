#include "emulator/report.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/text.h"

namespace laneshift::emulator {
namespace {

TEST(Report, EveryHazardStandsInTheManual) {
  std::ifstream file(LANESHIFT_SOURCE_DIR "/docs/emulator.md");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  for (int kind = 0; kind < kHazardKinds; ++kind) {
    const std::string row =
        base::Cat("| `", NameOf(static_cast<HazardKind>(kind)), "` | ", MeaningOf(static_cast<HazardKind>(kind)), " |");
    EXPECT_NE(text.find(row), std::string::npos) << "docs/emulator.md lacks: " << row;
  }
}

TEST(Report, EveryPolicyStandsInTheManual) {
  std::ifstream file(LANESHIFT_SOURCE_DIR "/docs/emulator.md");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  for (const PolicyRow& policy : PolicyTable()) {
    const std::string row =
        base::Cat("| `", policy.name, "` | ", policy.open, " | `", base::Join(policy.answers, "`, `"), "` |");
    EXPECT_NE(text.find(row), std::string::npos) << "docs/emulator.md lacks: " << row;
  }
}

TEST(Report, NamesThePoliciesThatMattered) {
  Report report;
  ASSERT_TRUE(SetPolicy(report.policies, "shift_scope=cta"));
  report.counters.policies[static_cast<size_t>(Policy::kShiftScope)] = 3;
  ASSERT_EQ(report.PolicyUses().size(), 1u);
  EXPECT_TRUE(report.PolicyUses()[0].starts_with("shift_scope=cta: 3 uses")) << report.PolicyUses()[0];
}

TEST(Policies, AreSetByName) {
  Policies policies;
  ASSERT_TRUE(SetPolicy(policies, "cp_4x256b_lane=ignored"));
  EXPECT_EQ(policies.cp_4x256b_lane, Cp4Lane::kIgnored);
  const Status unknown = SetPolicy(policies, "colour=blue"), wrong = SetPolicy(policies, "shift_scope=blue");
  ASSERT_FALSE(unknown.has_value());
  ASSERT_FALSE(wrong.has_value());
  EXPECT_NE(wrong.error().message.find("groups, addressed, cta"), std::string::npos) << wrong.error().message;
}

TEST(HazardLog, CountsWhatRepeatsAtOneLine) {
  HazardLog log;
  for (int i = 0; i < 3; ++i) log.Add(HazardKind::kTensorRace, {.kernel = "k", .line = 7}, "first");
  log.Add(HazardKind::kTensorRace, {.kernel = "k", .line = 8}, "other line");
  const std::vector<Hazard> hazards = log.Take();
  ASSERT_EQ(hazards.size(), 2u);
  EXPECT_EQ(hazards[0].count, 3u);
  EXPECT_TRUE(log.Take().empty());
}

}  // namespace
}  // namespace laneshift::emulator
