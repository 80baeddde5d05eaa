// Which schedule a plan gets: the caller's, a stored one, or the timing model's best.
//
// Thread-safety: as the store.
#pragma once

#include "laneshift/engine.h"
#include "runtime/engine_parts.h"
#include "target/target.h"

namespace laneshift::runtime {

// A schedule that moves rows in Tensor Memory needs to know how the device does that, and no other has to wait for a
// probe: the target is the one that the schedule is for.
struct ChosenSchedule {
  Schedule schedule;
  const target::Target* target = nullptr;
  ChoiceOrigin origin = ChoiceOrigin::kRule;
};
// A stored choice is taken only if the constraint admits it and it still builds. What the timing model chooses without
// a constraint is remembered in the store, and taken again for as long as it would choose the same (ChoiceBasis).
Result<ChosenSchedule> ChooseFor(Engine::Parts& parts, const Problem& problem, const ScheduleConstraint& constraint);

// Of the schedules that could take the place of `schedule`, those that need no workspace: tiles are not cut, and what
// is packed is copied by threads.
Result<ScheduleConstraint> WithoutWorkspace(const Schedule& schedule);

// Whether a miss policy has nothing to do. What nobody can time is as good predicted as it will ever be.
bool IsSettled(ChoiceOrigin origin, bool emulated);

}  // namespace laneshift::runtime
