#include "emulator/hazards/report.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/text.h"
#include "emulator/hazards/policy_profiles.h"
#include "emulator/ptx/ptx_syntax.h"

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

// A place in a function is "kernel (function)", one after a label "kernel (label)".
TEST(HazardLog, KnowsTheSourceLinesOfFunctions) {
  const auto module = ParsePtx(R"(.version 9.0
.target sm_100a
.address_size 64
.file 1 "a.cuh"
.func f() {
  .reg .b32 %r<2>;
  .loc 1 7 0
  mov.b32 %r1, 0;
  ret;
}
.visible .entry k() {
  call f;
  ret;
}
)");
  ASSERT_TRUE(module.has_value()) << module.error().message;
  const SourcePlace in_function{.kernel = "k (f)", .line = 8};
  HazardRules rules;
  ASSERT_TRUE(AddSuppressions(rules, "s", "shared-race k a.cuh:7\n"));
  HazardLog log;
  log.SetModules({{"k", &*module}});
  log.SetRules(rules);
  log.Add(HazardKind::kSharedRace, in_function, "suppressed by its source line");
  EXPECT_TRUE(log.Take().empty());
  EXPECT_TRUE(log.UnusedSuppressions().empty());
  log.SetRules({});
  log.Add(HazardKind::kSharedRace, in_function, "reported");
  const std::vector<Hazard> hazards = log.Take();
  ASSERT_EQ(hazards.size(), 1u);
  EXPECT_EQ(hazards[0].place.source.line, 7);
  EXPECT_NE(hazards[0].place.ptx.find("mov.b32"), std::string::npos) << hazards[0].place.ptx;
}

TEST(HazardRules, LevelsAndSuppressionsDecideWhatIsReported) {
  HazardRules rules;
  ASSERT_TRUE(SetHazardLevel(rules, "tensor-race=note"));
  ASSERT_TRUE(SetHazardLevel(rules, "leaked-tensor=off"));
  ASSERT_TRUE(AddSuppressions(rules, "s", "# ours\npending-* gemm_* 12 # known\nshared-race nobody\n"));
  HazardLog log;
  log.SetRules(rules);
  log.Add(HazardKind::kTensorRace, {.kernel = "gemm_a", .line = 12}, "a note");
  log.Add(HazardKind::kLeakedTensor, {.kernel = "gemm_a", .line = 12}, "off");
  log.Add(HazardKind::kPendingGlobal, {.kernel = "gemm_a (f)", .line = 12}, "suppressed");
  Report report;
  report.hazards = log.Take();
  ASSERT_EQ(report.hazards.size(), 1u);
  EXPECT_EQ(report.hazards[0].level, HazardLevel::kNote);
  EXPECT_TRUE(report.Clean());
  log.Add(HazardKind::kPendingGlobal, {.kernel = "gemm_a", .line = 13}, "another line");
  report.hazards = log.Take();
  EXPECT_EQ(report.hazards.size(), 1u);
  EXPECT_FALSE(report.Clean());
  EXPECT_EQ(log.UnusedSuppressions(), std::vector<std::string>{"s:3: shared-race nobody"});
}

TEST(HazardRules, WrongOnesAreRefused) {
  HazardRules rules;
  const auto error = [](const Status& status) { return status ? std::string("none") : status.error().message; };
  EXPECT_TRUE(error(SetHazardLevel(rules, "race=off")).starts_with("no hazard is called 'race'; there are pending-"));
  EXPECT_EQ(error(SetHazardLevel(rules, "tensor-race=loud")), "hazard tensor-race is off, note or error, not 'loud'");
  EXPECT_EQ(error(AddSuppressions(rules, "s", "\nshared-race")),
            "s:2: a rule is 'HAZARD KERNEL [PTX LINE | FILE:LINE]', not 'shared-race'");
  EXPECT_EQ(error(AddSuppressions(rules, "s", "races* *")), "s:1: no hazard is called 'races*'");
  for (const char* place : {"0", "x.cu:0", "x.cu:", ":3", "x.cu"}) {
    EXPECT_EQ(error(AddSuppressions(rules, "s", std::string("shared-race * ") + place)),
              "s:1: '" + std::string(place) + "' is neither a line of the PTX nor FILE:LINE or FILE:* of the source");
  }
}

TEST(PolicyProfiles, ManualIsStricterAndStandsInTheManual) {
  std::ifstream file(LANESHIFT_SOURCE_DIR "/docs/emulator.md");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  Policies policies;
  ASSERT_TRUE(SetPolicyProfile(policies, "manual"));
  EXPECT_EQ(policies.default_scope, DefaultScope::kCta);
  for (const ManualAnswer& manual : ManualAnswers()) {
    Policies one;
    ASSERT_TRUE(SetPolicy(one, base::Cat(manual.policy, "=", manual.answer))) << manual.policy;
    EXPECT_NE(one, Policies()) << manual.policy << ": is the default";
    const std::string row = base::Cat("| `", manual.policy, "=", manual.answer, "` | ", manual.why, " |");
    EXPECT_NE(text.find(row), std::string::npos) << "docs/emulator.md lacks: " << row;
  }
  ASSERT_TRUE(SetPolicyProfile(policies, "hardware"));
  EXPECT_EQ(policies, Policies());
  const Status unknown = SetPolicyProfile(policies, "lax");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().message, "no profile is called 'lax': hardware or manual");
}

}  // namespace
}  // namespace laneshift::emulator
