// Ranking: the schedules of the space in the order in which they are predicted to be fast.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
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

// For groups of these sizes, if any: rows of each. REQUIRES: `problem` is complete.
Ranking RankSchedules(const Problem& problem, const ScheduleConstraint& constraint, const target::Target& target,
                      const Machine& machine, RingDepths depths = RingDepths::kUsual,
                      std::span<const int64_t> group_sizes = {});

// Raised whenever the same problem is ranked differently on the same machine, by another space or another model, so
// that previous choices are not used (autotune/ranking_test.cc shows when that is due).
inline constexpr int kRankingRevision = 49;

// Fingerprint of the inputs of ChooseSchedule other than the problem and the generator's revision: equal ones choose
// alike.
std::string ChoiceBasis(const target::Target& target, const Machine& machine);

// If nothing fits: the reason why the schedule nearest to the constraint is refused.
// REQUIRES: something was refused.
Error NothingFits(const std::vector<RefusedSchedule>& refused, const target::Target& target);

// The first of RankSchedules, without predicting schedules that cannot be it. If there is none: NothingFits.
Result<Schedule> ChooseSchedule(const Problem& problem, const ScheduleConstraint& constraint,
                                const target::Target& target, const Machine& machine);
// On the published machine.
Result<Schedule> ChooseSchedule(const Problem& problem, const ScheduleConstraint& constraint,
                                const target::Target& target, int sm_count);

}  // namespace laneshift::autotune
