#include "autotune/search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/check.h"
#include "base/text.h"

namespace laneshift::autotune {
namespace {

using store::Verdict;

constexpr size_t kFirstBatch = 8;  // tried by prediction alone
constexpr size_t kBatch = 4;       // tried before the predictions are corrected again
constexpr size_t kExhaustiveBatch = 16;
constexpr int kScoutRounds = 20;
constexpr int kFinalRounds = 40;  // of the first of the final rungs; doubled from rung to rung
constexpr int kFinalRungs = 3;
constexpr size_t kMaxFinalists = 8;
constexpr double kFinalistWithin = 1.05;  // times the best median of the trials
constexpr double kAlike = 1.005;          // times the best median: what no user would notice counts as noise
// Words of a schedule that change little: of candidates that differ in these alone the first is tried first.
constexpr std::array<std::string_view, 3> kMinorKeys = {"stages=", "filter_stages=", "raster="};
constexpr double kDistanceWeight = 0.5;  // of a measurement, for every part in which the schedule is another
constexpr double kMeanWeight = 0.1;      // of what all measurements have in common

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
    outcome_.trials = std::move(known);
    for (const Candidate& candidate : candidates) {
      parts_.push_back(PartsOf(candidate.name));
      kinds_.push_back(WithoutMinorWords(candidate.name));
    }
    for (size_t i = 0; i < candidates.size() && !yardstick_; ++i) {
      if (!outcome_.trials[i] || !outcome_.trials[i]->Timed()) continue;
      yardstick_ = i;
      yardstick_us_ = EstimateFor(i).median;
    }
  }

  Result<SearchOutcome> Run() {
    LS_TRY(TryAll());
    // What is known needs no second measurement, and no second decision, where nothing was added to it.
    const bool decided = previous_ && outcome_.trials[*previous_] && outcome_.trials[*previous_]->Timed();
    if (outcome_.tried > 0) {
      LS_TRY(Decide());
    } else {
      outcome_.winner = decided ? previous_ : Winner(Finalists());
    }
    return std::move(outcome_);
  }

 private:
  bool Expired() {
    if (options_.expired()) outcome_.complete = false;
    return !outcome_.complete;
  }

  size_t Known() const {
    return static_cast<size_t>(std::count_if(outcome_.trials.begin(), outcome_.trials.end(),
                                             [](const std::optional<Trial>& trial) { return trial.has_value(); }));
  }

  Status TryAll() {
    const bool exhaustive = options_.kind == SearchKind::kExhaustive;
    const size_t most = exhaustive ? candidates_.size() : static_cast<size_t>(std::max(0, options_.max_trials));
    for (size_t done; (done = Known()) < most && !Expired();) {
      const size_t batch = exhaustive ? kExhaustiveBatch : done == 0 ? kFirstBatch : kBatch;
      const std::vector<size_t> next = Propose(std::min(most - done, batch));
      if (next.empty()) break;
      LS_TRY(Try(next));
    }
    return Ok();
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
    // Kinds are only told apart while nothing is measured; then the measurements speak.
    if (Known() == 0) {
      for (Proposal& proposal : proposals) {
        proposal.known_kind = !taken.insert(kinds_[proposal.candidate]).second;
      }
      std::stable_sort(proposals.begin(), proposals.end(), by_estimate);
    }
    std::vector<size_t> next;
    // Whatever is predicted of it, an earlier winner is a good guess.
    if (previous_ && !outcome_.trials[*previous_]) next.push_back(*previous_);
    for (const Proposal& proposal : proposals) {
      if (next.size() < count && proposal.candidate != previous_) next.push_back(proposal.candidate);
    }
    return next;
  }

  // The prediction, times what the measurements of like schedules say about predictions of their kind.
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
    return passed.empty() ? Ok() : Time(passed, kScoutRounds);
  }

  // In turns with the yardstick, which is the first that was timed.
  Status Time(const std::vector<size_t>& batch, int rounds) {
    const bool among = !yardstick_ || std::find(batch.begin(), batch.end(), *yardstick_) != batch.end();
    std::vector<size_t> together = batch;
    if (!among) together.push_back(*yardstick_);
    LS_ASSIGN(std::vector<Trial> timed, bench_.Time(SchedulesOf(together), rounds));
    const double drift = MeasureDrift(together, timed);
    for (size_t i = 0; i < batch.size(); ++i) {
      timed[i].drift = drift;
      Record(batch[i], std::move(timed[i]));
    }
    return Ok();
  }

  // Of the yardstick; without one, what was timed first becomes it.
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

  // The fastest of the trials and those near it, fastest first; the previous winner is among them if it is near. The
  // yardstick is, too: it is timed with them anyway, and what wins is to be no slower.
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

  // Times the finalists against each other until one is left, or the rungs are.
  Status Decide() {
    std::vector<size_t> finalists = Finalists();
    int rounds = kFinalRounds;
    for (int rung = 0; rung < kFinalRungs && finalists.size() > 1 && !Expired(); ++rung, rounds *= 2) {
      LS_TRY(Time(finalists, rounds));
      finalists = Survivors(std::move(finalists));
    }
    outcome_.winner = Winner(finalists);
    // Finalists may fail when they are timed again.
    if (!outcome_.winner) outcome_.winner = Winner(Finalists());
    return Ok();
  }

  // Those that are not significantly, or not noticeably, slower than the fastest.
  std::vector<size_t> Survivors(std::vector<size_t> finalists) const {
    std::erase_if(finalists, [&](size_t i) { return !outcome_.trials[i]->Timed(); });
    if (finalists.empty()) return finalists;
    SortByMedian(finalists);
    const Estimate best = EstimateFor(finalists.front());
    std::erase_if(finalists, [&](size_t i) {
      const Estimate own = EstimateFor(i);
      return own.low > best.high && own.median > kAlike * best.median;
    });
    return finalists;
  }

  std::optional<size_t> Winner(std::vector<size_t> finalists) const {
    finalists = Survivors(std::move(finalists));
    if (finalists.empty()) return std::nullopt;
    if (previous_ && std::find(finalists.begin(), finalists.end(), *previous_) != finalists.end()) return previous_;
    return *std::min_element(finalists.begin(), finalists.end(),
                             [&](size_t a, size_t b) { return candidates_[a].name < candidates_[b].name; });
  }

  const std::vector<Candidate>& candidates_;
  const std::optional<size_t> previous_;
  Bench& bench_;
  const SearchOptions& options_;
  std::vector<std::vector<std::string_view>> parts_;  // of the names
  std::vector<std::string> kinds_;
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
