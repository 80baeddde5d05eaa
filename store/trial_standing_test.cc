#include "store/trial_standing.h"

#include <gtest/gtest.h>

namespace laneshift::store {
namespace {

constexpr int64_t kNow = 1'800'000'000;

TrialRecord Trial(Verdict verdict) {
  return {.problem = "p",
          .target = "t",
          .device = "d",
          .schedule = "s",
          .generator = "g",
          .driver = "13.0",
          .assembler = {"ptxas 13.0.88", "/usr/bin/ptxas, 5 bytes"},
          .verdict = verdict,
          .created = kNow - 60};
}

Circumstances Asking() { return {{"g", "13.0"}, {"ptxas 13.0.88", "/usr/bin/ptxas, 5 bytes"}, kNow}; }

constexpr Verdict kFailures[] = {Verdict::kWrong, Verdict::kCrashed, Verdict::kHung, Verdict::kRefused};

TEST(TrialStanding, CountsWhereEverythingIsTheSame) {
  EXPECT_TRUE(Counts(Trial(Verdict::kPassed), Asking()));
  for (const Verdict verdict : kFailures) EXPECT_TRUE(Counts(Trial(verdict), Asking()));
}

TEST(TrialStanding, AnotherGeneratorOrDriverMakesItSilent) {
  for (const Verdict verdict : {Verdict::kPassed, Verdict::kRefused}) {
    Circumstances asking = Asking();
    asking.revision.driver = "13.1";
    EXPECT_FALSE(Counts(Trial(verdict), asking));
    asking = Asking();
    asking.revision.generator = "h";
    EXPECT_FALSE(Counts(Trial(verdict), asking));
  }
}

TEST(TrialStanding, AFailureIsOfTheVeryAssembler) {
  for (const Verdict verdict : kFailures) {
    Circumstances asking = Asking();
    asking.assembler.file = "/opt/ptxas, 5 bytes";
    EXPECT_FALSE(Counts(Trial(verdict), asking));
    asking.assembler = {"driver", ""};
    EXPECT_FALSE(Counts(Trial(verdict), asking));
    TrialRecord unrecorded = Trial(verdict);
    unrecorded.assembler = {};
    EXPECT_FALSE(Counts(unrecorded, Asking())) << "a store of before does not say what refused the candidate";
  }
}

TEST(TrialStanding, APassIsOfTheAssemblersVersion) {
  Circumstances asking = Asking();
  asking.assembler.file = "/opt/ptxas, 5 bytes";
  EXPECT_TRUE(Counts(Trial(Verdict::kPassed), asking));
  asking.assembler.name = "ptxas 13.1.1";
  EXPECT_FALSE(Counts(Trial(Verdict::kPassed), asking));
  TrialRecord unrecorded = Trial(Verdict::kPassed);
  unrecorded.assembler = {};
  EXPECT_TRUE(Counts(unrecorded, Asking()));
}

TEST(TrialStanding, FailuresExpireAndPassesDoNot) {
  for (const Verdict verdict : kFailures) {
    TrialRecord trial = Trial(verdict);
    trial.created = kNow - kFailureSeconds + 1;
    EXPECT_TRUE(Counts(trial, Asking()));
    trial.created = kNow - kFailureSeconds;
    EXPECT_FALSE(Counts(trial, Asking()));
    trial.created = kNow + 1;
    EXPECT_FALSE(Counts(trial, Asking())) << "a clock that ran ahead does not make it last";
  }
  TrialRecord passed = Trial(Verdict::kPassed);
  passed.created = 1;
  EXPECT_TRUE(Counts(passed, Asking()));
}

}  // namespace
}  // namespace laneshift::store
