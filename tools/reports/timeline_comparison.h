// How far the timing model's time line of a kernel and a measured one are apart, phase by phase.
//
// What counts of a phase is its part of the kernel's time: the time line's length, on average over the warps of a role.
// The issue of an MMA and the wait for its end are one phase. Their border lies in the hardware: on sm_90a wgmma blocks
// the warp at its issue while the tensor core has enough others queued, so that nothing is left to wait for.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "tools/reports/timeline.h"

namespace laneshift::tools {

struct RolePhase {
  std::string role, what;
  double modelled = 0, measured = 0;  // parts of the kernel's time

  double Apart() const;
};

struct TimelineComparison {
  // Of the roles that both time lines have; what takes less than one part in a hundred in both is left out.
  std::vector<RolePhase> phases;
  double modelled_us = 0, measured_us = 0;  // of the whole time lines
};
// REQUIRES: the model's is of the whole kernel.
TimelineComparison CompareTimelines(const Timeline& model, const Timeline& measured);

// What the numbers are parts of, the length of both, and how many phases agree.
std::string ComparisonSummary(const TimelineComparison& comparison);
// Role, phase, modelled, measured and how far apart, for tables.
std::vector<std::string> ComparisonCells(const RolePhase& phase);

// The phases as a table, and the summary.
std::string ComparisonText(const TimelineComparison& comparison, const Screen& screen);

}  // namespace laneshift::tools
