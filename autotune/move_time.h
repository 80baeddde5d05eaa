// Move time: how long the kernels of a plan take that only move memory (compiler/plan/kernel_plan.h): those that pack
// operands before the product, and those that add up reductions after it.
//
// Thread-safety: pure functions.
#pragma once

#include "autotune/machine.h"
#include "compiler/plan/kernel_plan.h"

namespace laneshift::autotune {

// Microseconds: each is one more to launch, and moves its bytes.
inline double MoveTime(const compiler::MoveWork& work, const Machine& machine) {
  // Of a launch: a kernel that starts while the one before still runs took 0.1 to 3.4 us, 2.1 in the mean, in six first
  // choices on an H200, where a launch is 3.5.
  constexpr double kOverlapped = 0.6;
  const double launches = work.kernels + kOverlapped * work.overlapped;
  return launches * machine.pack_us + static_cast<double>(work.bytes) / machine.pack_rate / 1e6;
}

}  // namespace laneshift::autotune
