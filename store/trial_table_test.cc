#include "store/trial_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/text.h"
#include "store/choice_standing.h"
#include "store/store.h"
#include "store/temporary_directory.h"

namespace laneshift::store {
namespace {

TrialRecord MakeTrial(const std::string& schedule) {
  return {.problem = "gemm m=1 n=2 k=3",
          .target = "sm_90a",
          .device = "H200",
          .schedule = schedule,
          .generator = "35",
          .driver = "13.0",
          .predicted_us = 11.5,
          .order = TimingOrder::kInterleaved,
          .samples = {{12.25, {.sm_mhz = 1980, .memory_mhz = 3201, .throttle_reasons = 4}}, {12.5, {.power_w = 512.5}}},
          .time_us = 12.375,
          .low_us = 12.25,
          .high_us = 12.5,
          .created = 1700000000};
}

std::vector<TrialRecord> TrialsIn(Store& store) {
  auto trials = store.GetTrials("gemm m=1 n=2 k=3", "sm_90a", "H200");
  EXPECT_TRUE(trials);
  return *trials;
}

TEST(Trials, OutliveTheStoreWithAllTheySay) {
  const TemporaryDirectory directory;
  TrialRecord hung = MakeTrial("tile=64x64");
  hung.verdict = Verdict::kHung;
  hung.detail = "no answer in 2 s";
  hung.predicted_us.reset();
  hung.samples.clear();
  hung.time_us = hung.low_us = hung.high_us = 0;
  hung.created += 1;
  TrialRecord in_series = MakeTrial("tile=128x128");
  in_series.order = TimingOrder::kInSeries;
  in_series.created += 2;
  {
    Store store = Store::Open({.directory = directory.path()});
    ASSERT_TRUE(store.PutTrial(MakeTrial("tile=128x128")));
    ASSERT_TRUE(store.PutTrial(hung));
    ASSERT_TRUE(store.PutTrial(hung)) << "the same again is no second trial";
    ASSERT_TRUE(store.PutTrial(in_series));
  }
  Store store = Store::Open({.directory = directory.path()});
  const std::vector<TrialRecord> trials = TrialsIn(store);
  ASSERT_EQ(trials.size(), 3u);
  EXPECT_EQ(trials[0], MakeTrial("tile=128x128"));
  EXPECT_EQ(trials[1], hung);
  EXPECT_EQ(trials[2], in_series);
  EXPECT_EQ(store.Stat().trials, 3);
  EXPECT_TRUE(store.GetTrials("gemm m=1 n=2 k=3", "sm_90a", "another")->empty());
  EXPECT_TRUE(store.GetTrials("gemm m=1 n=2 k=3", "sm_100a", "H200")->empty());
}

TEST(Trials, AreKeptInMemoryWhereThereIsNoDisk) {
  Store store = Store::Open({});
  ASSERT_TRUE(store.PutTrial(MakeTrial("a")));
  EXPECT_EQ(TrialsIn(store).size(), 1u);
}

TEST(Trials, EveryFieldIsPartOfTheId) {
  const std::function<void(TrialRecord&)> changes[] = {
      [](TrialRecord& r) { r.problem += " "; },
      [](TrialRecord& r) { r.target = "sm_100a"; },
      [](TrialRecord& r) { r.device += "x"; },
      [](TrialRecord& r) { r.schedule += "x"; },
      [](TrialRecord& r) { r.generator = "36"; },
      [](TrialRecord& r) { r.driver = "13.1"; },
      [](TrialRecord& r) { r.verdict = Verdict::kWrong; },
      [](TrialRecord& r) { r.detail = "x"; },
      [](TrialRecord& r) { r.predicted_us.reset(); },
      [](TrialRecord& r) { r.predicted_us = 1; },
      [](TrialRecord& r) { r.order = TimingOrder::kInSeries; },
      [](TrialRecord& r) { r.time_us += 1; },
      [](TrialRecord& r) { r.low_us -= 1; },
      [](TrialRecord& r) { r.high_us += 1; },
      [](TrialRecord& r) { r.created += 1; },
      [](TrialRecord& r) { r.samples.pop_back(); },
      [](TrialRecord& r) { std::swap(r.samples[0], r.samples[1]); },
      [](TrialRecord& r) { r.samples[1].time_us += 1; },
      [](TrialRecord& r) { r.samples[0].conditions.sm_mhz = 1500; },
      [](TrialRecord& r) { r.samples[0].conditions.memory_mhz.reset(); },
      [](TrialRecord& r) { r.samples[0].conditions.temperature_c = 60; },
      [](TrialRecord& r) { r.samples[0].conditions.throttle_reasons = 0; },
      [](TrialRecord& r) { r.samples[1].conditions.power_w = 0; },
      // The same number under another name.
      [](TrialRecord& r) { std::swap(r.samples[0].conditions.sm_mhz, r.samples[0].conditions.temperature_c); },
  };
  const std::string id = TrialId(MakeTrial("s"));
  for (size_t i = 0; i < std::size(changes); ++i) {
    TrialRecord changed = MakeTrial("s");
    changes[i](changed);
    EXPECT_NE(TrialId(changed), id) << "change " << i;
  }
}

TEST(Trials, ADamagedRowOrSampleIsNoTrial) {
  for (const char* damage : {"UPDATE trials SET time_us = 1", "UPDATE samples SET time_us = 1 WHERE n = 1",
                             "DELETE FROM samples WHERE n = 1", "UPDATE samples SET sm_mhz = 1 WHERE n = 0",
                             "UPDATE schedules SET text = 'other'", "UPDATE trials SET verdict = 'wrong'"}) {
    const TemporaryDirectory directory;
    Store store = Store::Open({.directory = directory.path()});
    ASSERT_TRUE(store.PutTrial(MakeTrial("s")));
    auto database = Database::Open(directory.File(), Database::Access::kCreate, 1000);
    ASSERT_TRUE(database && database->Execute(damage));
    EXPECT_TRUE(TrialsIn(store).empty()) << damage;
  }
}

TEST(Trials, WithoutNamesOrWithSenselessNumbersAreRefused) {
  Store store = Store::Open({});
  for (std::string TrialRecord::*name :
       {&TrialRecord::problem, &TrialRecord::target, &TrialRecord::device, &TrialRecord::schedule}) {
    TrialRecord trial = MakeTrial("s");
    (trial.*name).clear();
    EXPECT_EQ(store.PutTrial(trial).error().code, ErrorCode::kInvalidArgument);
  }
  TrialRecord endless = MakeTrial("s");
  endless.samples[1].time_us = std::nan("");
  EXPECT_EQ(store.PutTrial(endless).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(store.Stat().trials, 0);
}

TEST(Trials, DetailsBecomeOneLineOfText) {
  TrialRecord trial = MakeTrial("s");
  trial.detail = "line\nnext \xff caf\xc3\xa9 \xed\xa0\x80 \xe2\x82";
  EXPECT_EQ(CanonicalTrial(trial, 1).detail, "line?next ? caf\xc3\xa9 ??? ??");
}

ChoiceRecord Choice(const std::string& schedule, ChoiceSource source, const std::string& generator,
                    const std::string& driver, int64_t created = 1) {
  return {.problem = "p",
          .target = "t",
          .device = "d",
          .schedule = schedule,
          .source = source,
          .generator = generator,
          .driver = driver,
          .created = created};
}

TEST(ChoiceStanding, OwnGeneratorFirstThenStrengthThenDriver) {
  const auto picked = [](std::vector<ChoiceRecord> choices) {
    const auto best = PickChoice(choices, {"35", "13.0"});
    return best ? base::Cat(best->record.schedule, " ", static_cast<int>(best->standing)) : "none";
  };
  const ChoiceRecord rule = Choice("rule", ChoiceSource::kRule, "35", "13.0");
  const ChoiceRecord model = Choice("model", ChoiceSource::kPredicted, "35", "13.0");
  const ChoiceRecord stale = Choice("stale", ChoiceSource::kMeasured, "35", "12.8");
  const ChoiceRecord prior = Choice("prior", ChoiceSource::kMeasured, "34", "13.0");
  const ChoiceRecord older = Choice("older", ChoiceSource::kMeasured, "33", "13.0", 0);
  EXPECT_EQ(picked({}), "none");
  EXPECT_EQ(picked({rule}), "none");
  EXPECT_EQ(picked({older, prior, rule}), "prior 2");
  EXPECT_EQ(picked({prior, model, older}), "model 0");
  EXPECT_EQ(picked({prior, model, stale}), "stale 1");
  EXPECT_EQ(picked({stale, Choice("now", ChoiceSource::kMeasured, "35", "13.0", 0)}), "now 0");
}

TEST(ChoiceStanding, RulesAreRememberedOnlyOnTheirBasis) {
  ChoiceRecord rule = Choice("rule", ChoiceSource::kRule, "35", "13.0");
  ChoiceRecord model = Choice("model", ChoiceSource::kPredicted, "35", "13.0");
  rule.basis = model.basis = "facts";
  EXPECT_FALSE(RememberedRule({}, "35", "facts"));
  EXPECT_FALSE(RememberedRule({model}, "35", "facts")) << "it is PickChoice's";
  EXPECT_FALSE(RememberedRule({rule}, "34", "facts"));
  EXPECT_FALSE(RememberedRule({rule}, "35", "other facts"));
  EXPECT_FALSE(RememberedRule({Choice("old", ChoiceSource::kRule, "35", "13.0")}, "35", "")) << "of no known basis";
  EXPECT_EQ(RememberedRule({model, rule}, "35", "facts"), rule);
}

TEST(ChoiceStanding, AStoppedSearchLeavesTheChoiceBeforeIt) {
  ChoiceRecord choice = Choice("new", ChoiceSource::kMeasured, "35", "13.0");
  EXPECT_EQ(SettledSchedule(choice), "new");
  EXPECT_FALSE(IsStopped(choice));
  choice.basis = StoppedBasis("tile=64x64 stages=4");
  EXPECT_EQ(SettledSchedule(choice), "tile=64x64 stages=4");
  EXPECT_TRUE(IsStopped(choice));
  choice.basis = StoppedBasis(std::nullopt);
  EXPECT_EQ(SettledSchedule(choice), std::nullopt);
  EXPECT_TRUE(IsStopped(choice));
}

TEST(ChoiceStanding, GeneratorsDoNotOverwriteEachOthersChoices) {
  const TemporaryDirectory directory;
  Store store = Store::Open({.directory = directory.path()});
  ASSERT_TRUE(store.PutChoice(Choice("old", ChoiceSource::kMeasured, "34", "13.0")));
  ASSERT_TRUE(store.PutChoice(Choice("new", ChoiceSource::kPredicted, "35", "13.0")));
  const auto choices = store.GetChoices("p", "t", "d");
  ASSERT_TRUE(choices);
  ASSERT_EQ(choices->size(), 2u);
  EXPECT_EQ((*choices)[0].schedule, "old");
  EXPECT_EQ((*choices)[1].schedule, "new");
}

}  // namespace
}  // namespace laneshift::store
