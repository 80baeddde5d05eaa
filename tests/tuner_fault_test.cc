// The tuner against candidates that hang, crash, kill their worker or compute wrong, and against being killed itself.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "autotune/ranking.h"
#include "autotune/tuner.h"
#include "base/text.h"
#include "compiler/compile.h"
#include "store/store.h"
#include "store/temporary_directory.h"

namespace laneshift {
namespace {

using autotune::TuneOptions;
using autotune::TuneOutcome;
using autotune::WorkerClient;
using autotune::WorkerOptions;
using base::Cat;
using store::TrialRecord;
using store::Verdict;

constexpr int kTrials = 5;

class TunerFault : public testing::TestWithParam<std::pair<const char*, Verdict>> {
 protected:
  WorkerOptions Worker(const std::string& fault, unsigned smem_bytes) const {
    WorkerOptions options;
    options.argv = {LANESHIFT_FAULTY_WORKER, fault, Cat(smem_bytes), log_, directory_.path()};
    options.trial_timeout = std::chrono::milliseconds(3000);
    return options;
  }

  store::Store OpenStore() const { return store::Store::Open({.directory = directory_.path()}); }

  // One of the first candidates of the ranking that launches with shared memory as no other of them does.
  void ChooseVictim(WorkerClient& worker, store::Store& store) {
    const auto hello = worker.Hello();
    ASSERT_TRUE(hello.has_value()) << hello.error().message;
    device_ = hello->device_key;
    const target::Target& target = target::NamedTarget(hello->target);
    const auto machine = autotune::MachineOf(target, hello->sm_count, hello->device_key, store);
    const auto ranking = autotune::RankSchedules(problem_, constraint_, target, machine);
    std::vector<std::pair<std::string, unsigned>> first;
    std::map<unsigned, int> users;
    for (const auto& ranked : ranking.schedules) {
      const auto program = compiler::BuildProgram(problem_, ranked.schedule, target);
      const auto bytes = static_cast<unsigned>(program->smem_bytes);
      if (first.size() < kTrials) first.emplace_back(PrintSchedule(ranked.schedule), bytes);
      ++users[bytes];
    }
    for (const auto& [name, bytes] : first) {
      if (users[bytes] == 1) victim_ = name, victim_smem_ = bytes;
    }
    ASSERT_FALSE(victim_.empty()) << "no candidate is identified by its shared memory";
  }

  Result<TuneOutcome> Tune(WorkerClient& worker, store::Store& store) const {
    std::optional<double> best;
    const auto never_rises = [&](const autotune::TuneProgress& progress) {
      if (best) {
        EXPECT_LE(progress.best_us.value_or(*best + 1), *best);
      }
      best = progress.best_us;
    };
    return autotune::Tune(problem_, worker, store,
                          {.max_trials = kTrials, .constraint = constraint_, .on_progress = never_rises});
  }

  std::vector<TrialRecord> Trials(store::Store& store) const {
    return *store.GetTrials(PrintProblem(problem_), "sm_90a", device_);
  }
  std::vector<TrialRecord> TrialsOfVictim(store::Store& store) const {
    std::vector<TrialRecord> own;
    for (TrialRecord& record : Trials(store)) {
      if (record.schedule == victim_) own.push_back(std::move(record));
    }
    return own;
  }

  // Which processes have launched the victim, launch by launch.
  std::vector<pid_t> Launches() const {
    std::ifstream file(log_);
    std::vector<pid_t> launches;
    for (pid_t pid; file >> pid;) launches.push_back(pid);
    return launches;
  }

  const Problem problem_ = *CompleteProblem(*ParseProblem("gemm m=65 n=72 k=64"));
  // A small space, in which candidates differ by their shared memory.
  const ScheduleConstraint constraint_ = *ParseSchedule("rows=m split_k=1 cluster=1x1");
  store::TemporaryDirectory directory_;
  std::string log_ = directory_.path() + "/log", victim_, device_;
  unsigned victim_smem_ = 0;
};

TEST_P(TunerFault, CostsOneTrialIsStoredAndIsNotTriedAgain) {
  const auto& [fault, verdict] = GetParam();
  store::Store store = OpenStore();
  {
    WorkerClient probe(Worker("none", 0));
    ChooseVictim(probe, store);
  }
  ASSERT_FALSE(victim_.empty());
  WorkerClient worker(Worker(fault, victim_smem_));
  const auto outcome = Tune(worker, store);
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_NE(outcome->schedule, victim_);
  EXPECT_TRUE(outcome->verified);
  EXPECT_TRUE(outcome->time_us.has_value());
  EXPECT_EQ(outcome->trials, kTrials);
  EXPECT_EQ(outcome->verdicts[static_cast<size_t>(verdict)], 1);
  EXPECT_EQ(outcome->verdicts[static_cast<size_t>(Verdict::kPassed)], kTrials - 1);
  EXPECT_EQ(worker.losses() > 0, verdict == Verdict::kHung || verdict == Verdict::kCrashed);

  const auto stored = TrialsOfVictim(store);
  ASSERT_FALSE(stored.empty());
  EXPECT_EQ(stored.back().verdict, verdict) << stored.back().detail;
  EXPECT_FALSE(stored.back().detail.empty());
  EXPECT_TRUE(stored.back().samples.empty());
  const size_t launches = Launches().size();
  EXPECT_GT(launches, 0u);

  // A later run knows: it launches nothing and chooses the same.
  store::Store later = OpenStore();
  WorkerClient again(Worker(fault, victim_smem_));
  const auto repeated = Tune(again, later);
  ASSERT_TRUE(repeated.has_value()) << repeated.error().message;
  EXPECT_EQ(repeated->trials, 0);
  EXPECT_EQ(repeated->known, kTrials);
  EXPECT_EQ(repeated->schedule, outcome->schedule);
  EXPECT_EQ(Launches().size(), launches);
}

INSTANTIATE_TEST_SUITE_P(All, TunerFault,
                         testing::Values(std::pair("hang", Verdict::kHung), std::pair("hang_later", Verdict::kHung),
                                         std::pair("segv", Verdict::kCrashed), std::pair("kill", Verdict::kCrashed),
                                         std::pair("fail", Verdict::kCrashed), std::pair("skip", Verdict::kWrong),
                                         std::pair("stray", Verdict::kWrong)),
                         [](const auto& one) { return std::string(one.param.first); });

using TunerKilled = TunerFault;

// Waits until the file has a line, at most half a minute.
bool Appears(const std::string& path) {
  for (int i = 0; i < 3000; ++i) {
    std::ifstream file(path);
    if (file.peek() != std::ifstream::traits_type::eof()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

bool Gone(pid_t pid) {
  for (int i = 0; i < 1000; ++i) {
    // A process of nobody's that has ended may stay a zombie where nobody reaps it.
    std::ifstream file(Cat("/proc/", pid, "/stat"));
    std::string number, name, state;
    if (!(file >> number >> name >> state) || state == "Z") return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST_F(TunerKilled, TakesItsWorkerAlongAndLosesNothing) {
  {
    store::Store store = OpenStore();
    WorkerClient probe(Worker("none", 0));
    ChooseVictim(probe, store);
  }
  ASSERT_FALSE(victim_.empty());
  const pid_t tuner = fork();
  ASSERT_GE(tuner, 0);
  if (tuner == 0) {
    store::Store store = OpenStore();
    WorkerOptions options = Worker("hang", victim_smem_);
    options.trial_timeout = std::chrono::minutes(10);
    WorkerClient worker(options);
    (void)Tune(worker, store);
    _exit(0);
  }
  ASSERT_TRUE(Appears(log_));
  const pid_t worker_pid = Launches().front();
  kill(tuner, SIGKILL);
  ASSERT_EQ(waitpid(tuner, nullptr, 0), tuner);
  EXPECT_TRUE(Gone(worker_pid)) << "a worker outlives its owner while its kernel hangs";

  // Nobody holds anything: the next one goes on at once.
  store::Store store = OpenStore();
  EXPECT_TRUE(store.durable());
  const size_t kept = Trials(store).size();
  WorkerClient worker(Worker("none", 0));
  const auto outcome = Tune(worker, store);
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_EQ(outcome->known + outcome->trials, kTrials);
  EXPECT_GE(Trials(store).size(), kept);
  for (const auto& candidate : outcome->candidates) {
    if (!candidate.trial) continue;
    EXPECT_EQ(candidate.trial->verdict, Verdict::kPassed) << candidate.trial->detail;
  }
}

TEST_F(TunerKilled, OfTwoProcessesOneTunesAndBothChooseTheSame) {
  pid_t children[2];
  for (pid_t& child : children) {
    child = fork();
    ASSERT_GE(child, 0);
    if (child != 0) continue;
    store::Store store = OpenStore();
    WorkerClient worker(Worker("none", 0));
    const auto outcome = Tune(worker, store);
    // How many trials this one made, or that it failed.
    _exit(outcome ? outcome->trials : 100);
  }
  std::multiset<int> trials;
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    trials.insert(WEXITSTATUS(status));
  }
  EXPECT_EQ(trials, (std::multiset<int>{0, kTrials}));
}

TEST_F(TunerKilled, AWorkerThatCannotStartIsAnErrorAndNoVerdict) {
  store::Store store = OpenStore();
  for (const std::vector<std::string>& argv :
       std::vector<std::vector<std::string>>{{"/no/such/worker"}, {"sh", "-c", "echo broken >&2; exit 7"}}) {
    WorkerOptions options;
    options.argv = argv;
    WorkerClient worker(options);
    const auto outcome = Tune(worker, store);
    ASSERT_FALSE(outcome.has_value());
    EXPECT_NE(outcome.error().message.find(argv.size() == 1 ? "no/such/worker" : "exit code 7"), std::string::npos)
        << outcome.error().message;
  }
  EXPECT_EQ(store.Stat().trials, 0);
}

// A program that answers as ptxas does; of what it is asked to assemble it says that it is wrong, or hands it back,
// which the emulator takes.
void WritePtxas(const std::string& path, bool broken) {
  std::filesystem::remove(path);
  std::ofstream(path) << "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'release 13.0, V13.0.88'; exit 0; fi\n"
                      << (broken ? "echo 'ptxas fatal : not today' >&2; exit 1\n"
                                 : "printf '\\177ELF' > \"$5\"; cat \"$3\" >> \"$5\"; head -c 1 /dev/zero >> \"$5\"\n");
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

TEST_F(TunerKilled, AWrongPtxasRefusesCandidatesOnlyAsLongAsItIsThere) {
  const std::string ptxas = directory_.path() + "/ptxas";
  WritePtxas(ptxas, /*broken=*/true);
  store::Store store = OpenStore();
  const auto tune = [&] {
    WorkerClient worker(Worker("ptxas:" + ptxas, 0));
    return Tune(worker, store);
  };
  for (int i = 0; i < 2; ++i) {
    const auto refused = tune();
    ASSERT_FALSE(refused.has_value());
    EXPECT_NE(refused.error().message.find("not today"), std::string::npos) << refused.error().message;
    EXPECT_EQ(store.Stat().trials, kTrials) << "what one ptxas refused is not asked of it again";
  }
  WritePtxas(ptxas, /*broken=*/false);
  const auto mended = tune();
  ASSERT_TRUE(mended.has_value()) << mended.error().message;
  EXPECT_EQ(mended->known, 0) << "the same path and version, but another file";
  EXPECT_EQ(mended->trials, kTrials);
  EXPECT_EQ(mended->verdicts[static_cast<size_t>(Verdict::kPassed)], kTrials);
}

TEST_F(TunerKilled, APtxasThatIsNoneIsAnErrorAndNoVerdict) {
  store::Store store = OpenStore();
  WorkerClient worker(Worker("ptxas:/no/such/ptxas", 0));
  const auto outcome = Tune(worker, store);
  ASSERT_FALSE(outcome.has_value());
  EXPECT_NE(outcome.error().message.find("/no/such/ptxas"), std::string::npos) << outcome.error().message;
  EXPECT_EQ(store.Stat().trials, 0);
}

}  // namespace
}  // namespace laneshift
