// ReuseMode: a comparison of the ways in which a convolution can reuse its activations.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/plan/traffic.h"
#include "laneshift/problem.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::autotune {

struct ReuseMode {
  std::string_view name;  // "im2col", "gather", "row_offset", "lane_shift"; and variants, as "lane_shift shift=fused"
  Schedule schedule{};
  bool chosen = false;
  compiler::KernelTraffic traffic{};
  std::string refused{};  // why no schedule of the mode runs the problem; empty if one does
};

// One entry a mode: `chosen` in its own mode, the chooser's best one in every other. Empty for problems without modes.
// REQUIRES: `problem` is complete and `chosen` runs it on `target`.
std::vector<ReuseMode> CompareReuseModes(const Problem& problem, const Schedule& chosen, const target::Target& target,
                                         int sm_count);

}  // namespace laneshift::autotune
