// Ranking: the schedules of the space in the order in which they are predicted to be fast.
//
// Thread-safety: pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "autotune/machine.h"
#include "autotune/space.h"
#include "autotune/timing_model.h"

namespace laneshift::autotune {

struct RankedSchedule {
  Schedule schedule;
  double predicted_us = 0;
  Bound bound{};
  Prediction prediction{};
};

struct Ranking {
  std::vector<RankedSchedule> schedules;  // best first; ties in the order of the space
  std::vector<RefusedSchedule> refused;   // in the order of the space
};

// REQUIRES: `problem` is complete.
Ranking RankSchedules(const Problem& problem, const ScheduleConstraint& constraint, const target::Target& target,
                      const Machine& machine);

// The first of RankSchedules, at the cost of few milliseconds. If there is none: the reason why the schedule nearest to
// the constraint does not run.
Result<Schedule> ChooseSchedule(const Problem& problem, const ScheduleConstraint& constraint,
                                const target::Target& target, const Machine& machine);
// On the machine that is published.
Result<Schedule> ChooseSchedule(const Problem& problem, const ScheduleConstraint& constraint,
                                const target::Target& target, int sm_count);

}  // namespace laneshift::autotune
