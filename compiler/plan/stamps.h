// Stamps: the main kernel of a plan, made to record when its roles wait and for what.
//
// Each role stamps when it begins and ends, when it begins a tile, and around every op that waits. A stamp is the clock
// and a number, which one thread of each warp of the first cluster appends to its records in the workspace
// (ir/stamp_buffer.h); the op after a stamp `wait` says what is waited for. Kernels without stamps are not changed.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <vector>

#include "compiler/plan/kernel_plan.h"
#include "ir/program.h"
#include "laneshift/result.h"
#include "target/target.h"

namespace laneshift::compiler {

// REQUIRES: the program is lowered. ENSURES: so it is still; its last parameter is `stamps`.
void AddStamps(ir::Program& program);

// Where a launch of the main kernel leaves its records.
struct StampRegion {
  size_t launch = 0;            // of the plan
  size_t begin = 0, bytes = 0;  // in its workspace
};

// The same for every launch of the main kernel, each with a separate region. Zero the regions before an execution.
// kInternal: a program with stamps is not valid.
Result<std::vector<StampRegion>> AddStamps(KernelPlan& plan, const target::Target& target);

}  // namespace laneshift::compiler
