#include "autotune/space.h"

#include <algorithm>
#include <utility>

#include "autotune/machine.h"
#include "autotune/shapes.h"
#include "compiler/compile.h"
#include "compiler/legality/schedule_facts.h"

namespace laneshift::autotune {
namespace {

using target::Target;

// Beyond eight stages, a ring that holds what memory delivers in this time is deep enough: 162 KB on an H200. If all
// SMs have more on its way, it comes more slowly (ADR 0071). What is loaded before the previous kernel has ended is all
// of the ring, and the more the better.
constexpr double kUsefulMicroseconds = 5.06;

int MostUseful(const compiler::Sketch& sketch, const Target& target) {
  const bool has_ring = sketch.footprint.stage_bytes > 0;
  if (!has_ring || sketch.program.LoadsEarly()) return compiler::kMostStages;
  const Machine machine = PublishedMachine(target);
  const double bytes = kUsefulMicroseconds * machine.memory_rate * 1e6 / machine.sm_count;
  return std::clamp(static_cast<int>(bytes) / sketch.footprint.stage_bytes, compiler::kUsefulStages,
                    compiler::kMostStages);
}

// The shape with the deepest rings, of `most_stages` at most, that fit next to the other buffers.
Schedule Deepen(const Schedule& shape, const compiler::Footprint& footprint, int most_stages,
                const ScheduleConstraint& constraint, const Target& target) {
  Schedule deep = shape;
  int spare = target.smem_bytes - footprint.smem_bytes;
  const auto deepen = [&](int& stages, int most, int bytes) {
    const int more = std::clamp(spare / bytes, 0, std::max(0, most - stages));
    stages += more;
    spare -= more * bytes;
  };
  if (footprint.filter_stage_bytes > 0)
    deepen(deep.filter_stages, compiler::kUsefulStages, footprint.filter_stage_bytes);
  if (footprint.stage_bytes > 0) deepen(deep.stages, most_stages, footprint.stage_bytes);
  return constraint.Apply(deep);
}

// The shape at each of the depths, the usual one first.
std::vector<Schedule> Deepened(const compiler::Sketch& sketch, const Schedule& shape,
                               const ScheduleConstraint& constraint, const Target& target, RingDepths depths) {
  const Schedule usual = Deepen(shape, sketch.footprint, MostUseful(sketch, target), constraint, target);
  std::vector<Schedule> deepened = {usual};
  const bool has_ring = sketch.footprint.stage_bytes > 0;
  if (depths == RingDepths::kUsual || !has_ring || usual.stages < compiler::kUsefulStages) return deepened;
  const Schedule deepest = Deepen(shape, sketch.footprint, compiler::kMostStages, constraint, target);
  for (const int stages : {deepest.stages, (3 * deepest.stages + 3) / 4, (deepest.stages + 1) / 2}) {
    Schedule other = deepest;
    other.stages = stages;
    other = constraint.Apply(other);
    if (std::find(deepened.begin(), deepened.end(), other) == deepened.end()) deepened.push_back(other);
  }
  return deepened;
}

}  // namespace

Result<LegalSchedule> DeepenShape(const Problem& problem, const Schedule& shape, const ScheduleConstraint& constraint,
                                  const Target& target) {
  LS_ASSIGN(compiler::Sketch sketch, compiler::SketchSchedule(problem, shape, target));
  const Schedule deep = Deepened(sketch, shape, constraint, target, RingDepths::kUsual).front();
  compiler::DeepenRings(sketch, deep);
  return LegalSchedule{deep, std::move(sketch.program)};
}

void VisitSchedules(const Problem& problem, const ScheduleConstraint& constraint, const Target& target,
                    RingDepths depths,
                    const std::function<void(const Schedule& schedule, const ir::Program& program, bool usual)>& legal,
                    const std::function<void(RefusedSchedule schedule)>& refused) {
  for (const Schedule& shape : ListShapes(problem, constraint, target)) {
    auto sketch = compiler::SketchSchedule(problem, shape, target);
    if (!sketch) {
      refused({shape, std::move(sketch).error()});
      continue;
    }
    const std::vector<Schedule> deepened = Deepened(*sketch, shape, constraint, target, depths);
    for (const Schedule& deep : deepened) {
      compiler::DeepenRings(*sketch, deep);
      legal(deep, sketch->program, &deep == &deepened.front());
    }
  }
}

ScheduleSpace EnumerateSchedules(const Problem& problem, const ScheduleConstraint& constraint, const Target& target) {
  ScheduleSpace space;
  VisitSchedules(
      problem, constraint, target, RingDepths::kUsual,
      [&](const Schedule& schedule, const ir::Program&, bool) { space.schedules.push_back(schedule); },
      [&](RefusedSchedule refused) { space.refused.push_back(std::move(refused)); });
  return space;
}

}  // namespace laneshift::autotune
