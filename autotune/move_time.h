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
  // Of 12 kernels on an H200 whose partial sums were added by one that overlaps: 0.1 to 4.7 us in place of 3.5.
  constexpr double kOverlapped = 0.6;
  return (work.kernels + kOverlapped * work.overlapped) * machine.pack_us + static_cast<double>(work.bytes) / machine.pack_rate / 1e6;
}

}  // namespace laneshift::autotune
