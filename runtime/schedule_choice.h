// Which schedule a plan gets: the caller's, a stored one, or the timing model's best.
//
// Thread-safety: as the store.
#pragma once

#include "laneshift/engine.h"
#include "runtime/engine_parts.h"
#include "target/target.h"

namespace laneshift::runtime {

// A schedule that shifts rows in Tensor Memory needs the device's facts; other schedules need not wait for a probe.
// Returns the target for the schedule.
struct ChosenSchedule {
  Schedule schedule;
  const target::Target* target = nullptr;
  ChoiceOrigin origin = ChoiceOrigin::kRule;
};
// A stored choice is used only if the constraint admits it and it still builds. The timing model's choice without a
// constraint is stored, and used as long as the model would choose the same (ChoiceBasis).
Result<ChosenSchedule> ChooseFor(Engine::Parts& parts, const Problem& problem, const ScheduleConstraint& constraint);

// The schedules that can replace `schedule` without a workspace: no split-K, and packed operands are copied by threads
// instead.
Result<ScheduleConstraint> WithoutWorkspace(const Schedule& schedule);

// Whether a miss policy has nothing to do: if the device cannot be timed, a prediction is final.
bool IsSettled(ChoiceOrigin origin, bool emulated);

}  // namespace laneshift::runtime
