#include "autotune/tuner.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <set>
#include <utility>

#include "autotune/ranking.h"
#include "base/log.h"
#include "base/text.h"
#include "compiler/compile.h"
#include "store/choice_standing.h"
#include "store/trial_standing.h"

namespace laneshift::autotune {
namespace {

using base::Cat;
using store::ChoiceSource;
using store::TrialRecord;
using store::Verdict;

// The number of the model's best that are checked on an emulator before the tuner gives up.
constexpr size_t kMaxVerified = 4;
// How often a winner may fail its second check.
constexpr int kMaxRelapses = 3;
constexpr int kPatienceMs = 500;  // between two questions whether to stop

class Tuning {
 public:
  Tuning(const Problem& problem, WorkerClient& worker, store::Store& store, const TuneOptions& options)
      : problem_(problem), name_(PrintProblem(problem)), bench_(worker, name_), store_(store), options_(options) {}

  Result<TuneOutcome> Run(const WorkerHello& hello) {
    hello_ = hello;
    LS_TRY(Rank());
    LS_ASSIGN(const store::FlightLock lock, WaitForOthers());
    ReadStore();
    LS_TRY(hello.emulated ? Verify() : Measure());
    return std::move(outcome_);
  }

 private:
  Status Rank() {
    LS_ASSIGN(const target::Target* target, target::FindTarget(hello_.target));
    const Machine machine = MachineOf(*target, hello_.sm_count, hello_.device_key, store_);
    const Ranking ranking =
        RankSchedules(problem_, options_.constraint, *target, machine, RingDepths::kSeveral, options_.group_sizes);
    if (ranking.schedules.empty()) return NothingFits(ranking.refused, *target);
    for (const RankedSchedule& ranked : ranking.schedules) {
      candidates_.push_back({ranked.schedule, PrintSchedule(ranked.schedule), ranked.predicted_us});
    }
    known_.resize(candidates_.size());
    outcome_.problem = name_;
    outcome_.target = hello_.target;
    outcome_.device = hello_.device_key;
    outcome_.device_name = hello_.device_name;
    // What runs without tuning is chosen before sizes of groups are known.
    LS_ASSIGN(const Schedule usual, ChooseSchedule(problem_, options_.constraint, *target, machine));
    outcome_.default_schedule = PrintSchedule(usual);
    default_ = *IndexOf(outcome_.default_schedule);
    outcome_.default_predicted_us = candidates_[default_].predicted_us;
    return Ok();
  }

  // Of several processes that tune the same problem, one does; the others find its trials in the store.
  Result<store::FlightLock> WaitForOthers() {
    for (;;) {
      store::FlightLock lock =
          store_.BeginFlight(Cat("tune ", name_, " ", hello_.target, " ", hello_.device_key), kPatienceMs);
      if (lock.held() || !lock.waited()) return lock;
      if (options_.stop())
        return MakeError(ErrorCode::kTimeout, "stopped while another process was tuning the problem");
    }
  }

  std::optional<size_t> IndexOf(std::string_view schedule) const {
    const auto found = std::find_if(candidates_.begin(), candidates_.end(),
                                    [&](const Candidate& candidate) { return candidate.name == schedule; });
    if (found == candidates_.end()) return std::nullopt;
    return static_cast<size_t>(found - candidates_.begin());
  }

  void ReadStore() {
    const auto trials = store_.GetTrials(name_, hello_.target, hello_.device_key);
    std::vector<int64_t> made(candidates_.size());  // by candidate, when its known trial was
    if (trials) {
      const store::Circumstances here{Revision(), hello_.assembler, std::time(nullptr)};
      for (const TrialRecord& record : *trials) {
        const auto index = store::Counts(record, here) ? IndexOf(record.schedule) : std::nullopt;
        if (!index) continue;
        auto& known = known_[*index];
        // One failure outweighs any number of passes.
        if (known && known->verdict != Verdict::kPassed) continue;
        // Of a second's trials the last one is that in series, or has the most rounds.
        const bool failed = record.verdict != Verdict::kPassed;
        const auto rank = [](const auto& trial) { return std::pair(trial.order, trial.samples.size()); };
        if (known && !failed && record.created == made[*index] && rank(record) < rank(*known)) continue;
        made[*index] = record.created;
        known =
            Trial{.verdict = record.verdict, .detail = record.detail, .order = record.order, .samples = record.samples};
      }
    }
    for (const auto& known : known_) outcome_.known += known.has_value();
    const auto choices = store_.GetChoices(name_, hello_.target, hello_.device_key);
    if (!choices) return;
    const auto picked = store::PickChoice(*choices, Revision());
    if (!picked || picked->record.source != ChoiceSource::kMeasured) return;
    chosen_before_ = store::SettledSchedule(picked->record);
    if (chosen_before_) previous_ = IndexOf(*chosen_before_);
    settled_ =
        !store::IsStopped(picked->record) && picked->record.created >= *std::max_element(made.begin(), made.end());
  }

  store::Revision Revision() const { return {compiler::Generator(), hello_.driver}; }

  double Seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count(); }

  void Keep(const Candidate& candidate, const Trial& trial) {
    TrialRecord record{.problem = name_,
                       .target = hello_.target,
                       .device = hello_.device_key,
                       .schedule = candidate.name,
                       .generator = compiler::Generator(),
                       .driver = hello_.driver,
                       .assembler = hello_.assembler,
                       .verdict = trial.verdict,
                       .detail = trial.detail,
                       .predicted_us = candidate.predicted_us,
                       .order = trial.order,
                       .samples = trial.samples};
    const Estimate estimate = EstimateOf(trial.samples);
    record.time_us = estimate.median;
    record.low_us = estimate.low;
    record.high_us = estimate.high;
    const Status kept = store_.PutTrial(record);
    if (!kept) LS_LOG(kTune, warn, "a trial is not stored: ", kept.error().message);
  }

  void Report(const Candidate& candidate, const Trial& trial) {
    Keep(candidate, trial);
    const auto index = IndexOf(candidate.name);
    known_[*index] = trial;
    if (reported_.insert(*index).second) ++progress_.trials;
    progress_.failed += trial.verdict != Verdict::kPassed;
    Tell();
  }

  void Tell() {
    progress_.problem = name_;
    progress_.known = outcome_.known;
    progress_.predicted_us = outcome_.default_predicted_us;
    // A time that is measured again may rise; the best that was seen does not.
    for (size_t i = 0; i < known_.size(); ++i) {
      if (!known_[i] || !known_[i]->Timed()) continue;
      const double us = EstimateOf(*known_[i]).median;
      if (i == default_) progress_.default_us = us;
      if (!progress_.best_us || us < *progress_.best_us) progress_.best_us = us;
    }
    progress_.seconds = Seconds();
    options_.on_progress(progress_);
  }

  Status Measure() {
    SearchOptions search{
        .kind = options_.search, .max_trials = options_.max_trials, .reference = default_, .settled = settled_};
    search.expired = [&] { return options_.stop() || (options_.max_seconds > 0 && Seconds() > options_.max_seconds); };
    search.on_trial = [&](const Candidate& candidate, const Trial& trial) { Report(candidate, trial); };
    const auto all = static_cast<int>(candidates_.size());
    const int most = options_.search == SearchKind::kExhaustive ? all : std::min(all, options_.max_trials);
    progress_.max_trials = std::max(0, most - outcome_.known);
    Tell();
    for (int relapses = 0;; ++relapses) {
      auto searched = Search(candidates_, known_, previous_, bench_, search);
      if (!searched && options_.stop()) return FinishStopped();
      LS_ASSIGN(SearchOutcome found, std::move(searched));
      known_ = std::move(found.trials);
      outcome_.trials += found.tried;
      outcome_.complete = found.complete;
      if (!found.winner) return NothingPassed();
      // Once more: a race may have been won by luck. What is unchanged since it was last checked needs no second look.
      if (found.stands || !found.complete) return Finish(*found.winner);
      auto checked = bench_.Check({candidates_[*found.winner].schedule});
      if (!checked && options_.stop()) return FinishStopped();
      LS_ASSIGN(std::vector<Trial> again, std::move(checked));
      if (again.front().verdict == Verdict::kPassed) return Finish(*found.winner);
      Report(candidates_[*found.winner], again.front());
      if (relapses == kMaxRelapses) return NothingPassed();
      // What is left was not tried a second time, but one of it wins now.
      if (previous_ == found.winner) previous_.reset();
      search.settled = false;
    }
  }

  // In the midst of a trial, which has no verdict then: the fastest of what was measured is the choice.
  Status FinishStopped() {
    outcome_.complete = false;
    outcome_.trials = progress_.trials;
    std::optional<size_t> fastest;
    for (size_t i = 0; i < known_.size(); ++i) {
      if (!known_[i] || !known_[i]->Timed()) continue;
      if (!fastest || EstimateOf(*known_[i]).median < EstimateOf(*known_[*fastest]).median) fastest = i;
    }
    return fastest ? Finish(*fastest) : NothingPassed();
  }

  Status NothingPassed() const {
    if (!outcome_.complete) return MakeError(ErrorCode::kTimeout, "stopped before a candidate was measured");
    std::string first;
    for (const auto& known : known_) {
      if (known && known->verdict != Verdict::kPassed && first.empty()) first = known->detail;
    }
    return MakeError(ErrorCode::kWrongResult, Cat("none of the candidates passed; the first of them: ", first));
  }

  // Without times: the first of the ranking that computes the right numbers.
  Status Verify() {
    progress_.max_trials = 1;
    Tell();
    size_t checked = 0;
    for (size_t i = 0; i < candidates_.size() && checked < kMaxVerified; ++i) {
      if (known_[i] && known_[i]->verdict == Verdict::kPassed) return Finish(i);
      if (known_[i]) continue;
      if (options_.stop()) {
        outcome_.complete = false;
        return NothingPassed();
      }
      auto answered = bench_.Check({candidates_[i].schedule});
      if (!answered && options_.stop()) return FinishStopped();
      LS_ASSIGN(const std::vector<Trial> trials, std::move(answered));
      ++checked;
      ++outcome_.trials;
      Report(candidates_[i], trials.front());
      if (trials.front().verdict == Verdict::kPassed) return Finish(i);
    }
    return NothingPassed();
  }

  Status Finish(size_t winner) {
    const Candidate& candidate = candidates_[winner];
    outcome_.schedule = candidate.name;
    outcome_.predicted_us = candidate.predicted_us;
    outcome_.verified = true;
    outcome_.seconds = Seconds();
    if (known_[winner]->Timed()) outcome_.time_us = EstimateOf(*known_[winner]);
    if (known_[default_] && known_[default_]->Timed()) outcome_.default_us = EstimateOf(*known_[default_]).median;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (known_[i]) ++outcome_.verdicts[static_cast<size_t>(known_[i]->verdict)];
      outcome_.candidates.push_back({candidates_[i].name, candidates_[i].predicted_us, known_[i]});
    }
    store::ChoiceRecord choice{.problem = name_,
                               .target = hello_.target,
                               .device = hello_.device_key,
                               .schedule = candidate.name,
                               .source = outcome_.time_us ? ChoiceSource::kMeasured : ChoiceSource::kPredicted,
                               .time_us = std::nullopt,
                               .generator = compiler::Generator(),
                               .driver = hello_.driver};
    if (outcome_.time_us) choice.time_us = outcome_.time_us->median;
    if (outcome_.time_us && !outcome_.complete) choice.basis = store::StoppedBasis(chosen_before_);
    return store_.PutChoice(choice);
  }

  const Problem& problem_;
  const std::string name_;
  WorkerBench bench_;
  store::Store& store_;
  const TuneOptions& options_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  WorkerHello hello_;
  std::vector<Candidate> candidates_;
  size_t default_ = 0;                        // of these
  std::vector<std::optional<Trial>> known_;   // by candidate
  std::optional<std::string> chosen_before_;  // by a search that went to its end
  std::optional<size_t> previous_;            // the same, where it is a candidate
  bool settled_ = true;                       // by one that knew all that is known now
  std::set<size_t> reported_;
  TuneProgress progress_;
  TuneOutcome outcome_;
};

}  // namespace

Result<TuneOutcome> Tune(const Problem& problem, WorkerClient& worker, store::Store& store,
                         const TuneOptions& options) {
  LS_ASSIGN(const WorkerHello hello, worker.Hello());
  return Tuning(problem, worker, store, options).Run(hello);
}

}  // namespace laneshift::autotune
