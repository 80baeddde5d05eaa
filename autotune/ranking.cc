#include "autotune/ranking.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/fingerprint.h"
#include "base/text.h"

namespace laneshift::autotune {
namespace {

// Of several reasons the one that tells most: that of a shape which keeps every rule and only lacks memory.
const Error& ReasonOf(const std::vector<RefusedSchedule>& refused) {
  const auto memory = std::find_if(refused.begin(), refused.end(), [](const RefusedSchedule& r) {
    return r.reason.code == ErrorCode::kResourceExhausted;
  });
  return memory != refused.end() ? memory->reason : refused.back().reason;
}

}  // namespace

Ranking RankSchedules(const Problem& problem, const ScheduleConstraint& constraint, const target::Target& target,
                      const Machine& machine) {
  Ranking ranking;
  VisitSchedules(
      problem, constraint, target,
      [&](const Schedule& schedule, const ir::Program& program) {
        const Prediction prediction = PredictTime(PipelineOf(problem, schedule, program, target), machine);
        ranking.schedules.push_back({schedule, prediction.us, prediction.bound, prediction});
      },
      [&](RefusedSchedule refused) { ranking.refused.push_back(std::move(refused)); });
  std::stable_sort(ranking.schedules.begin(), ranking.schedules.end(),
                   [](const RankedSchedule& a, const RankedSchedule& b) { return a.predicted_us < b.predicted_us; });
  return ranking;
}

std::string ChoiceBasis(const target::Target& target, const Machine& machine) {
  base::Fingerprinter print;
  print.Integer("ranking", kRankingRevision).Text("target", target.name).Integer("sms", machine.sm_count);
  for (const MachineRow& row : kMachineRows) print.Real(row.name, machine.*row.field);
  for (const target::FactAnswer& fact : target::AnswersOf(target.tensor_facts)) print.Text(fact.name, fact.answer);
  return print.Finish().Hex();
}

Error NothingFits(const std::vector<RefusedSchedule>& refused, const target::Target& target) {
  return ReasonOf(refused).Within(base::Cat("no schedule fits on ", target.name));
}

Result<Schedule> ChooseSchedule(const Problem& problem, const ScheduleConstraint& constraint,
                                const target::Target& target, const Machine& machine) {
  std::optional<Schedule> best;
  double best_us = std::numeric_limits<double>::infinity();
  std::vector<RefusedSchedule> refused;
  VisitSchedules(
      problem, constraint, target,
      [&](const Schedule& schedule, const ir::Program& program) {
        const Pipeline pipeline = PipelineOf(problem, schedule, program, target);
        // Of equals the first is the best: so what can at most be equal needs no prediction either.
        if (LeastTime(pipeline, machine) >= best_us) return;
        const double us = PredictTime(pipeline, machine).us;
        if (us >= best_us) return;
        best = schedule;
        best_us = us;
      },
      [&](RefusedSchedule reason) { refused.push_back(std::move(reason)); });
  if (!best) return NothingFits(refused, target);
  return *best;
}

Result<Schedule> ChooseSchedule(const Problem& problem, const ScheduleConstraint& constraint,
                                const target::Target& target, int sm_count) {
  return ChooseSchedule(problem, constraint, target, PublishedMachine(target, sm_count));
}

}  // namespace laneshift::autotune
