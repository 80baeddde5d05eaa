// Tuner: finds the fastest schedule of a problem by measurement, and keeps what it learns in the store.
//
// Every trial is stored as soon as it is measured and not measured again as long as it is valid
// (store/trial_standing.h), so an interrupted search resumes, and a candidate that failed is not tried again at once.
// On an emulated device nothing can be timed: the model's best candidate that the emulator verifies is stored as
// predicted. Thread-safety: Tune may be called from several threads, each with a separate client; the store is shared.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autotune/search.h"
#include "autotune/worker_client.h"
#include "laneshift/problem.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"
#include "store/store.h"

namespace laneshift::autotune {

// The progress of a search; for a progress bar.
struct TuneProgress {
  std::string problem;
  int trials = 0, max_trials = 0;  // of this search, beyond the known ones
  int known = 0;                   // from earlier searches
  int failed = 0;
  std::optional<double> best_us;     // never rises
  std::optional<double> default_us;  // measured, of what runs without tuning: the model's first choice
  double predicted_us = 0;           // of the same
  double seconds = 0;                // since the search began
};

struct TuneOptions {
  SearchKind search = SearchKind::kHalving;
  int max_trials = 64;     // of each problem, those of earlier searches included; exhaustive: all there are
  double max_seconds = 0;  // of each problem; 0: no limit
  ScheduleConstraint constraint{};
  std::vector<int64_t> group_sizes{};  // rows of each group in the worker's trials, for predictions; empty: an average
  std::function<bool()> stop = [] { return false; };  // asked between measurements; see WorkerOptions
  std::function<void(const TuneProgress&)> on_progress = [](const TuneProgress&) {};
};

// A candidate and what is known about it.
struct TunedCandidate {
  std::string schedule;
  double predicted_us = 0;
  std::optional<Trial> trial{};  // nothing: not tried
};

struct TuneOutcome {
  std::string problem, target, device, device_name;
  std::string schedule;              // the winner
  std::optional<Estimate> time_us;   // nothing: predicted only
  double predicted_us = 0;           // of the winner
  bool verified = false;             // the winner computes the right numbers, on the device or the emulator
  bool complete = true;              // false: stopped before the end
  std::string default_schedule;      // the model's first choice
  std::optional<double> default_us;  // measured
  double default_predicted_us = 0;
  int trials = 0;                          // of this search
  int known = 0;                           // from earlier searches
  std::array<int, 5> verdicts{};           // of all that are known, by store::Verdict
  double seconds = 0;                      // of this search
  std::vector<TunedCandidate> candidates;  // best prediction first
};

// ENSURES: the winner is the store's choice for the problem on the worker's device. kUnsupported: no schedule fits;
// kWrongResult: none of those that were tried computes the right numbers; else as WorkerClient. REQUIRES: `problem` is
// complete.
Result<TuneOutcome> Tune(const Problem& problem, WorkerClient& worker, store::Store& store, const TuneOptions& options);

}  // namespace laneshift::autotune
