#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>

#include "autotune/tuner.h"
#include "base/text.h"
#include "base/threads.h"
#include "measure/reference/group_offsets.h"
#include "tools/device_options.h"
#include "tools/exit_code.h"
#include "tools/interrupt.h"
#include "tools/number_option.h"
#include "tools/reports/schedule_view.h"
#include "tools/reports/tune_report.h"
#include "tools/table.h"
#include "tools/terminal.h"
#include "tools/tune_budget.h"
#include "tools/tune_progress.h"
#include "tools/verbs/verbs.h"

namespace laneshift::tools {
namespace {

using base::Cat;

constexpr const char* kTuneExamples = R"(
Examples:
  laneshift tune gemm m=16 n=8192 k=8192
  laneshift tune --file bench/gemm.txt --budget 16trials
  laneshift tune --file bench/conv.txt --devices 0,1,2,3 --budget 60s --json
  laneshift tune --file bench/gemm.txt --shard 2/4
  laneshift tune gemm m=4096 n=4096 k=4096 --search exhaustive --json --candidates
  laneshift tune gemm m=4096 n=4096 k=4096 --target sm_100a

Every trial is stored as soon as it is measured: a search that was stopped goes on where it was, and Ctrl-C loses nothing.
On a machine without a GPU of the target the model ranks, the emulator verifies the winner, and the choice is stored as
predicted. `run` and plans use the stored choice from then on.

Exit codes: 0 ok, 1 a problem failed, 2 usage or an invalid problem, 3 unsupported, 4 no such device, 130 interrupted.
With several problems: that of the first one that failed.)";

struct TuneVerbOptions {
  DeviceOptions device;
  std::vector<std::string> words;
  std::string file, budget, devices, shard, search = "halving", group_sizes;
  double deadline_seconds = 0;
  ScheduleView view = ScheduleView::kShort;
  bool json = false, candidates = false;
};

Result<autotune::SearchKind> ParseSearch(const std::string& text) {
  for (const auto kind : {autotune::SearchKind::kHalving, autotune::SearchKind::kExhaustive}) {
    if (text == autotune::SearchKindName(kind)) return kind;
  }
  return MakeError(ErrorCode::kInvalidArgument,
                   Cat("--search ", text, " is unknown; use --search halving or --search exhaustive"));
}

// The problems, each once, and their outcomes.
class Batch {
 public:
  Batch(std::vector<Problem> problems, const TuneVerbOptions& options, const autotune::TuneOptions& tune)
      : options_(options),
        tune_(tune),
        problems_(std::move(problems)),
        outcomes_(problems_.size()),
        line_(stderr, problems_.size()),
        trials_(problems_.size(), 0) {}

  // Takes problem after problem until none is left; several threads may.
  void Work(const autotune::WorkerOptions& worker_options, store::Store& store) {
    autotune::WorkerClient worker(worker_options);
    for (size_t i; (i = next_.fetch_add(1)) < problems_.size() && !InterruptRequested();) {
      autotune::TuneOptions tune = tune_;
      tune.on_progress = [&](const autotune::TuneProgress& progress) {
        trials_[i] = progress.trials;
        line_.Show(progress, i, tune_.max_seconds);
      };
      Settle(i, TuneOne(problems_[i], tune, worker, store));
    }
  }

  // The first failure's; then that of the interruption.
  int ExitCode() const {
    for (const auto& outcome : outcomes_) {
      if (outcome && !outcome->outcome && !InterruptRequested()) return ExitCodeOf(outcome->outcome.error().code);
    }
    return InterruptRequested() ? kExitInterrupted : kExitOk;
  }

  // After an interruption: what has been achieved.
  void TellWhatIsKept() {
    line_.Clear();
    const auto done = std::count_if(outcomes_.begin(), outcomes_.end(),
                                    [](const auto& one) { return one && one->outcome && one->outcome->complete; });
    const int trials = std::accumulate(trials_.begin(), trials_.end(), 0);
    Tell("note", Cat("interrupted: ", done, " of ", problems_.size(), " problems are tuned, and ", trials,
                     " new trials are stored; the same command goes on from there"));
  }

  void PrintTable() {
    line_.Clear();
    std::vector<TunedProblem> tuned;
    bool any = false;
    for (auto& outcome : outcomes_) {
      // A problem that was interrupted has not failed.
      if (!outcome || (!outcome->outcome && InterruptRequested())) continue;
      any = any || outcome->outcome;
      tuned.push_back(std::move(*outcome));
    }
    if (!any) return;
    std::fputs(PrintTuneTable(tuned, StdoutScreen(), options_.view).c_str(), stdout);
  }

 private:
  Result<autotune::TuneOutcome> TuneOne(const Problem& problem, autotune::TuneOptions& tune,
                                        autotune::WorkerClient& worker, store::Store& store) {
    LS_ASSIGN(tune.group_sizes, measure::SizesOfGroups(problem, options_.group_sizes));
    return autotune::Tune(problem, worker, store, tune);
  }

  void Settle(size_t index, Result<autotune::TuneOutcome> outcome) {
    line_.Clear();
    const std::lock_guard lock(mutex_);
    line_.Finish(index);
    // A search that was interrupted has not failed.
    if (!outcome && !InterruptRequested()) {
      Tell("error", Cat(PrintProblem(problems_[index]), ": ", outcome.error().message));
    }
    outcomes_[index] = TunedProblem{problems_[index], std::move(outcome)};
    if (!options_.json) return;
    const TuneDetail detail = options_.candidates ? TuneDetail::kEveryCandidate : TuneDetail::kWinner;
    std::printf("%s\n", PrintTuneJson(*outcomes_[index], detail).c_str());
    std::fflush(stdout);
  }

  const TuneVerbOptions& options_;
  const autotune::TuneOptions& tune_;
  const std::vector<Problem> problems_;
  std::vector<std::optional<TunedProblem>> outcomes_;  // guarded by mutex_; by problem
  std::mutex mutex_;
  std::atomic<size_t> next_{0};
  TuneProgressLine line_;
  std::vector<int> trials_;  // new ones of each problem; written by the thread that has it
};

// One worker per device: this program, as the verb `worker`.
Result<std::vector<autotune::WorkerOptions>> WorkersFor(const TuneVerbOptions& options) {
  std::error_code failure;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) {
    return MakeError(ErrorCode::kUnsupported, Cat("this program does not find itself: ", failure.message()));
  }
  std::vector<DeviceOptions> devices = {options.device};
  if (!options.devices.empty()) {
    LS_ASSIGN(const std::vector<int> numbers, ParseDevices(options.devices));
    devices.assign(numbers.size(), options.device);
    for (size_t i = 0; i < numbers.size(); ++i) devices[i].device = Cat("cuda:", numbers[i]);
  }
  std::vector<autotune::WorkerOptions> workers;
  for (const DeviceOptions& device : devices) {
    autotune::WorkerOptions worker;
    worker.argv = {self.string(), "worker"};
    const std::vector<std::string> words = device.Words();
    worker.argv.insert(worker.argv.end(), words.begin(), words.end());
    if (!options.group_sizes.empty()) worker.argv.insert(worker.argv.end(), {"--group-sizes", options.group_sizes});
    worker.trial_timeout = std::chrono::milliseconds(static_cast<int64_t>(options.deadline_seconds * 1000));
    worker.stop = InterruptRequested;
    workers.push_back(std::move(worker));
  }
  return workers;
}

Result<int> Tune(const TuneVerbOptions& options, const Settings& settings) {
  // Mistakes in the device's options are reported before a worker is started.
  LS_ASSIGN(const EngineOptions engine_options, options.device.ToEngineOptions(settings));
  // Workers find users' functions in the store.
  std::optional<ProblemReader> reader(engine_options);
  LS_ASSIGN(const std::vector<Problem> all, CollectProblems(options.words, options.file, *reader));
  reader.reset();
  LS_ASSIGN(const Shard shard, ParseShard(options.shard));
  LS_ASSIGN(const TuneBudget budget, ParseBudget(options.budget));
  autotune::TuneOptions tune{.max_trials = budget.trials, .max_seconds = budget.seconds};
  LS_ASSIGN(tune.search, ParseSearch(options.search));
  LS_ASSIGN(const std::vector<autotune::WorkerOptions> workers, WorkersFor(options));
  store::Store store = store::Store::Open({.directory = settings.store_directory});
  if (const auto warning = store.warning()) Tell("warning", *warning);
  if (!store.durable()) Tell("warning", "choices are kept in memory and will not be saved");

  WatchForInterrupt();
  tune.stop = InterruptRequested;
  Batch batch(ProblemsOf(shard, all), options, tune);
  std::atomic<size_t> next_worker = 0;
  base::RunOnThreads(static_cast<int64_t>(workers.size()), [&] { batch.Work(workers[next_worker++], store); });
  if (InterruptRequested()) batch.TellWhatIsKept();
  if (!options.json) batch.PrintTable();
  return batch.ExitCode();
}

}  // namespace

Verb AddTune(CLI::App& app, const Settings& settings) {
  CLI::App* verb = app.add_subcommand("tune", "Find the fastest schedule of problems by measurement, and keep it");
  auto options = std::make_shared<TuneVerbOptions>();
  AddProblems(*verb, options->words, options->file);
  verb->add_option("--budget", options->budget,
                   "of each problem: 200trials, 60s, 5m, or both with a comma between; default 64trials")
      ->type_name("BUDGET");
  verb->add_option("--search", options->search,
                   "halving (the model's best, then what measurements suggest) or exhaustive (every schedule)")
      ->type_name("halving|exhaustive")
      ->capture_default_str();
  verb->add_option("--devices", options->devices, "GPUs by number, one worker process each: 0,1")->type_name("N,...");
  verb->add_option("--shard", options->shard, "i/n: the i-th of n parts of the problems, from 1")->type_name("I/N");
  verb->add_option("--deadline", options->deadline_seconds,
                   "seconds after which a running candidate is given up; default 10 on a GPU, 3600 on the emulator")
      ->type_name("SECONDS")
      ->check(RealNumber(0, kLongestSeconds));
  AddGroupSizes(*verb, options->group_sizes);
  AddFull(*verb, options->view);
  verb->add_flag("--json", options->json, "one JSON object per problem, one per line, on stdout");
  verb->add_flag("--candidates", options->candidates, "with --json: every candidate with its prediction and its time");
  options->device.AddTo(*verb, {.plans = false});
  verb->footer(kTuneExamples);
  return [options, settings] { return Tune(*options, settings); };
}

}  // namespace laneshift::tools
