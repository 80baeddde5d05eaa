#include "autotune/search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/check.h"
#include "base/text.h"

namespace laneshift::autotune {
namespace {

using store::TimingOrder;
using store::Verdict;

constexpr size_t kFirstBatch = 8;  // tried by prediction only
constexpr size_t kBatch = 4;       // tried before the predictions are corrected again
constexpr size_t kExhaustiveBatch = 16;
constexpr int kScoutRounds = 20;
constexpr int kFinalRounds = 40;  // of the first of the final rungs; doubled from rung to rung
constexpr int kFinalRungs = 3;
// In series. Slow calls are few, and each is long enough for its clock.
constexpr int kSeriesRounds = 162, kSlowSeriesRounds = 18;
constexpr double kSlowCall = 5000;  // us
constexpr size_t kMaxFinalists = 8;
constexpr double kFinalistWithin = 1.05;  // times the best median of the trials
constexpr double kAlike = 1.005;          // times the best median: a difference that users would not notice counts as
                                          // noise
// Words of a schedule with little influence: of candidates that differ only in these the first is tried first.
// So the first batch has many tiles, whatever their clusters.
constexpr std::array<std::string_view, 4> kMinorKeys = {"stages=", "filter_stages=", "raster=", "cluster="};
constexpr double kDistanceWeight = 0.5;  // of a measurement, for every part in which the schedule differs
constexpr double kMeanWeight = 0.1;      // of the mean of all measurements

// The parts of a schedule's name: its words, and the extents of a tile one by one.
std::vector<std::string_view> PartsOf(std::string_view name) {
  std::vector<std::string_view> parts;
  for (const std::string_view word : base::Words(name)) {
    if (!word.starts_with("tile=")) {
      parts.push_back(word);
      continue;
    }
    for (const std::string_view extent : base::Split(word.substr(5), 'x')) parts.push_back(extent);
  }
  return parts;
}

int Distance(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b) {
  const size_t common = std::min(a.size(), b.size());
  auto distance = static_cast<int>(std::max(a.size(), b.size()) - common);
  for (size_t i = 0; i < common; ++i) distance += a[i] != b[i];
  return distance;
}

std::string WithoutMinorWords(std::string_view name) {
  std::string kept;
  for (const std::string_view word : base::Words(name)) {
    const bool minor =
        std::any_of(kMinorKeys.begin(), kMinorKeys.end(), [&](std::string_view key) { return word.starts_with(key); });
    if (!minor) kept += base::Cat(word, " ");
  }
  return kept;
}

class Searcher {
 public:
  Searcher(const std::vector<Candidate>& candidates, std::vector<std::optional<Trial>> known,
           std::optional<size_t> previous, Bench& bench, const SearchOptions& options)
      : candidates_(candidates), previous_(previous), bench_(bench), options_(options) {
    LS_CHECK(known.size() == candidates.size(), known.size(), " known trials of ", candidates.size(), " candidates");
    outcome_.trials.resize(known.size());
    known_ = std::move(known);
    for (const Candidate& candidate : candidates) {
      parts_.push_back(PartsOf(candidate.name));
      kinds_.push_back(WithoutMinorWords(candidate.name));
    }
  }

  Result<SearchOutcome> Run() {
    LS_TRY(TryAll());
    // Known results need no second decision if nothing was added.
    const bool timed = previous_ && outcome_.trials[*previous_] && outcome_.trials[*previous_]->Timed();
    outcome_.stands = timed && options_.settled && outcome_.tried == 0;
    if (outcome_.stands) {
      outcome_.winner = previous_;
    } else {
      LS_TRY(Decide());
    }
    return std::move(outcome_);
  }

 private:
  bool Expired() {
    if (options_.expired()) outcome_.complete = false;
    return !outcome_.complete;
  }

  static size_t CountOf(const std::vector<std::optional<Trial>>& trials) {
    return static_cast<size_t>(
        std::count_if(trials.begin(), trials.end(), [](const auto& trial) { return trial.has_value(); }));
  }
  size_t Tried() const { return CountOf(outcome_.trials); }

  Status TryAll() {
    const bool exhaustive = options_.kind == SearchKind::kExhaustive;
    const size_t most = exhaustive ? candidates_.size() : static_cast<size_t>(std::max(0, options_.max_trials));
    for (size_t done; (done = Tried()) < most && !Expired();) {
      const size_t batch = exhaustive ? kExhaustiveBatch : done == 0 ? kFirstBatch : kBatch;
      const std::vector<size_t> next = Propose(std::min(most - done, batch));
      if (next.empty()) break;
      if (LeavesThePath(next, most)) {
        TakeKnown();
      } else {
        LS_TRY(Try(next));
      }
    }
    TakeKnown();
    return Ok();
  }

  // An interrupted search follows its path once more and finds all its measurements there, so it continues as if
  // nothing had happened. If a step of that path is missing but others are known, those belong to another search.
  bool LeavesThePath(const std::vector<size_t>& next, size_t most) const {
    std::vector<bool> elsewhere(known_.size());
    for (size_t i = 0; i < known_.size(); ++i) elsewhere[i] = known_[i] && !outcome_.trials[i];
    size_t missing = 0;
    for (const size_t i : next) {
      missing += !known_[i];
      elsewhere[i] = false;
    }
    if (std::find(elsewhere.begin(), elsewhere.end(), true) == elsewhere.end()) return false;
    // With enough of them there is nothing left to do; the first step tells which schedule is the reference.
    return missing > 0 || (Tried() > 0 && CountOf(known_) >= most);
  }

  // Known results count, whichever search found them.
  void TakeKnown() {
    for (size_t i = 0; i < known_.size(); ++i) {
      if (!outcome_.trials[i]) outcome_.trials[i] = known_[i];
      if (!yardstick_) MakeYardstick(i);
    }
  }

  void MakeYardstick(size_t candidate) {
    if (!outcome_.trials[candidate] || !outcome_.trials[candidate]->Timed()) return;
    yardstick_ = candidate;
    yardstick_us_ = EstimateFor(candidate).median;
  }

  // The previous winner and the untried candidates of the lowest corrected prediction.
  std::vector<size_t> Propose(size_t count) const {
    struct Proposal {
      bool known_kind;
      double estimate;
      size_t candidate;
    };
    std::vector<Proposal> proposals;
    std::set<std::string_view> taken;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (!outcome_.trials[i]) proposals.push_back({false, CorrectedPrediction(i), i});
    }
    const auto by_estimate = [](const Proposal& a, const Proposal& b) {
      return a.known_kind != b.known_kind ? b.known_kind : a.estimate < b.estimate;
    };
    std::stable_sort(proposals.begin(), proposals.end(), by_estimate);
    // Kinds are distinguished only while nothing is measured; then the measurements decide.
    if (Tried() == 0) {
      for (Proposal& proposal : proposals) {
        proposal.known_kind = !taken.insert(kinds_[proposal.candidate]).second;
      }
      std::stable_sort(proposals.begin(), proposals.end(), by_estimate);
    }
    std::vector<size_t> next;
    // Whatever its prediction, an earlier winner is a good guess.
    if (previous_ && !outcome_.trials[*previous_]) next.push_back(*previous_);
    if (Tried() == 0 && previous_ != options_.reference && next.size() < count) next.push_back(options_.reference);
    for (const Proposal& proposal : proposals) {
      const bool proposed = std::find(next.begin(), next.end(), proposal.candidate) != next.end();
      if (next.size() < count && !proposed) next.push_back(proposal.candidate);
    }
    return next;
  }

  // The prediction, times what the measurements of similar schedules say about predictions of their kind.
  double CorrectedPrediction(size_t candidate) const {
    double sum = 0, weights = 0, all = 0;
    int timed = 0;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (!outcome_.trials[i] || !outcome_.trials[i]->Timed() || candidates_[i].predicted_us <= 0) continue;
      const double log_ratio = std::log(EstimateFor(i).median / candidates_[i].predicted_us);
      const double weight = std::pow(kDistanceWeight, Distance(parts_[i], parts_[candidate]));
      sum += weight * log_ratio;
      weights += weight;
      all += log_ratio;
      ++timed;
    }
    if (timed == 0) return candidates_[candidate].predicted_us;
    const double correction = (sum + kMeanWeight * all / timed) / (weights + kMeanWeight);
    return candidates_[candidate].predicted_us * std::exp(correction);
  }

  std::vector<Schedule> SchedulesOf(const std::vector<size_t>& indices) const {
    std::vector<Schedule> schedules;
    for (const size_t i : indices) schedules.push_back(candidates_[i].schedule);
    return schedules;
  }

  void Record(size_t candidate, Trial trial) {
    options_.on_trial(candidates_[candidate], trial);
    outcome_.trials[candidate] = std::move(trial);
  }

  Status Try(const std::vector<size_t>& batch) {
    const bool without = !yardstick_;
    std::vector<size_t> unknown;
    for (const size_t i : batch) {
      outcome_.trials[i] = known_[i];
      if (!known_[i]) unknown.push_back(i);
      if (!yardstick_) MakeYardstick(i);
    }
    if (!unknown.empty()) LS_TRY(Measure(unknown));
    // The first of the batch, whatever part of it was known.
    if (without) yardstick_.reset();
    for (const size_t i : batch) {
      if (!yardstick_) MakeYardstick(i);
    }
    return Ok();
  }

  Status Measure(const std::vector<size_t>& batch) {
    LS_ASSIGN(std::vector<Trial> checked, bench_.Check(SchedulesOf(batch)));
    std::vector<size_t> passed;
    for (size_t i = 0; i < batch.size(); ++i) {
      ++outcome_.tried;
      if (checked[i].verdict == Verdict::kPassed) {
        passed.push_back(batch[i]);
      } else {
        Record(batch[i], std::move(checked[i]));
      }
    }
    return passed.empty() ? Ok() : Time(passed, kScoutRounds, TimingOrder::kInterleaved);
  }

  // With the reference schedule, which is the first that was timed.
  Status Time(const std::vector<size_t>& batch, int rounds, TimingOrder order) {
    const bool among = !yardstick_ || std::find(batch.begin(), batch.end(), *yardstick_) != batch.end();
    std::vector<size_t> together = batch;
    if (!among) together.push_back(*yardstick_);
    LS_ASSIGN(std::vector<Trial> timed, bench_.Time(SchedulesOf(together), rounds, order));
    const double drift = MeasureDrift(together, timed);
    for (size_t i = 0; i < batch.size(); ++i) {
      timed[i].order = order;
      timed[i].drift = drift;
      Record(batch[i], std::move(timed[i]));
    }
    return Ok();
  }

  // Of the reference schedule; without one, the first that was timed becomes it.
  double MeasureDrift(const std::vector<size_t>& together, const std::vector<Trial>& timed) {
    for (size_t i = 0; i < together.size(); ++i) {
      if (!timed[i].Timed() || (yardstick_ && together[i] != *yardstick_)) continue;
      const double us = EstimateOf(timed[i].samples).median;
      if (!yardstick_) {
        yardstick_ = together[i];
        yardstick_us_ = us;
      }
      return us / yardstick_us_;
    }
    // It failed this time, or there is none yet: another is taken.
    yardstick_.reset();
    return 1;
  }

  Estimate EstimateFor(size_t candidate) const { return EstimateOf(*outcome_.trials[candidate]); }

  // The fastest of the trials and those near it, fastest first. The previous winner is among them if it is near. The
  // reference schedule is always among them: it is timed with them anyway, and the winner must not be slower.
  std::vector<size_t> Finalists() const {
    std::vector<size_t> timed;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (outcome_.trials[i] && outcome_.trials[i]->Timed()) timed.push_back(i);
    }
    SortByMedian(timed);
    std::vector<size_t> finalists;
    for (const size_t i : timed) {
      if (EstimateFor(i).median > kFinalistWithin * EstimateFor(timed.front()).median) break;
      if (finalists.size() < kMaxFinalists || i == previous_) finalists.push_back(i);
    }
    const bool stands = yardstick_ && outcome_.trials[*yardstick_] && outcome_.trials[*yardstick_]->Timed();
    if (stands && std::find(finalists.begin(), finalists.end(), *yardstick_) == finalists.end()) {
      finalists.push_back(*yardstick_);
    }
    return finalists;
  }

  void SortByMedian(std::vector<size_t>& indices) const {
    std::stable_sort(indices.begin(), indices.end(),
                     [&](size_t a, size_t b) { return EstimateFor(a).median < EstimateFor(b).median; });
  }

  // Times the finalists against each other until one is left, or no rung is left.
  Status Decide() {
    std::vector<size_t> finalists = Finalists();
    int rounds = kFinalRounds;
    for (int rung = 0; rung < kFinalRungs && finalists.size() > 1 && !Expired(); ++rung, rounds *= 2) {
      if (AreAtPowerLimit(finalists)) {
        LS_ASSIGN(finalists, TimedInSeries());
        break;
      }
      if (!AreTimed(finalists, rounds)) LS_TRY(Time(finalists, rounds, TimingOrder::kInterleaved));
      finalists = Survivors(std::move(finalists));
    }
    outcome_.winner = Winner(finalists);
    // Finalists may fail when they are timed again.
    if (!outcome_.winner) outcome_.winner = Winner(Finalists());
    return Ok();
  }

  // All finalists anew: whoever is slower when interleaved may be faster by itself.
  Result<std::vector<size_t>> TimedInSeries() {
    std::vector<size_t> finalists = Finalists();
    const bool slow = EstimateFor(finalists.front()).median > kSlowCall;
    if (!AreTimedInSeries(finalists))
      LS_TRY(Time(finalists, slow ? kSlowSeriesRounds : kSeriesRounds, TimingOrder::kInSeries));
    return finalists;
  }

  // Most of the time in which they were timed last.
  bool AreAtPowerLimit(const std::vector<size_t>& finalists) const {
    size_t all = 0, limited = 0;
    for (const size_t i : finalists) {
      for (const store::Sample& sample : outcome_.trials[i]->samples) limited += sample.conditions.AtPowerLimit();
      all += outcome_.trials[i]->samples.size();
    }
    return 2 * limited > all;
  }

  // By this search, or by one that was interrupted after it.
  bool AreTimed(const std::vector<size_t>& finalists, int rounds) const {
    return std::all_of(finalists.begin(), finalists.end(), [&](size_t i) { return RoundsOf(i) >= rounds; });
  }
  bool AreTimedInSeries(const std::vector<size_t>& finalists) const {
    return std::all_of(finalists.begin(), finalists.end(),
                       [&](size_t i) { return outcome_.trials[i]->order == TimingOrder::kInSeries; });
  }
  int RoundsOf(size_t candidate) const { return static_cast<int>(outcome_.trials[candidate]->samples.size()); }

  // Those that are not significantly, or not noticeably, slower than the fastest. In series the clock wanders more than
  // schedules differ, and its samples belong together: only their medians count.
  std::vector<size_t> Survivors(std::vector<size_t> finalists) const {
    std::erase_if(finalists, [&](size_t i) { return !outcome_.trials[i]->Timed(); });
    if (finalists.empty()) return finalists;
    SortByMedian(finalists);
    const Estimate best = EstimateFor(finalists.front());
    const bool in_series = AreTimedInSeries(finalists);
    std::erase_if(finalists, [&](size_t i) {
      const Estimate own = EstimateFor(i);
      return (in_series || own.low > best.high) && own.median > kAlike * best.median;
    });
    return finalists;
  }

  std::optional<size_t> Winner(std::vector<size_t> finalists) const {
    finalists = Survivors(std::move(finalists));
    if (finalists.empty()) return std::nullopt;
    if (previous_ && std::find(finalists.begin(), finalists.end(), *previous_) != finalists.end()) return previous_;
    return *std::min_element(finalists.begin(), finalists.end());
  }

  const std::vector<Candidate>& candidates_;
  const std::optional<size_t> previous_;
  Bench& bench_;
  const SearchOptions& options_;
  std::vector<std::vector<std::string_view>> parts_;  // of the names
  std::vector<std::string> kinds_;
  std::vector<std::optional<Trial>> known_;  // by candidate
  std::optional<size_t> yardstick_;
  double yardstick_us_ = 0;  // when it was first timed
  SearchOutcome outcome_;
};

}  // namespace

Estimate EstimateOf(const Trial& trial) {
  const Estimate measured = EstimateOf(trial.samples);
  return {measured.median / trial.drift, measured.low / trial.drift, measured.high / trial.drift};
}

std::string_view SearchKindName(SearchKind kind) {
  switch (kind) {
    case SearchKind::kHalving:
      return "halving";
    case SearchKind::kExhaustive:
      return "exhaustive";
  }
  LS_CHECK(false, "search kind out of range: ", static_cast<int>(kind));
}

Result<SearchOutcome> Search(const std::vector<Candidate>& candidates, std::vector<std::optional<Trial>> known,
                             std::optional<size_t> previous, Bench& bench, const SearchOptions& options) {
  return Searcher(candidates, std::move(known), previous, bench, options).Run();
}

}  // namespace laneshift::autotune
