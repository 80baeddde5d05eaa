// The inputs of verify-assembler: our own kernels, drawn from a seed, and PTX files that the user names.
//
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "laneshift/problem.h"
#include "laneshift/schedule.h"

namespace laneshift::tools {

// How a drawn kernel is run.
struct DrawnProblem {
  Problem problem;
  Schedule schedule;  // whole
};

struct CheckedKernel {
  std::string name;  // the file, or the problem and its schedule as `run` takes them
  std::string ptx;
  std::string target;  // of the PTX's .target
  std::optional<DrawnProblem> drawn{};
  std::string launch_path{};  // of the launch file; empty: none

  // Whether a spill, a stack frame or an advisory is a failure: for our own kernels, none of which needs them.
  bool MustBeTidy() const { return drawn.has_value(); }
};

// `count` different kernels. `target`: "sm_100a" or "sm_90a"; empty: both, alternating. Equal seeds draw alike.
Result<std::vector<CheckedKernel>> DrawKernels(int count, uint64_t seed, const std::string& target);

// PTX files, each with the launch file (.json) that follows it, if one does. The Error names the file.
Result<std::vector<CheckedKernel>> ReadKernels(const std::vector<std::string>& files);

}  // namespace laneshift::tools
