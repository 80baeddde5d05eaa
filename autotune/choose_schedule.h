// The schedule that a rule picks: every legal combination of a small space, ranked by an estimate of its time.
//
// Thread-safety: pure functions.
#pragma once

#include <vector>

#include "laneshift/problem.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::autotune {

// A legal schedule and its estimated time in SM clocks (autotune/choose_schedule.cc says how).
struct RankedSchedule {
  Schedule schedule;
  double clocks = 0;
};

// Every schedule of the space that `constraint` admits and that fits, best first; ties in order of tile size.
// REQUIRES: `problem` is complete.
std::vector<RankedSchedule> RankSchedules(const Problem& problem, const ScheduleConstraint& constraint,
                                          const target::Target& target, int sm_count);

// The first of RankSchedules. If there is none: the reason why the schedule nearest to the constraint does not run.
Result<Schedule> ChooseSchedule(const Problem& problem, const ScheduleConstraint& constraint,
                                const target::Target& target, int sm_count);

}  // namespace laneshift::autotune
