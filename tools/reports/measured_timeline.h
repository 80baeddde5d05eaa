// The time line of a kernel that was timed on a device: what each warp of the first cluster waited for, and how long,
// from the records of its stamps (compiler/plan/stamps.h).
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "ir/program.h"
#include "tools/reports/timeline.h"

namespace laneshift::tools {

// A run of a kernel with stamps.
struct StampedRun {
  ir::Program program{};                          // with stamps
  std::vector<std::vector<std::byte>> records{};  // of each launch of the main kernel: an ir::StampBuffer
  double plain_us = 0, stamped_us = 0;            // of an execution without and with stamps, interleaved
};

// Of the longest launch. kInternal: the kernel has left no records.
Result<Timeline> MeasuredTimeline(const StampedRun& run);

// A part of the time of a role's warps, on average: that it works, or that it waits for something.
struct RoleTime {
  std::string role, what;
  double modelled = 0, measured = 0;
};
// Of the roles that both time lines have; what takes less than one part in a hundred in both is left out.
std::vector<RoleTime> CompareTimelines(const Timeline& model, const Timeline& measured);
// The same as a table.
std::string ComparisonText(const Timeline& model, const Timeline& measured, const Screen& screen);

}  // namespace laneshift::tools
