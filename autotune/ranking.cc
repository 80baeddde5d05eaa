#include "autotune/ranking.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
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
  Space space = EnumerateSchedules(problem, constraint, target);
  Ranking ranking{.schedules = {}, .refused = std::move(space.refused)};
  for (const Schedule& schedule : space.schedules) {
    const auto prediction = PredictTime(problem, schedule, target, machine);
    LS_CHECK(prediction.has_value(), "a schedule of the space does not build");
    ranking.schedules.push_back({schedule, prediction->us, prediction->bound, *prediction});
  }
  std::stable_sort(ranking.schedules.begin(), ranking.schedules.end(),
                   [](const RankedSchedule& a, const RankedSchedule& b) { return a.predicted_us < b.predicted_us; });
  return ranking;
}

Result<Schedule> ChooseSchedule(const Problem& problem, const ScheduleConstraint& constraint,
                                const target::Target& target, const Machine& machine) {
  const Ranking ranking = RankSchedules(problem, constraint, target, machine);
  if (!ranking.schedules.empty()) return ranking.schedules.front().schedule;
  return ReasonOf(ranking.refused).Within(base::Cat("no schedule fits on ", target.name));
}

Result<Schedule> ChooseSchedule(const Problem& problem, const ScheduleConstraint& constraint,
                                const target::Target& target, int sm_count) {
  return ChooseSchedule(problem, constraint, target, PublishedMachine(target, sm_count));
}

}  // namespace laneshift::autotune
