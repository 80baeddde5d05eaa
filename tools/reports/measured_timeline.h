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

}  // namespace laneshift::tools
