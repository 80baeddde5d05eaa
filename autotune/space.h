// ScheduleSpace: the schedules that are tried for a problem.
//
// The space is a product of axes (autotune/shapes.h lists its points); the compiler decides for every point whether it
// is legal. Operands are loaded and stored by bulk copies wherever possible, and rings are as deep as is useful and
// fits. A constraint replaces the values of an axis, so that a schedule outside the axes can be requested too.
//
// Thread-safety: pure functions.
#pragma once

#include <functional>
#include <vector>

#include "ir/program.h"
#include "laneshift/problem.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::autotune {

// Why the compiler refuses a schedule.
struct RefusedSchedule {
  Schedule schedule;
  Error reason;
};

// Both in the order of the axes, which is the same in every run; each schedule once. PrintSchedule names them.
struct ScheduleSpace {
  std::vector<Schedule> schedules;
  std::vector<RefusedSchedule> refused;
};

struct LegalSchedule {
  Schedule schedule;
  ir::Program program;  // as SketchSchedule makes it
};
// A shape with the deepest rings that fit and are of use. ENSURES: ValidateSchedule accepts it. Errors: as
// SketchSchedule.
Result<LegalSchedule> DeepenShape(const Problem& problem, const Schedule& shape, const ScheduleConstraint& constraint,
                                  const target::Target& target);

enum class RingDepths : uint8_t {
  kUsual,    // as deep as is of use
  kSeveral,  // and others, of rings of kUsefulStages or more: no model says how many loads memory serves best
};

// Calls `legal` for each legal schedule, and `refused` for each other one, in the order of the axes; of several depths
// the usual one comes first.
void VisitSchedules(const Problem& problem, const ScheduleConstraint& constraint, const target::Target& target,
                    RingDepths depths,
                    const std::function<void(const Schedule& schedule, const ir::Program& program, bool usual)>& legal,
                    const std::function<void(RefusedSchedule schedule)>& refused);
// All of them, at the usual depths.
ScheduleSpace EnumerateSchedules(const Problem& problem, const ScheduleConstraint& constraint,
                                 const target::Target& target);

}  // namespace laneshift::autotune
