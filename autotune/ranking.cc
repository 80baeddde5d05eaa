#include "autotune/ranking.h"

#include <algorithm>
#include <limits>
#include <numeric>
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

// A schedule that is not predicted yet.
struct Bounded {
  Schedule schedule;
  Pipeline pipeline;
  double least_us = 0;
};

// The first of those that are predicted to be fastest.
size_t FastestOf(const std::vector<Bounded>& candidates, const Machine& machine) {
  std::vector<size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return candidates[a].least_us < candidates[b].least_us; });
  size_t fastest = order.front();
  double fastest_us = std::numeric_limits<double>::infinity();
  for (const size_t i : order) {
    if (candidates[i].least_us > fastest_us) break;
    const double us = PredictTime(candidates[i].pipeline, machine).us;
    if (us < fastest_us || (us == fastest_us && i < fastest)) {
      fastest = i;
      fastest_us = us;
    }
  }
  return fastest;
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
  std::vector<Bounded> candidates;
  std::vector<RefusedSchedule> refused;
  VisitSchedules(
      problem, constraint, target,
      [&](const Schedule& schedule, const ir::Program& program) {
        Pipeline pipeline = PipelineOf(problem, schedule, program, target);
        const double least_us = LeastTime(pipeline, machine);
        candidates.push_back({schedule, std::move(pipeline), least_us});
      },
      [&](RefusedSchedule reason) { refused.push_back(std::move(reason)); });
  if (candidates.empty()) return NothingFits(refused, target);
  return candidates[FastestOf(candidates, machine)].schedule;
}

Result<Schedule> ChooseSchedule(const Problem& problem, const ScheduleConstraint& constraint,
                                const target::Target& target, int sm_count) {
  return ChooseSchedule(problem, constraint, target, PublishedMachine(target, sm_count));
}

}  // namespace laneshift::autotune
