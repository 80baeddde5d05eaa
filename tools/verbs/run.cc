#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "compiler/compile.h"
#include "runtime/engine_parts.h"
#include "store/location.h"
#include "tools/device_options.h"
#include "tools/exit_code.h"
#include "tools/json_line.h"
#include "tools/number_option.h"
#include "tools/problem_run.h"
#include "tools/reports/emulated_timeline.h"
#include "tools/reports/run_report.h"
#include "tools/reports/schedule_view.h"
#include "tools/reports/timeline_comparison.h"
#include "tools/table.h"
#include "tools/terminal.h"
#include "tools/verbs/verbs.h"

namespace laneshift::tools {
namespace {

using base::Cat;
using ir::OperandRole;

constexpr const char* kRunExamples = R"(
Examples:
  laneshift run gemm m=256 n=256 k=256 a=bf16 b=bf16 d=bf16 --check
  laneshift run "gemm m=16 n=1024 k=4096" "gemm m=7 n=129 k=1000 d=f32 bias=n" --device emulator --check
  laneshift run --file examples/llama3-8b-16-tokens.txt --check --json
  laneshift run gemm m=128 n=64 k=512 a=f16 --a a.npy --b b.npy --out d.npy
  laneshift run gemm m=4096 n=4096 k=4096 --device cuda --check --vs cublas
  laneshift run gemm m=512 n=512 k=512 --schedule "tile=128x256 stages=4" --async random:7 --check
  laneshift run gemm m=256 n=256 k=512 --device emulator --async late --timeline trace.json
  laneshift run conv n=1 h=56 w=56 c=64 k=64 r=3 s=3 pad=1 --check
  laneshift run --file bench/conv.txt --device cuda --vs cudnn --json

Exit codes: 0 ok, 1 wrong result or failure, 2 usage or an invalid problem, 3 unsupported or a schedule that does not
fit, 4 no such device. With several problems: that of the first one that failed.)";

struct RunOptions {
  DeviceOptions device;
  RunSettings run;
  std::vector<std::string> words;
  std::string file, schedule, vs, timeline;
  ScheduleView view = ScheduleView::kShort;
  bool json = false;
};

int ExitCodeFor(const Result<RunOutcome>& outcome) {
  if (!outcome) return ExitCodeOf(outcome.error().code);
  return outcome->failures.empty() ? kExitOk : kExitFailure;
}

// Notes for people, on stderr, each once.
void PrintNotes(const ProblemOutcome& run, std::vector<std::string>& told) {
  const std::string problem = PrintProblem(run.problem);
  if (!run.outcome) {
    Tell("error", Cat(problem, ": ", run.outcome.error().message));
    return;
  }
  for (const std::string& failure : run.outcome->failures) {
    Tell("wrong", Cat(problem, ": ", failure));
  }
  for (const std::string& note : run.outcome->notes) {
    if (std::find(told.begin(), told.end(), note) != told.end()) continue;
    Tell("note", note);
    told.push_back(note);
  }
}

Status CheckFiles(const RunSettings& run, size_t problems) {
  const bool any =
      run.record_timeline || std::ranges::any_of(run.files, [](const std::string& file) { return !file.empty(); });
  if (!any || problems == 1) return Ok();
  return MakeError(ErrorCode::kInvalidArgument,
                   Cat("--a, --b, --c (--x, --w, --z), --bias, --scale_a, --scale_b, --scale_d, "
                       "--tensor_scale_a, --tensor_scale_b, --metadata_a, --out and --timeline belong to one problem, "
                       "but there are ",
                       problems, "; run them one by one"));
}

// `more`: what follows the chart.
Status WriteTimeline(const Timeline& timeline, const std::string& more, const Screen& screen,
                     const RunOptions& options) {
  LS_TRY(WriteOutput(options.timeline, JsonLine(TraceEventsJson(timeline)) + "\n"));
  if (!options.json) std::fputs(Cat(GanttText(timeline, screen), "\n", more).c_str(), stdout);
  return Ok();
}

// The file, and a chart for people.
Status ShowTimeline(const ProblemOutcome& run, const Engine& engine, const RunOptions& options) {
  const RunOutcome& outcome = *run.outcome;
  const Engine::Parts& parts = engine.parts();
  LS_ASSIGN(const ScheduleConstraint schedule, ParseSchedule(outcome.plan.schedule));
  const Screen screen{.width = StdoutScreen().width};
  if (parts.emulated) {
    LS_ASSIGN(const ir::Program program, compiler::BuildProgram(run.problem, schedule.value, parts.target));
    return WriteTimeline(EmulatedTimeline(outcome.events, program), "", screen, options);
  }
  LS_ASSIGN(Timeline measured, MeasuredTimeline(*outcome.stamped));
  measured.kernel = KernelText(run.problem, schedule.value, parts.target);
  const autotune::Machine machine =
      autotune::MachineOf(parts.target, parts.device.facts().sm_count, parts.device_key, parts.store);
  LS_ASSIGN(const Timeline model,
            ModelTimeline(run.problem, schedule.value, parts.target, machine, autotune::kTracedPart));
  const std::string comparison = ComparisonText(CompareTimelines(model, measured), screen);
  return WriteTimeline(measured, Cat(comparison, "\n"), screen, options);
}

Result<int> Run(const RunOptions& options, const Settings& settings) {
  LS_ASSIGN(const EngineOptions engine_options, options.device.ToEngineOptions(settings));
  ProblemReader reader(engine_options);
  LS_ASSIGN(const std::vector<Problem> problems, CollectProblems(options.words, options.file, reader));
  RunSettings run = options.run;
  run.library_directories = settings.library_directories;
  run.record_timeline = !options.timeline.empty();
  LS_ASSIGN(run.constraint, ConstraintOf(options.schedule));
  LS_TRY(CheckFiles(run, problems.size()));
  if (!options.vs.empty()) {
    LS_ASSIGN(run.vs, measure::ParsePeer(options.vs));
  }
  LS_ASSIGN(const Engine engine, reader.Take());
  if (!options.json) {
    Inform(Cat(engine.device_name(), ", ", engine.target(),
               ", store: ", settings.store_directory == store::kInMemory ? "in memory" : settings.store_directory));
  }

  int exit_code = kExitOk;
  std::vector<std::string> told;
  std::vector<ProblemOutcome> outcomes;
  for (const Problem& problem : problems) {
    ProblemOutcome outcome{problem, RunProblem(engine, problem, run)};
    if (exit_code == kExitOk) exit_code = ExitCodeFor(outcome.outcome);
    PrintNotes(outcome, told);
    if (options.json) {
      std::printf("%s\n", PrintJson(outcome, engine.target(), engine.device_name()).c_str());
      std::fflush(stdout);
    }
    if (run.record_timeline && outcome.outcome) LS_TRY(ShowTimeline(outcome, engine, options));
    outcomes.push_back(std::move(outcome));
  }
  // If nothing ran, the errors say everything.
  const bool any =
      std::any_of(outcomes.begin(), outcomes.end(), [](const ProblemOutcome& o) { return bool(o.outcome); });
  if (!options.json && any) std::fputs(PrintTable(outcomes, StdoutScreen(), options.view).c_str(), stdout);
  return exit_code;
}

void AddDataOptions(CLI::App& app, RunSettings& run) {
  app.add_option("--seed", run.seed, "of the data: uniform in [-1, 1), the same on every device")
      ->type_name("N")
      ->check(WholeNumber(0, kLargestSeed))
      ->capture_default_str();
  struct FileOption {
    OperandRole role;
    const char *names, *help;
  };
  constexpr FileOption kFiles[] = {
      {OperandRole::kA, "--a,--x",
       "A, or x (n, h, w, c), from an .npy file ('<f2', '<f4'; bf16: its bits as '<u2', e4m3 and e5m2: as '|u1', "
       "narrower types: the bytes of packed rows)"},
      {OperandRole::kB, "--b,--w",
       "B from an .npy file, as it is stored: n x k for b_major=k, k x n for b_major=n; or w (k, r, s, c/groups)"},
      {OperandRole::kC, "--c,--z", "C, or z (n, p, q, k), from an .npy file (with beta)"},
      {OperandRole::kBias, "--bias", "the bias from an .npy file (with bias=m, bias=n or bias=k)"},
      {OperandRole::kScaleA, "--scale_a,--scale_x", "the scale factors of A from an .npy file (with scale=)"},
      {OperandRole::kScaleB, "--scale_b,--scale_w", "the same of B"},
      {OperandRole::kScaleD, "--scale_d,--scale_y", "the same of an 8-bit D"},
      {OperandRole::kTensorScaleA, "--tensor_scale_a", "the f32 factor of all of A from an .npy file (with scale=nv)"},
      {OperandRole::kTensorScaleB, "--tensor_scale_b", "the same of B"},
      {OperandRole::kMetadataA, "--metadata_a", "the metadata of a sparse A from an .npy file (with sparse=a)"},
      {OperandRole::kD, "--out", "write D, or y (n, p, q, k), to an .npy file"},
      {OperandRole::kBlockScaleD, "--block_scale_d",
       "write the scale factors of D's blocks to an .npy file (with d_scale=)"},
  };
  for (const auto& [role, names, help] : kFiles) app.add_option(names, run.File(role), help)->type_name("FILE");
}

}  // namespace

Verb AddRun(CLI::App& app, const Settings& settings) {
  CLI::App* verb = app.add_subcommand("run", "Compile problems, run them, check and time the results");
  auto options = std::make_shared<RunOptions>();
  AddProblems(*verb, options->words, options->file);
  options->device.AddTo(*verb);
  verb->add_option("--schedule", options->schedule,
                   "\"tile=128x256 stages=4\": a partial schedule constrains the choice, a complete one fixes it")
      ->type_name("SCHEDULE");
  AddDataOptions(*verb, options->run);
  verb->add_option("--timeline", options->timeline,
                   "write what the warps of the first cluster wait for as a trace for Perfetto, and show it as a "
                   "chart: on a GPU "
                   "measured, next to the timing model; on the emulator its order of events")
      ->type_name("FILE");
  AddGroupSizes(*verb, options->run.group_sizes);
  verb->add_flag("--check", options->run.check, "compare every element with a double-precision reference");
  verb->add_option("--vs", options->vs, "cublas (gemm) or cudnn (conv): time it interleaved with laneshift (GPU only)")
      ->type_name("cublas|cudnn");
  verb->add_option("--repeat", options->run.repeat,
                   "timed calls on a GPU, of which the median counts; at least 20 are made")
      ->type_name("N")
      ->check(WholeNumber(1, kMostRepeats))
      ->capture_default_str();
  verb->add_option("--row", options->run.row, "calls in a row per timing; the time is that of one call")
      ->type_name("N")
      ->check(WholeNumber(1, kMostRepeats))
      ->capture_default_str();
  AddFull(*verb, options->view);
  verb->add_flag("--json", options->json, "one JSON object per problem, one per line, on stdout");
  verb->footer(kRunExamples);
  return [options, settings] { return Run(*options, settings); };
}

}  // namespace laneshift::tools
