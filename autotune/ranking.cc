#include "autotune/ranking.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autotune/shape_bound.h"
#include "autotune/shapes.h"
#include "base/fingerprint.h"
#include "base/text.h"

namespace laneshift::autotune {
namespace {

// The number of decisions of a schedule that are not the default, without its size.
int64_t UnusualDecisions(const Schedule& schedule) {
  Schedule same_size;
  same_size.tile_m = schedule.tile_m;
  same_size.tile_n = schedule.tile_n;
  same_size.tile_k = schedule.tile_k;
  same_size.stages = schedule.stages;
  // Two warpgroups are usual where they alternate.
  if (schedule.consumers == Consumers::kPingpong) same_size.math_warpgroups = 2;
  const std::string text = PrintSchedule(schedule), usual_text = PrintSchedule(same_size);
  const std::vector<std::string_view> words = base::Words(text), usual = base::Words(usual_text);
  int64_t unusual = 0;
  for (size_t i = 0; i < words.size(); ++i) unusual += words[i] != usual[i];
  return unusual;
}

// The most informative of several reasons: that of a shape which keeps every rule and only lacks memory; otherwise,
// among the shapes with the fewest non-default decisions, whose refusals concern what was requested, the most frequent
// reason, and of several such the last.
const Error& ReasonOf(const std::vector<RefusedSchedule>& refused) {
  const auto memory = std::find_if(refused.begin(), refused.end(), [](const RefusedSchedule& r) {
    return r.reason.code == ErrorCode::kResourceExhausted;
  });
  if (memory != refused.end()) return memory->reason;
  std::vector<int64_t> unusual;
  for (const RefusedSchedule& r : refused) unusual.push_back(UnusualDecisions(r.schedule));
  const int64_t least = *std::min_element(unusual.begin(), unusual.end());
  std::map<std::string_view, int> times;
  for (size_t i = 0; i < refused.size(); ++i) times[refused[i].reason.message] += unusual[i] == least;
  const auto fewer = [&](const RefusedSchedule& a, const RefusedSchedule& b) {
    return times[a.reason.message] < times[b.reason.message];
  };
  return std::max_element(refused.rbegin(), refused.rend(), fewer)->reason;
}

}  // namespace

Ranking RankSchedules(const Problem& problem, const ScheduleConstraint& constraint, const target::Target& target,
                      const Machine& machine, RingDepths depths, std::span<const int64_t> group_sizes) {
  Ranking ranking;
  VisitSchedules(
      problem, constraint, target, depths,
      [&](const Schedule& schedule, const ir::Program& program, bool) {
        const Prediction prediction =
            PredictTime(PipelineOf(problem, schedule, program, target, {}, group_sizes), machine);
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
  const std::vector<Schedule> shapes = ListShapes(problem, constraint, target);
  const std::vector<double> bounds = LeastTimes(problem, shapes, target, machine);
  // Those that may be fast come first, so that few programs are built of those that cannot be.
  std::vector<size_t> order(shapes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return bounds[a] < bounds[b]; });
  std::optional<Schedule> best;
  size_t best_index = 0;
  double best_us = std::numeric_limits<double>::infinity();
  std::map<size_t, RefusedSchedule> refused;  // by the place in the space
  for (const size_t i : order) {
    if (bounds[i] > best_us) break;
    auto legal = DeepenShape(problem, shapes[i], constraint, target);
    if (!legal) {
      refused.emplace(i, RefusedSchedule{shapes[i], std::move(legal).error()});
      continue;
    }
    const Pipeline pipeline = PipelineOf(problem, legal->schedule, legal->program, target);
    if (LeastTime(pipeline, machine) > best_us) continue;
    const double us = PredictTime(pipeline, machine).us;
    // Of equals the first of the space is the best.
    if (us > best_us || (us == best_us && i > best_index)) continue;
    best = legal->schedule;
    best_index = i;
    best_us = us;
  }
  if (best) return *best;
  std::vector<RefusedSchedule> reasons;
  for (auto& [index, reason] : refused) reasons.push_back(std::move(reason));
  return NothingFits(reasons, target);
}
Result<Schedule> ChooseSchedule(const Problem& problem, const ScheduleConstraint& constraint,
                                const target::Target& target, int sm_count) {
  return ChooseSchedule(problem, constraint, target, PublishedMachine(target, sm_count));
}

}  // namespace laneshift::autotune
