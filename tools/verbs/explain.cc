#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "autotune/ranking.h"
#include "base/text.h"
#include "measure/reference/group_offsets.h"
#include "runtime/engine_parts.h"
#include "runtime/schedule_choice.h"
#include "tools/compilation.h"
#include "tools/device_options.h"
#include "tools/exit_code.h"
#include "tools/json_line.h"
#include "tools/number_option.h"
#include "tools/reports/advice_report.h"
#include "tools/reports/schedule_view.h"
#include "tools/table.h"
#include "tools/verbs/verbs.h"

namespace laneshift::tools {
namespace {

using autotune::RankedSchedule;
using autotune::Ranking;
using base::Cat;
using Json = nlohmann::ordered_json;

constexpr size_t kNameColumn = 11;

constexpr const char* kExplainExamples = R"(
Examples:
  laneshift explain gemm m=4096 n=4096 k=4096
  laneshift explain gemm m=16 n=8192 k=8192 --target sm_90a --top 5
  laneshift explain conv n=32 h=28 w=28 c=128 k=128 r=3 s=3 pad=1 --target sm_90a --schedule "reuse=row_offset a_load=tma"
  laneshift explain gemm m=4096 n=4096 k=4096 --schedule "tile=128x128x64 stages=2 acc=1 cluster=1x1 ctas=1"
  laneshift explain gemm m=512 n=512 k=512 --schedule "tile=128x256 stages=9" --refused
  laneshift explain conv n=32 h=56 w=56 c=64 k=64 r=3 s=3 pad=1 --target sm_100a --fact tensor_move=1
  laneshift explain gemm m=4096 n=4096 k=4096 --json

Times come from the timing model (docs/timing-model.md), for the published facts of the target's product, or for what
`laneshift probe` has measured of the GPU at hand; --fact asks what would be best if one were another. The breakdown is of the critical path. Advice is a prediction, too:
a weakness of a schedule is a change of one decision that the model finds faster. The floor is the time of all MMAs at
the full rate of the tensor cores, or of operands and output once through memory, whichever is longer.)";

struct ExplainOptions {
  std::vector<std::string> words, include, facts;
  std::string target, schedule, group_sizes;
  size_t top = 10;
  ScheduleView view = ScheduleView::kShort;
  bool json = false, refused = false;
};

// The device of the prediction, the sizes of groups, if they are given, and the schedule that `run` uses there, which
// does not depend on them.
struct Subject {
  LookedDevice device;
  std::vector<int64_t> group_sizes{};
  std::optional<runtime::ChosenSchedule> chosen{};  // nothing: nothing fits

  const target::Target& target() const { return chosen ? *chosen->target : *device.target; }
  bool Takes(const Schedule& schedule) const { return chosen && chosen->schedule == schedule; }
};

// The facts of a machine that is supposed, NAME=VALUE each.
Status SupposeFacts(const std::vector<std::string>& facts, autotune::Machine& machine) {
  for (const std::string& fact : facts) {
    const size_t equals = fact.find('=');
    if (equals == std::string::npos)
      return MakeError(ErrorCode::kInvalidArgument, Cat("--fact ", fact, " has no value; write NAME=VALUE"));
    LS_TRY(autotune::SetFact(machine, fact.substr(0, equals), fact.substr(equals + 1)));
  }
  return Ok();
}

// The reader's device, with what is stored of it. If facts of another are supposed, the model chooses for that one.
Result<Subject> SubjectOf(const Problem& problem, const ScheduleConstraint& constraint,
                          const std::vector<std::string>& facts, ProblemReader& reader) {
  LS_ASSIGN(const Engine* engine, reader.Look());
  Subject subject{.device = DeviceOf(engine->parts())};
  LS_TRY(SupposeFacts(facts, subject.device.machine));
  if (!facts.empty()) {
    subject.device.description += Cat(", supposed ", base::Join(facts, " "));
    const target::Target& target = *subject.device.target;
    if (const auto best = autotune::ChooseSchedule(problem, constraint, target, subject.device.machine))
      subject.chosen =
          runtime::ChosenSchedule{*best, &target, constraint.fixed == 0 ? ChoiceOrigin::kRule : ChoiceOrigin::kGiven};
  } else if (const auto chosen = runtime::ChooseFor(engine->parts(), problem, constraint)) {
    subject.chosen = *chosen;
  }
  return subject;
}

// Predictions are equal if people see the same time.
bool SameTime(double a, double b) { return std::abs(a - b) < 0.005; }

// The schedule to compare `taken` with: the model's best if that is faster, otherwise the next slower one; where the
// caller's constraint leaves no other, the best without it.
std::optional<RivalSchedule> RivalOf(const Problem& problem, const Schedule& taken, double us, const Ranking& ranking,
                                     const Subject& subject, bool constrained) {
  if (constrained) {
    const autotune::Machine& machine = subject.device.machine;
    const auto best = autotune::ChooseSchedule(problem, {}, subject.target(), machine);
    if (best && *best != taken) {
      const auto prediction = autotune::PredictTime(problem, *best, subject.target(), machine, subject.group_sizes);
      if (prediction) return RivalSchedule{"The best schedule without this constraint", *best, *prediction};
    }
  }
  for (const RankedSchedule& candidate : ranking.schedules) {
    if (candidate.schedule == taken || SameTime(candidate.predicted_us, us)) continue;
    const bool faster = candidate.predicted_us < us;
    return RivalSchedule{faster ? "The model's best schedule" : "The next best schedule", candidate.schedule,
                         candidate.prediction};
  }
  return std::nullopt;
}

// Of the schedule that `run` takes; nothing if nothing fits.
std::optional<AdvisedSchedule> AdviceOn(const Problem& problem, const Ranking& ranking, const Subject& subject,
                                        bool constrained) {
  if (!subject.chosen) return std::nullopt;
  const Schedule& taken = subject.chosen->schedule;
  auto advice = autotune::Advise(problem, taken, subject.target(), subject.device.machine, subject.group_sizes);
  if (!advice) return std::nullopt;
  AdvisedSchedule advised{.schedule = taken, .target = &subject.target(), .advice = std::move(*advice)};
  advised.rival = RivalOf(problem, taken, advised.advice.prediction.us, ranking, subject, constrained);
  return advised;
}

// `choice` and `advice`: of the schedule that `run` takes; null of others.
Json CandidateJson(const RankedSchedule& candidate, const Problem& problem, const Subject& subject,
                   const std::optional<AdvisedSchedule>& advised) {
  const autotune::Prediction& p = candidate.prediction;
  const bool taken = subject.Takes(candidate.schedule);
  return {{"schedule", PrintSchedule(candidate.schedule)},
          {"choice", taken ? Json(ChoiceOriginName(subject.chosen->origin)) : Json()},
          {"predicted_us", candidate.predicted_us},
          {"bound", autotune::BoundName(candidate.bound)},
          {"tflops", ProblemFlops(problem) / p.us * 1e-6},
          {"clock_ghz", p.clock_ghz},
          {"tensor_share", p.tensor_share},
          {"memory_bytes", p.memory_bytes},
          {"breakdown_us", BreakdownJson(p)},
          {"advice", taken && advised ? AdviceJson(*advised) : Json()}};
}

void PrintJson(const Problem& problem, const Subject& subject, const Ranking& ranking,
               const std::optional<AdvisedSchedule>& advised, const ExplainOptions& options) {
  size_t shown = 0;
  bool taken = false;
  const auto print = [&](const RankedSchedule& candidate) {
    taken |= subject.Takes(candidate.schedule);
    std::printf("%s\n", JsonLine(CandidateJson(candidate, problem, subject, advised)).c_str());
  };
  for (const RankedSchedule& candidate : ranking.schedules) {
    if (options.top > 0 && shown++ == options.top) break;
    print(candidate);
  }
  // A stored choice need not be among them.
  if (advised && !taken) {
    const autotune::Prediction& p = advised->advice.prediction;
    print({advised->schedule, p.us, p.bound, p});
  }
  if (!options.refused) return;
  for (const autotune::RefusedSchedule& refused : ranking.refused) {
    const Json object = {{"schedule", PrintSchedule(refused.schedule)}, {"refused", refused.reason.message}};
    std::printf("%s\n", JsonLine(object).c_str());
  }
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

// Candidates of the same time and the same causes are one row, with the number of the others.
struct TiedCandidates {
  const RankedSchedule* first;
  size_t others = 0;
};
std::vector<TiedCandidates> FoldTies(const std::vector<RankedSchedule>& ranked) {
  std::vector<TiedCandidates> folded;
  for (const RankedSchedule& candidate : ranked) {
    if (!folded.empty() && SameTime(folded.back().first->predicted_us, candidate.predicted_us) &&
        folded.back().first->bound == candidate.bound) {
      ++folded.back().others;
    } else {
      folded.push_back({&candidate});
    }
  }
  return folded;
}

void PrintCandidates(const Problem& problem, const Ranking& ranking, const ExplainOptions& options,
                     const Screen& screen) {
  TextTable table({{"#", Align::kRight},
                   {"us", Align::kRight},
                   {"TFLOP/s", Align::kRight},
                   {"GHz", Align::kRight},
                   {"critical path", Align::kLeft, Room::kLong},
                   {"schedule", Align::kLeft, Room::kLong}});
  size_t rows = 0, shown = 0;
  for (const TiedCandidates& tied : FoldTies(ranking.schedules)) {
    if (options.top > 0 && rows == options.top) break;
    ++rows;
    const autotune::Prediction& p = tied.first->prediction;
    const std::string others = tied.others > 0 ? Cat(" (and ", tied.others, " as fast)") : "";
    table.Add({{Cat(shown + 1)},
               {PrintFixed(p.us, 2), shown == 0 ? Tint::kGood : Tint::kPlain},
               {PrintFixed(ProblemFlops(problem) / p.us * 1e-6, 0)},
               {PrintFixed(p.clock_ghz, 2)},
               {BreakdownText(p)},
               {ShowSchedule(PrintSchedule(tied.first->schedule), options.view) + others, Tint::kFaint}});
    shown += 1 + tied.others;
  }
  std::printf("\n");
  std::fputs(table.Print(screen).c_str(), stdout);
  if (shown < ranking.schedules.size()) {
    std::printf("and %zu slower ones (--top 0: all)\n", ranking.schedules.size() - shown);
  }
}

void PrintPages(const Problem& problem, const Subject& subject, const Ranking& ranking,
                const std::optional<AdvisedSchedule>& advised, const ExplainOptions& options) {
  const Screen screen = StdoutScreen();
  const std::string target = Cat(subject.target().name, " (", subject.device.description, ")");
  std::printf("%s\n%s\n", Itemized("problem", PrintProblem(problem), kNameColumn, screen.width).c_str(),
              Itemized("target", target, kNameColumn, screen.width).c_str());
  if (subject.chosen) {
    const std::string taken = Cat(ShowSchedule(PrintSchedule(subject.chosen->schedule), options.view), " (",
                                  ChoiceOriginName(subject.chosen->origin), ")");
    std::printf("%s\n",
                Itemized(options.facts.empty() ? "run takes" : "best", taken, kNameColumn, screen.width).c_str());
  }
  if (advised) {
    std::string_view name = "why";
    const std::string text = AdviceText(*advised);
    for (const std::string_view line : base::Split(text, '\n')) {
      if (!line.empty()) std::printf("%s\n", Itemized(name, line, kNameColumn, screen.width).c_str());
      name = "";
    }
  }
  PrintCandidates(problem, ranking, options, screen);
  PrintRefused(ranking, options);
}

Result<int> Explain(const ExplainOptions& options, const Settings& settings) {
  ProblemReader reader = ProblemReader::ForLooking(options.target, SourceOptionsOf(settings, options.include));
  LS_ASSIGN(const std::vector<Problem> problems, CollectProblems(options.words, {}, reader));
  if (problems.size() != 1) return MakeError(ErrorCode::kInvalidArgument, "explain takes one problem at a time");
  LS_ASSIGN(const ScheduleConstraint constraint, ConstraintOf(options.schedule));
  LS_ASSIGN(Subject subject, SubjectOf(problems[0], constraint, options.facts, reader));
  LS_ASSIGN(subject.group_sizes, measure::SizesOfGroups(problems[0], options.group_sizes));
  const Ranking ranking = autotune::RankSchedules(problems[0], constraint, subject.target(), subject.device.machine,
                                                  autotune::RingDepths::kUsual, subject.group_sizes);
  const auto advised = AdviceOn(problems[0], ranking, subject, constraint.fixed != 0);
  if (options.json) {
    PrintJson(problems[0], subject, ranking, advised, options);
  } else {
    PrintPages(problems[0], subject, ranking, advised, options);
  }
  if (ranking.schedules.empty()) return autotune::NothingFits(ranking.refused, subject.target());
  return kExitOk;
}

}  // namespace

Verb AddExplain(CLI::App& app, const Settings& settings) {
  CLI::App* verb = app.add_subcommand(
      "explain", "Say what binds the schedule that runs and what would make it faster, and rank all by predicted time");
  auto options = std::make_shared<ExplainOptions>();
  verb->add_option("problem", options->words, "one problem, as bare words")->type_name("WORD");
  AddTarget(*verb, options->target);
  verb->add_option("--schedule", options->schedule,
                   "a complete or partial schedule: only candidates that agree with it")
      ->type_name("SCHEDULE");
  AddGroupSizes(*verb, options->group_sizes);
  AddInclude(*verb, options->include);
  verb->add_option("--fact", options->facts,
                   "suppose a fact of the timing model (docs/timing-model.md) instead of the device's; repeatable")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  verb->add_option("--top", options->top, "candidates to show; 0: all. With --json all unless this is given")
      ->type_name("N")
      ->check(WholeNumber(0, INT32_MAX));
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
