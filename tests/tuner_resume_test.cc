// A search for the fastest schedule that is stopped and resumed ends like an uninterrupted one: with the same choice
// and the same trials in the store. LANESHIFT_TEST_EXHAUSTIVE=1 stops it at every point.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "autotune/tuner.h"
#include "base/text.h"
#include "store/store.h"
#include "store/temporary_directory.h"
#include "store/trial_table.h"

namespace laneshift {
namespace {

using autotune::TuneOptions;
using autotune::TuneOutcome;
using base::Cat;
using store::TrialRecord;

// What does not say when a trial was made.
using TrialKey = std::tuple<std::string, store::Verdict, std::string, size_t, double>;

class TunerResume : public testing::TestWithParam<autotune::SearchKind> {
 protected:
  // Where a search is stopped: between measurements, when it asks for the n-th time whether to, or within the n-th
  // request to its worker, which has no answer then; or its process ends with the n-th report of progress, each of
  // which follows a trial that is stored. 0: nowhere.
  struct Stop {
    int question = 0, request = 0, report = 0;
    friend void PrintTo(const Stop& stop, std::ostream* out) {
      *out << "question " << stop.question << ", request " << stop.request << ", report " << stop.report;
    }
  };

  Result<TuneOutcome> Tune(store::Store& store, const Stop& at, int* questions = nullptr) const {
    const store::TemporaryDirectory directory;
    const std::string mark = directory.path() + "/stalled";
    int asked = 0;
    const auto stop = [&] {
      ++asked;
      return (at.question > 0 && asked >= at.question) || std::filesystem::exists(mark);
    };
    int reports = 0;
    const auto on_progress = [&](const autotune::TuneProgress&) {
      if (++reports == at.report) _exit(0);
    };
    autotune::WorkerClient worker({.argv = {LANESHIFT_STEADY_WORKER, Cat(seed_), Cat(at.request), mark}, .stop = stop});
    auto outcome = autotune::Tune(problem_, worker, store,
                                  {.search = GetParam(),
                                   .max_trials = kTrials,
                                   .constraint = constraint_,
                                   .stop = stop,
                                   .on_progress = on_progress});
    if (questions != nullptr) *questions = asked;
    return outcome;
  }

  // All that the store says in the end.
  struct End {
    std::string schedule, basis;
    std::vector<TrialKey> trials;  // sorted
    bool operator==(const End&) const = default;
    // A line for each trial.
    friend void PrintTo(const End& end, std::ostream* out) {
      *out << end.schedule << " " << end.basis;
      for (const auto& [schedule, verdict, detail, samples, us] : end.trials) {
        *out << "\n" << schedule << ": " << store::VerdictName(verdict) << " " << samples << " x " << us << " us";
      }
    }
  };
  End EndOf(store::Store& store) const {
    End end;
    const auto trials = store.GetTrials(PrintProblem(problem_), "sm_90a", "steady");
    const auto choices = store.GetChoices(PrintProblem(problem_), "sm_90a", "steady");
    if (!trials || !choices) return end;
    for (const TrialRecord& r : *trials) {
      end.trials.emplace_back(r.schedule, r.verdict, r.detail, r.samples.size(), r.time_us);
    }
    std::sort(end.trials.begin(), end.trials.end());
    if (choices->size() != 1) return end;
    end.schedule = choices->front().schedule;
    end.basis = choices->front().basis;
    return end;
  }

  // After a search that was stopped so often.
  End EndAfter(const std::vector<Stop>& stops, int* questions = nullptr) const {
    const store::TemporaryDirectory directory;
    for (const Stop& at : stops) {
      const pid_t child = at.report > 0 ? fork() : -1;
      if (child > 0) {
        EXPECT_EQ(waitpid(child, nullptr, 0), child);
        continue;
      }
      store::Store store = Open(directory);
      const auto outcome = Tune(store, at);
      if (child == 0) _exit(0);
      if (!outcome) {
        EXPECT_EQ(outcome.error().code, ErrorCode::kTimeout) << outcome.error().message;
      }
    }
    store::Store store = Open(directory);
    const auto outcome = Tune(store, {}, questions);
    EXPECT_TRUE(outcome) << outcome.error().message;
    if (outcome) {
      EXPECT_TRUE(outcome->complete);
    }
    return EndOf(store);
  }
  static store::Store Open(const store::TemporaryDirectory& directory) {
    return store::Store::Open({.directory = directory.path()});
  }

  static constexpr int kTrials = 24;
  const Problem problem_ = *CompleteProblem(*ParseProblem("gemm m=65 n=72 k=64"));
  const ScheduleConstraint constraint_ = *ParseSchedule("rows=m split_k=1 cluster=1x1");
  uint64_t seed_ = 1;
};

TEST_P(TunerResume, EndsAsIfItHadNotBeenStopped) {
  const bool each = std::getenv("LANESHIFT_TEST_EXHAUSTIVE") != nullptr;
  std::mt19937 random(7);
  size_t rungs = 0, wrong = 0;
  for (seed_ = 1; seed_ <= 3; ++seed_) {
    int questions = 0;
    const End uninterrupted = EndAfter({}, &questions);
    ASSERT_FALSE(uninterrupted.schedule.empty());
    EXPECT_EQ(uninterrupted.basis, "");
    for (const TrialKey& trial : uninterrupted.trials) {
      rungs += std::get<3>(trial) >= 80;
      wrong += std::get<1>(trial) == store::Verdict::kWrong;
    }
    ASSERT_GT(questions, 5);
    // Of requests there is at least one for each trial.
    const int points = questions + kTrials;
    const auto point = [&](int n) { return n <= questions ? Stop{.question = n} : Stop{.request = n - questions}; };
    const auto any = [&] { return point(1 + static_cast<int>(random() % static_cast<unsigned>(points))); };
    for (int i = 1; i <= (each ? points : 4); ++i) {
      const Stop first = each ? point(i) : any(), second = any();
      EXPECT_EQ(EndAfter({first}), uninterrupted) << testing::PrintToString(first);
      EXPECT_EQ(EndAfter({first, second}), uninterrupted)
          << testing::PrintToString(first) << ", " << testing::PrintToString(second);
    }
  }
  EXPECT_GT(rungs, 0u) << "nothing is decided by a second rung";
  EXPECT_GT(wrong, 0u);
}

// A batch or a rung of which a part is stored is the hardest place. A rung is then timed again, with the same result.
TEST_P(TunerResume, EndsAsIfItHadNotBeenKilled) {
  const bool each = std::getenv("LANESHIFT_TEST_EXHAUSTIVE") != nullptr;
  std::mt19937 random(11);
  const auto without_repetitions = [](End end) {
    end.trials.erase(std::unique(end.trials.begin(), end.trials.end()), end.trials.end());
    return end;
  };
  const End uninterrupted = EndAfter({});
  const auto reports = static_cast<int>(uninterrupted.trials.size());
  const auto any = [&] { return Stop{.report = 1 + static_cast<int>(random() % static_cast<unsigned>(reports))}; };
  for (int i = 1; i <= (each ? reports : 8); ++i) {
    const Stop first = each ? Stop{.report = i} : any(), second = any();
    EXPECT_EQ(without_repetitions(EndAfter({first, second})), uninterrupted)
        << testing::PrintToString(first) << "; " << testing::PrintToString(second);
  }
}

INSTANTIATE_TEST_SUITE_P(All, TunerResume,
                         testing::Values(autotune::SearchKind::kHalving, autotune::SearchKind::kExhaustive),
                         [](const auto& one) { return std::string(autotune::SearchKindName(one.param)); });

}  // namespace
}  // namespace laneshift
