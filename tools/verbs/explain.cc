#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "autotune/ranking.h"
#include "base/text.h"
#include "runtime/engine_parts.h"
#include "runtime/schedule_choice.h"
#include "tools/device_options.h"
#include "tools/exit_code.h"
#include "tools/json_line.h"
#include "tools/reports/schedule_view.h"
#include "tools/table.h"
#include "tools/verbs/verbs.h"

namespace laneshift::tools {
namespace {

using autotune::Bound;
using autotune::Machine;
using autotune::RankedSchedule;
using autotune::Ranking;
using base::Cat;
using Json = nlohmann::ordered_json;

constexpr size_t kNameColumn = 11;
constexpr double kShownShare = 0.03;  // of the time, below which a cause is left out of the table

constexpr const char* kExplainExamples = R"(
Examples:
  laneshift explain gemm m=4096 n=4096 k=4096
  laneshift explain gemm m=16 n=8192 k=8192 --target sm_90a --top 5
  laneshift explain conv n=32 h=28 w=28 c=128 k=128 r=3 s=3 pad=1 --target sm_90a --schedule "reuse=row_offset a_load=tma"
  laneshift explain gemm m=512 n=512 k=512 --schedule "tile=128x256 stages=9" --refused
  laneshift explain gemm m=4096 n=4096 k=4096 --json

Times come from the timing model (docs/timing-model.md), for the published facts of the target's product, or for what
`laneshift probe` has measured of the GPU at hand. The breakdown is of the critical path.)";

struct ExplainOptions {
  std::vector<std::string> words, include;
  std::string target, schedule;
  size_t top = 10;
  ScheduleView view = ScheduleView::kShort;
  bool json = false, refused = false;
};

// The machine of the prediction, and the schedule that `run` uses there.
struct Subject {
  const target::Target* target = nullptr;
  Machine machine;
  std::string description;
  std::optional<runtime::ChosenSchedule> chosen{};  // nothing: nothing fits

  bool Takes(const Schedule& schedule) const { return chosen && chosen->schedule == schedule; }
};

// The reader's device, with what is stored of it.
Result<Subject> SubjectOf(const Problem& problem, const ScheduleConstraint& constraint, ProblemReader& reader) {
  LS_ASSIGN(const Engine* engine, reader.Look());
  Engine::Parts& parts = engine->parts();
  const device::DeviceFacts& facts = parts.device.facts();
  Subject subject{.target = &parts.target,
                  .machine = autotune::MachineOf(parts.target, facts.sm_count, parts.device_key, parts.store),
                  .description = parts.emulated ? Cat("published facts, ", facts.sm_count, " SMs") : facts.name};
  if (const auto chosen = runtime::ChooseFor(parts, problem, constraint)) subject.chosen = *chosen;
  return subject;
}

// `choice`: why `run` takes it; null where it takes another.
Json CandidateJson(const RankedSchedule& candidate, const Problem& problem, const Subject& subject) {
  const autotune::Prediction& p = candidate.prediction;
  Json breakdown = Json::object();
  for (size_t i = 0; i < p.by_us.size(); ++i) {
    if (p.by_us[i] > 0) breakdown[autotune::BoundName(static_cast<Bound>(i))] = p.by_us[i];
  }
  const bool taken = subject.Takes(candidate.schedule);
  return {{"schedule", PrintSchedule(candidate.schedule)},
          {"choice", taken ? Json(ChoiceOriginName(subject.chosen->origin)) : Json()},
          {"predicted_us", candidate.predicted_us},
          {"bound", autotune::BoundName(candidate.bound)},
          {"tflops", ProblemFlops(problem) / p.us * 1e-6},
          {"clock_ghz", p.clock_ghz},
          {"tensor_share", p.tensor_share},
          {"memory_bytes", p.memory_bytes},
          {"breakdown_us", std::move(breakdown)}};
}

void PrintJson(const Problem& problem, const Subject& subject, const Ranking& ranking, const ExplainOptions& options) {
  size_t shown = 0;
  for (const RankedSchedule& candidate : ranking.schedules) {
    if (options.top > 0 && shown++ == options.top) break;
    std::printf("%s\n", JsonLine(CandidateJson(candidate, problem, subject)).c_str());
  }
  if (!options.refused) return;
  for (const autotune::RefusedSchedule& refused : ranking.refused) {
    const Json object = {{"schedule", PrintSchedule(refused.schedule)}, {"refused", refused.reason.message}};
    std::printf("%s\n", JsonLine(object).c_str());
  }
}

// "tensor core 80%, store 12%": the larger causes, largest first.
std::string Breakdown(const autotune::Prediction& p) {
  std::vector<size_t> order;
  for (size_t i = 0; i < p.by_us.size(); ++i) {
    if (p.by_us[i] >= kShownShare * p.us) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p.by_us[a] > p.by_us[b]; });
  std::string text;
  for (const size_t i : order) {
    text += Cat(text.empty() ? "" : ", ", autotune::BoundName(static_cast<Bound>(i)), " ",
                PrintFixed(100 * p.by_us[i] / p.us, 0), "%");
  }
  return text;
}

void PrintRefused(const Ranking& ranking, const ExplainOptions& options) {
  const bool all = options.refused;
  const size_t width = TerminalWidth(stdout);
  if (ranking.refused.empty()) return;
  std::printf("\n%zu more were refused%s\n", ranking.refused.size(), all ? ":" : ", for example (--refused: all):");
  std::map<std::string, int> told;  // one example for each way in which a message begins
  for (const autotune::RefusedSchedule& refused : ranking.refused) {
    const std::string kind = refused.reason.message.substr(0, refused.reason.message.find_first_of("0123456789"));
    if (told[kind]++ > 0 && !all) continue;
    const std::string schedule = ShowSchedule(PrintSchedule(refused.schedule), options.view);
    std::printf("%s\n%s\n", Wrapped(schedule, width, {.first = 2, .rest = 6}).c_str(),
                Wrapped(refused.reason.message, width, {.first = 4, .rest = 4}).c_str());
  }
}

void PrintPages(const Problem& problem, const Subject& subject, const Ranking& ranking, const ExplainOptions& options) {
  const Screen screen = StdoutScreen();
  const std::string target = Cat(subject.target->name, " (", subject.description, ")");
  std::printf("%s\n%s\n", Itemized("problem", PrintProblem(problem), kNameColumn, screen.width).c_str(),
              Itemized("target", target, kNameColumn, screen.width).c_str());
  if (subject.chosen) {
    const std::string taken =
        Cat(PrintSchedule(subject.chosen->schedule), " (", ChoiceOriginName(subject.chosen->origin), ")");
    std::printf("%s\n", Itemized("run takes", taken, kNameColumn, screen.width).c_str());
  }
  TextTable table({{"#", Align::kRight},
                   {"us", Align::kRight},
                   {"TFLOP/s", Align::kRight},
                   {"GHz", Align::kRight},
                   {"critical path", Align::kLeft, Room::kLong},
                   {"schedule", Align::kLeft, Room::kLong}});
  size_t shown = 0;
  for (const RankedSchedule& candidate : ranking.schedules) {
    if (options.top > 0 && shown == options.top) break;
    const autotune::Prediction& p = candidate.prediction;
    table.Add({{Cat(++shown)},
               {PrintFixed(p.us, 2), shown == 1 ? Tint::kGood : Tint::kPlain},
               {PrintFixed(ProblemFlops(problem) / p.us * 1e-6, 0)},
               {PrintFixed(p.clock_ghz, 2)},
               {Breakdown(p)},
               {ShowSchedule(PrintSchedule(candidate.schedule), options.view), Tint::kFaint}});
  }
  std::fputs(table.Print(screen).c_str(), stdout);
  if (shown < ranking.schedules.size()) {
    std::printf("and %zu slower ones (--top 0: all)\n", ranking.schedules.size() - shown);
  }
  PrintRefused(ranking, options);
}

Result<int> Explain(const ExplainOptions& options, const Settings& settings) {
  ProblemReader reader = ProblemReader::ForLooking(options.target, SourceOptionsOf(settings, options.include));
  LS_ASSIGN(const std::vector<Problem> problems, CollectProblems(options.words, {}, reader));
  if (problems.size() != 1) return MakeError(ErrorCode::kInvalidArgument, "explain takes one problem at a time");
  LS_ASSIGN(const ScheduleConstraint constraint, ConstraintOf(options.schedule));
  LS_ASSIGN(const Subject subject, SubjectOf(problems[0], constraint, reader));
  const Ranking ranking = autotune::RankSchedules(problems[0], constraint, *subject.target, subject.machine);
  if (options.json) {
    PrintJson(problems[0], subject, ranking, options);
  } else {
    PrintPages(problems[0], subject, ranking, options);
  }
  if (ranking.schedules.empty()) return autotune::NothingFits(ranking.refused, *subject.target);
  return kExitOk;
}

}  // namespace

Verb AddExplain(CLI::App& app, const Settings& settings) {
  CLI::App* verb = app.add_subcommand(
      "explain",
      "Rank the schedules of a problem by predicted time, and say what bounds each and why others are refused");
  auto options = std::make_shared<ExplainOptions>();
  verb->add_option("problem", options->words, "one problem, as bare words")->type_name("WORD");
  AddTarget(*verb, options->target);
  verb->add_option("--schedule", options->schedule,
                   "a complete or partial schedule: only candidates that agree with it")
      ->type_name("SCHEDULE");
  AddInclude(*verb, options->include);
  verb->add_option("--top", options->top, "candidates to show; 0: all. With --json all unless this is given")
      ->type_name("N");
  verb->add_flag("--refused", options->refused, "show every refused schedule");
  AddFull(*verb, options->view);
  verb->add_flag("--json", options->json, "one JSON object per candidate, one per line, best first, on stdout");
  verb->footer(kExplainExamples);
  return [options, settings, verb] {
    ExplainOptions given = *options;
    if (given.json && verb->count("--top") == 0) given.top = 0;
    return Explain(given, settings);
  };
}

}  // namespace laneshift::tools
