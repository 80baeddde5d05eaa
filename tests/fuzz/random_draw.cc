#include "tests/fuzz/random_draw.h"

#include "base/text.h"
#include "ir/grammar.h"
#include "laneshift/problem.h"
#include "target/target.h"

namespace laneshift::fuzz {
namespace {

using base::Cat;

std::vector<std::string> WordsOf(std::string_view text) {
  const std::vector<std::string_view> words = base::Words(text);
  return {words.begin(), words.end()};
}

}  // namespace

std::string Draw::ProblemText() const { return base::Join(problem, " "); }
std::string Draw::ScheduleText() const { return base::Join(schedule, " "); }

std::string Draw::Command() const {
  std::string text = Cat("laneshift run ", ProblemText(), " --device emulator --target ", target);
  if (!schedule.empty()) text += Cat(" --schedule \"", ScheduleText(), "\"");
  if (async != "eager") text += Cat(" --async ", async);
  if (multiprocessors != 0) text += Cat(" --emulator-multiprocessors ", multiprocessors);
  return Cat(text, " --check");
}

std::string Draw::Print() const {
  return Cat(ProblemText(), "; ", ScheduleText(), "; ", target, "; ", async, "; ", multiprocessors);
}

Result<Draw> ParseDraw(std::string_view line) {
  const std::vector<std::string_view> parts = base::Split(line, ';');
  const auto count = base::ParseInt(base::Trim(parts.back()));
  if (parts.size() != 5 || base::Words(parts[0]).empty() || !count) {
    return MakeError(ErrorCode::kInvalidArgument,
                     Cat("'", line, "' is no draw; write PROBLEM; SCHEDULE; TARGET; ORDER; MULTIPROCESSORS"));
  }
  return Draw{.problem = WordsOf(parts[0]),
              .schedule = WordsOf(parts[1]),
              .target = std::string(base::Trim(parts[2])),
              .async = std::string(base::Trim(parts[3])),
              .multiprocessors = static_cast<int>(*count)};
}

Draw MakeDraw(Dice& dice, std::string_view target, std::string_view kind) {
  std::vector<std::string_view> kinds = ir::ProblemKinds();
  if (!kind.empty()) kinds = {kind};
  std::vector<const target::Target*> targets;
  for (const target::Target& known : target::Targets()) {
    if (target.empty() || known.name == target) targets.push_back(&known);
  }
  const target::Target& chosen = *dice.Of(targets);
  Draw draw{.problem = {}, .schedule = {}, .target = std::string(chosen.name)};
  // A few of those that are refused are judged too.
  Result<Problem> problem = Error{};
  for (int attempt = 0; attempt < 20 && !problem; ++attempt) {
    draw.problem = tools::DrawProblem(dice, dice.Of(kinds), tools::DrawReach::kEmulated);
    problem = ParseProblem(draw.ProblemText());
    if (dice.Chance(0.02)) break;
  }
  if (problem) draw.schedule = tools::DrawSchedule(dice, *problem, chosen);
  const int64_t order = dice.Below(3);
  if (order > 0) draw.async = order == 1 ? "late" : Cat("random:", dice.Below(1000));
  // On few multiprocessors a small problem has several tiles for each.
  if (dice.Chance(0.7)) draw.multiprocessors = static_cast<int>(dice.Scaled(1, 16));
  return draw;
}

}  // namespace laneshift::fuzz
