// The search on a simulated device: times that are known, with noise and a clock that wanders.
#include "autotune/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "base/text.h"

namespace laneshift::autotune {
namespace {

using base::Cat;
using store::TimingOrder;
using store::Verdict;

// What the device would do with each schedule, by name.
struct Truth {
  double us = 0;
  Verdict verdict = Verdict::kPassed;
  double power = 1;  // by which the time is multiplied where the device is at its limit and runs nothing else
};

class SimulatedBench : public Bench {
 public:
  SimulatedBench(std::map<std::string, Truth> truths, double noise, uint32_t seed)
      : truths_(std::move(truths)), noise_(noise), random_(seed) {}

  Result<std::vector<Trial>> Check(const std::vector<Schedule>& schedules) override {
    std::vector<Trial> trials;
    for (const Schedule& schedule : schedules) {
      const std::string name = PrintSchedule(schedule);
      ++checks[name];
      trials.push_back({.verdict = truths_.at(name).verdict, .detail = "simulated"});
    }
    return trials;
  }

  Result<std::vector<Trial>> Time(const std::vector<Schedule>& schedules, int rounds, TimingOrder order) override {
    ++timings;
    in_series += order == TimingOrder::kInSeries;
    std::vector<Trial> trials(schedules.size());
    for (int round = 0; round < rounds; ++round) {
      // The clock steps for all alike, now and then by 15 %.
      if (random_() % 16 == 0) clock_ = clock_ == 1 ? 1.15 : 1;
      // It is slower by as much after every batch.
      const double warm = std::pow(warming, timings - 1);
      for (size_t i = 0; i < schedules.size(); ++i) {
        const double noise = std::normal_distribution<double>(1, noise_)(random_);
        const Truth& truth = truths_.at(PrintSchedule(schedules[i]));
        const double power = order == TimingOrder::kInSeries ? truth.power : 1;
        trials[i].samples.push_back({truth.us * power * clock_ * warm * noise, {.throttle_reasons = limited ? 4 : 0}});
      }
    }
    return trials;
  }

  std::map<std::string, int> checks;
  int timings = 0, in_series = 0;
  double warming = 1;
  bool limited = false;  // by power

 private:
  const std::map<std::string, Truth> truths_;
  const double noise_;
  std::mt19937 random_;
  double clock_ = 1;
};

// A space with a structure: the model is right except for a constant ratio that a whole family of tiles has.
struct World {
  std::vector<Candidate> candidates;  // best prediction first
  std::map<std::string, Truth> truths;
  double best = 1e30;

  explicit World(uint32_t seed, double family_error = 0.3) {
    std::mt19937 random(seed);
    for (const int m : {64, 128}) {
      for (const int n : {16, 32, 48, 64, 96, 128, 160, 192, 256}) {
        for (const int k : {64, 128}) {
          for (const int stages : {3, 4, 6}) {
            Candidate candidate;
            candidate.schedule = {.tile_m = m, .tile_n = n, .tile_k = k, .stages = stages};
            candidate.name = PrintSchedule(candidate.schedule);
            const double ideal = 10 + 2000.0 / (m * std::sqrt(n)) + 1.5 / stages;
            candidate.predicted_us = ideal;
            const double family = k == 128 ? 1 : 1 + family_error;
            const double local = std::uniform_real_distribution<double>(0.97, 1.03)(random);
            truths[candidate.name] = {ideal * family * local};
            best = std::min(best, truths[candidate.name].us);
            candidates.push_back(std::move(candidate));
          }
        }
      }
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.predicted_us < b.predicted_us; });
  }

  std::vector<std::optional<Trial>> NothingKnown() const {
    return std::vector<std::optional<Trial>>(candidates.size());
  }
};

TEST(Search, SixteenTrialsComeNearTheBestOfAll) {
  double log_sum = 0;
  const int worlds = 20;
  for (uint32_t seed = 0; seed < worlds; ++seed) {
    const World world(seed);
    SimulatedBench bench(world.truths, 0.02, seed);
    const auto outcome = Search(world.candidates, world.NothingKnown(), std::nullopt, bench, {.max_trials = 16});
    ASSERT_TRUE(outcome.has_value());
    ASSERT_TRUE(outcome->winner.has_value());
    EXPECT_EQ(outcome->tried, 16);
    const double ratio = world.truths.at(world.candidates[*outcome->winner].name).us / world.best;
    EXPECT_LT(ratio, 1.08) << "world " << seed;
    log_sum += std::log(ratio);
  }
  EXPECT_LT(std::exp(log_sum / worlds), 1.03);
}

TEST(Search, ExhaustiveTriesEveryOneOnceAndFindsTheBest) {
  const World world(3);
  SimulatedBench bench(world.truths, 0.01, 3);
  const auto outcome = Search(world.candidates, world.NothingKnown(), std::nullopt, bench,
                              {.kind = SearchKind::kExhaustive, .max_trials = 1});
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(static_cast<size_t>(outcome->tried), world.candidates.size());
  for (const Candidate& candidate : world.candidates) EXPECT_EQ(bench.checks[candidate.name], 1) << candidate.name;
  EXPECT_LT(world.truths.at(world.candidates[*outcome->winner].name).us, 1.01 * world.best);
}

// A device that slows down while it is busy: what is timed late is no worse for that.
TEST(Search, WhatIsTimedLateIsComparedWithWhatIsTimedEarly) {
  double log_sum = 0;
  const int worlds = 20;
  for (uint32_t seed = 0; seed < worlds; ++seed) {
    const World world(seed);
    SimulatedBench bench(world.truths, 0.01, seed);
    bench.warming = 1.04;
    const auto outcome =
        Search(world.candidates, world.NothingKnown(), std::nullopt, bench, {.kind = SearchKind::kExhaustive});
    ASSERT_TRUE(outcome.has_value() && outcome->winner.has_value());
    const auto true_us = [&](size_t i) { return world.truths.at(world.candidates[i].name).us; };
    log_sum += std::log(true_us(*outcome->winner) / world.best);
    // Times of all batches are those of the first one.
    const double first = EstimateOf(*outcome->trials[0]).median / true_us(0);
    for (size_t i = 0; i < world.candidates.size(); ++i) {
      EXPECT_NEAR(EstimateOf(*outcome->trials[i]).median / (first * true_us(i)), 1, 0.04) << "world " << seed;
    }
  }
  EXPECT_LT(std::exp(log_sum / worlds), 1.01);
}

// Where many are alike, those of the most luck are the finalists; the model's best is among them all the same.
TEST(Search, TheFirstThatWasTimedTakesPartInTheEnd) {
  int first_won = 0;
  const int worlds = 20;
  for (uint32_t seed = 0; seed < worlds; ++seed) {
    World world(seed);
    for (auto& [name, truth] : world.truths) truth.us = 50;
    world.truths[world.candidates[0].name].us = 47;
    SimulatedBench bench(world.truths, 0.1, seed);
    const auto outcome =
        Search(world.candidates, world.NothingKnown(), std::nullopt, bench, {.kind = SearchKind::kExhaustive});
    first_won += outcome->winner == 0u;
  }
  EXPECT_GE(first_won, 14) << "of 20";
}

// What runs without tuning, although the model predicts that all others are faster: it would not be tried otherwise.
TEST(Search, TheReferenceIsTriedFirstAndTakesPartInTheEnd) {
  for (const double reference_us : {47.0, 60.0}) {
    for (uint32_t seed = 0; seed < 10; ++seed) {
      World world(seed);
      const size_t reference = world.candidates.size() - 1;
      for (auto& [name, truth] : world.truths) truth.us = 50;
      world.truths[world.candidates[reference].name].us = reference_us;
      SimulatedBench bench(world.truths, 0.01, seed);
      std::vector<std::string> tried;
      SearchOptions options{.max_trials = 12, .reference = reference};
      options.on_trial = [&](const Candidate& candidate, const Trial&) { tried.push_back(candidate.name); };
      const auto outcome = Search(world.candidates, world.NothingKnown(), std::nullopt, bench, options);
      ASSERT_TRUE(outcome.has_value() && outcome->winner.has_value());
      EXPECT_EQ(tried.front(), world.candidates[reference].name);
      EXPECT_EQ(bench.checks[tried.front()], 1);
      EXPECT_EQ(outcome->tried, 12);
      EXPECT_EQ(*outcome->winner == reference, reference_us < 50) << "seed " << seed;
      // Trials have 20 rounds, the end has 40 and more: what is far slower takes part in it only as the yardstick.
      const size_t rounds = outcome->trials[reference]->samples.size();
      EXPECT_TRUE(reference_us < 50 || rounds >= 40) << rounds;
    }
  }
}

// Both are in the first batch, the previous winner first; once, if they are the same.
TEST(Search, TheReferenceIsTriedNextToThePreviousWinner) {
  const World world(17);
  const size_t last = world.candidates.size() - 1;
  for (const size_t previous : {size_t{70}, last}) {
    SimulatedBench bench(world.truths, 0.01, 17);
    std::vector<size_t> tried;
    SearchOptions options{.max_trials = 8, .reference = last};
    options.on_trial = [&](const Candidate& candidate, const Trial&) {
      tried.push_back(static_cast<size_t>(&candidate - world.candidates.data()));
    };
    const auto outcome = Search(world.candidates, world.NothingKnown(), previous, bench, options);
    ASSERT_TRUE(outcome.has_value());
    EXPECT_EQ(outcome->tried, 8);
    EXPECT_EQ(tried[0], previous);
    EXPECT_EQ(tried[1], previous == last ? 0 : last);
    for (const auto& [name, count] : bench.checks) EXPECT_EQ(count, 1) << name;
  }
}

TEST(Search, TheSameMeasurementsMakeTheSameChoice) {
  const World world(5);
  std::optional<size_t> first;
  for (int run = 0; run < 2; ++run) {
    SimulatedBench bench(world.truths, 0.03, 77);
    const auto outcome = Search(world.candidates, world.NothingKnown(), std::nullopt, bench, {});
    if (run == 0) first = outcome->winner;
    EXPECT_EQ(outcome->winner, first);
  }
}

// Two schedules are equally fast, the others clearly slower.
World Twins(std::vector<std::string>& twins) {
  World world(1, 0);
  for (auto& [name, truth] : world.truths) truth.us = 50;
  for (const size_t i : {2u, 5u}) {
    twins.push_back(world.candidates[i].name);
    world.truths[twins.back()].us = 40;
  }
  return world;
}

TEST(Search, InsideTheNoiseTheBestPredictionWinsWhateverTheNoiseSays) {
  std::vector<std::string> twins;
  const World world = Twins(twins);
  int other = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    SimulatedBench bench(world.truths, 0.02, seed);
    const auto outcome = Search(world.candidates, world.NothingKnown(), std::nullopt, bench, {});
    other += world.candidates[*outcome->winner].name != twins[0];
  }
  // Of 20 intervals of 95 % some miss.
  EXPECT_LE(other, 4);
}

TEST(Search, InsideTheNoiseThePreviousWinnerStays) {
  std::vector<std::string> twins;
  const World world = Twins(twins);
  const auto previous = static_cast<size_t>(std::find_if(world.candidates.begin(), world.candidates.end(),
                                                         [&](const Candidate& c) { return c.name == twins[1]; }) -
                                            world.candidates.begin());
  int other = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    SimulatedBench bench(world.truths, 0.02, seed);
    other += Search(world.candidates, world.NothingKnown(), previous, bench, {})->winner != previous;
  }
  EXPECT_LE(other, 4);
}

// In turn all have the clock that the power of all allows; by itself the one that takes least is the fastest.
TEST(Search, AtTheLimitOfPowerTheOneThatTakesLeastWins) {
  for (const bool limited : {false, true}) {
    for (uint32_t seed = 0; seed < 10; ++seed) {
      std::vector<std::string> twins;
      World world = Twins(twins);
      world.truths[twins[1]] = {.us = 41, .power = 0.9};  // 2 % slower in turn
      const bool slow = seed % 2 != 0;
      for (auto& [name, truth] : world.truths) truth.us *= slow ? 1000 : 1;
      SimulatedBench bench(world.truths, 0.002, seed);
      bench.limited = limited;
      const auto outcome = Search(world.candidates, world.NothingKnown(), std::nullopt, bench, {});
      EXPECT_EQ(world.candidates[*outcome->winner].name, twins[limited ? 1 : 0]) << "seed " << seed;
      EXPECT_EQ(bench.in_series, limited ? 1 : 0);
      const size_t rounds = outcome->trials[*outcome->winner]->samples.size();
      EXPECT_TRUE(!limited || rounds == (slow ? 18 : 162)) << rounds;
      // A search that is repeated, or was interrupted before it stored its choice, times nothing again.
      SimulatedBench later(world.truths, 0.002, seed + 100);
      const auto again = Search(world.candidates, outcome->trials, std::nullopt, later, {});
      EXPECT_EQ(again->winner, outcome->winner);
      EXPECT_EQ(later.timings, 0);
    }
  }
}

TEST(Search, WhatFailsIsTriedOnceAndNeverWins) {
  World world(7);
  // The most promising ones are the ones that fail.
  const Verdict verdicts[] = {Verdict::kWrong, Verdict::kCrashed, Verdict::kHung, Verdict::kRefused};
  for (size_t i = 0; i < 4; ++i) world.truths[world.candidates[i].name] = {1, verdicts[i]};
  SimulatedBench bench(world.truths, 0.01, 7);
  std::map<std::string, Verdict> reported;
  SearchOptions options{.kind = SearchKind::kExhaustive};
  options.on_trial = [&](const Candidate& candidate, const Trial& trial) { reported[candidate.name] = trial.verdict; };
  const auto outcome = Search(world.candidates, world.NothingKnown(), std::nullopt, bench, options);
  ASSERT_TRUE(outcome->winner.has_value());
  EXPECT_GE(*outcome->winner, 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(bench.checks[world.candidates[i].name], 1);
    EXPECT_EQ(reported[world.candidates[i].name], verdicts[i]);
  }
  // A later search knows all of it and measures nothing.
  SimulatedBench later(world.truths, 0.01, 8);
  const auto again = Search(world.candidates, outcome->trials, outcome->winner, later, options);
  EXPECT_EQ(again->winner, outcome->winner);
  EXPECT_EQ(again->tried, 0);
  EXPECT_TRUE(later.checks.empty());
  EXPECT_EQ(later.timings, 0);
}

TEST(Search, KnownTrialsCountSoThatAnInterruptedSearchIsFinishedAndARepeatedOneIsNot) {
  const World world(15);
  SimulatedBench bench(world.truths, 0.01, 15);
  SearchOptions options{.max_trials = 20};
  options.expired = [&] { return bench.timings > 0; };
  const auto part = Search(world.candidates, world.NothingKnown(), std::nullopt, bench, options);
  EXPECT_EQ(part->tried, 8);
  options.expired = [] { return false; };
  const auto rest = Search(world.candidates, part->trials, part->winner, bench, options);
  EXPECT_EQ(rest->tried, 12);
  for (const auto& [name, count] : bench.checks) EXPECT_EQ(count, 1) << name;
  const auto again = Search(world.candidates, rest->trials, rest->winner, bench, options);
  EXPECT_EQ(again->tried, 0);
  EXPECT_EQ(again->winner, rest->winner);
}

TEST(Search, NothingPassesAndNothingIsChosen) {
  World world(9);
  for (auto& [name, truth] : world.truths) truth.verdict = Verdict::kWrong;
  SimulatedBench bench(world.truths, 0.01, 9);
  const auto outcome = Search(world.candidates, world.NothingKnown(), std::nullopt, bench, {.max_trials = 12});
  ASSERT_TRUE(outcome.has_value());
  EXPECT_FALSE(outcome->winner.has_value());
  EXPECT_EQ(outcome->tried, 12);
}

TEST(Search, StopsBetweenMeasurementsAndKeepsTheBestSoFar) {
  const World world(11);
  SimulatedBench bench(world.truths, 0.01, 11);
  SearchOptions options;
  options.expired = [&] { return !bench.checks.empty(); };
  const auto outcome = Search(world.candidates, world.NothingKnown(), std::nullopt, bench, options);
  EXPECT_FALSE(outcome->complete);
  EXPECT_EQ(outcome->tried, 8);
  EXPECT_EQ(bench.timings, 1);
  EXPECT_TRUE(outcome->winner.has_value());
}

TEST(Search, MeasurementsCorrectThePredictionsOfWhatIsLikeThem) {
  // The model ranks a whole family first that is three times as slow as predicted: after the first batch the search
  // leaves it.
  World world(13, 2.0);
  SimulatedBench bench(world.truths, 0.01, 13);
  const auto outcome = Search(world.candidates, world.NothingKnown(), std::nullopt, bench, {.max_trials = 16});
  int slow_family = 0;
  for (const auto& [name, count] : bench.checks) {
    slow_family += name.find("x64 ") != std::string::npos;
    EXPECT_EQ(count, 1);
  }
  EXPECT_LE(slow_family, 6) << "of 16";
}

TEST(Estimate, HoldsTheMedianAsOftenAsItSays) {
  std::mt19937 random(1);
  int held = 0;
  const int experiments = 2000;
  for (int i = 0; i < experiments; ++i) {
    std::vector<double> times;
    for (int j = 0; j < 31; ++j) times.push_back(std::exponential_distribution<double>(1)(random));
    const Estimate estimate = EstimateOf(times);
    EXPECT_LE(estimate.low, estimate.median);
    EXPECT_LE(estimate.median, estimate.high);
    held += estimate.low <= std::log(2.0) && std::log(2.0) <= estimate.high;
  }
  EXPECT_GT(held, experiments * 0.93);
  EXPECT_LT(held, experiments * 0.99);
}

TEST(Estimate, OfFewSamplesIsAllOfThem) {
  EXPECT_EQ(EstimateOf(std::vector<double>{}).median, 0);
  const Estimate estimate = EstimateOf(std::vector<double>{3, 1, 2});
  EXPECT_EQ(estimate.low, 1);
  EXPECT_EQ(estimate.median, 2);
  EXPECT_EQ(estimate.high, 3);
}

}  // namespace
}  // namespace laneshift::autotune
