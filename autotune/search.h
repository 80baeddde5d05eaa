// Search: finds the fastest of the ranked schedules with few trials.
//
// A trial is one schedule that is compiled, checked against the reference and timed. Halving tries the first of the
// ranking, then lets the measurements correct the predictions of similar schedules and tries the best of the rest. The
// fastest are then timed again, interleaved, with twice the rounds each time, until one is significantly faster than
// all others. Exhaustive tries every schedule and ends in the same way. Among schedules without a significant
// difference the previous winner stays, otherwise the one of the best prediction wins, so that two searches choose the
// same.
//
// Where the device was at its limit of power, the fastest are timed in series instead: interleaved, all have the clock
// that the power of all of them allows, by itself each has its own.
//
// Between batches the device may have warmed up and slowed down. Therefore one schedule, the reference, is timed with
// every batch, and times of different batches are compared after division by the drift of its own time. It takes part
// in the end, so that the winner is no slower than it.
//
// Given the same measurements the outcome is the same. Thread-safety: none; the Bench is called from Search's thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autotune/statistics.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"
#include "store/records.h"

namespace laneshift::autotune {

struct Candidate {
  Schedule schedule;
  std::string name{};  // PrintSchedule
  double predicted_us = 0;
};

// How a candidate fared: store::TrialRecord without what is the same for all of a search.
struct Trial {
  store::Verdict verdict = store::Verdict::kPassed;
  std::string detail{};
  store::TimingOrder order = store::TimingOrder::kInterleaved;
  std::vector<store::Sample> samples{};  // as measured
  double drift = 1;  // how many times as slow the yardstick was with this trial as when it was first timed

  bool Timed() const { return verdict == store::Verdict::kPassed && !samples.empty(); }
};

// The trial's time, as it would have been when the yardstick was first timed.
Estimate EstimateOf(const Trial& trial);

// Where candidates are tried. An Error means that nothing more can be tried at all.
class Bench {
 public:
  virtual ~Bench() = default;
  // Compiles, runs and checks each; one trial each, without samples.
  virtual Result<std::vector<Trial>> Check(const std::vector<Schedule>& schedules) = 0;
  // Times schedules that passed, `rounds` times; one trial each.
  virtual Result<std::vector<Trial>> Time(const std::vector<Schedule>& schedules, int rounds,
                                          store::TimingOrder order) = 0;
};

enum class SearchKind { kHalving, kExhaustive };
std::string_view SearchKindName(SearchKind kind);  // "halving", "exhaustive"

struct SearchOptions {
  SearchKind kind = SearchKind::kHalving;
  int max_trials = 16;  // the known ones included, so that a search that is repeated has nothing to do; exhaustive: all
  // What runs without tuning: tried first, after the previous winner; without one, no winner is slower.
  size_t reference = 0;
  // Whether the previous winner is that of a search that went to its end and had all of the known trials: it stays
  // where nothing is added to them.
  bool settled = true;
  // Asked between measurements; true ends the search with what is known.
  std::function<bool()> expired = [] { return false; };
  // Called for everything that is measured, as soon as it is.
  std::function<void(const Candidate&, const Trial&)> on_trial = [](const Candidate&, const Trial&) {};
};

struct SearchOutcome {
  std::optional<size_t> winner;              // nothing passed: nothing
  std::vector<std::optional<Trial>> trials;  // by candidate, the known ones included
  int tried = 0;                             // beyond the known ones
  bool complete = true;                      // false: it expired
  bool stands = false;                       // the winner is the previous one, and nothing was measured
};

// `candidates`: best prediction first. `known`: by candidate, what earlier searches found last; not tried again.
// `previous`: the winner of an earlier search. A search that was interrupted ends, given its trials, as it would have
// without the interruption, and measures what it had not yet measured.
Result<SearchOutcome> Search(const std::vector<Candidate>& candidates, std::vector<std::optional<Trial>> known,
                             std::optional<size_t> previous, Bench& bench, const SearchOptions& options);

}  // namespace laneshift::autotune
