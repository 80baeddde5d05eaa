// The passes of the compiler, in the order of kPipeline (compile.cc).
//
// Each is a pure function on the program: no state, no logging, no environment.
#pragma once

#include "compiler/contraction/contraction.h"
#include "ir/program.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::compiler {

// The GEMM's tile program: loads, MMA and epilogue as roles that communicate through channels.
// REQUIRES: the schedule passed CheckSchedule. ENSURES: Stage::kScheduled.
ir::Program BuildGemm(const Contraction& contraction, const Schedule& schedule, const target::Target& target);

// The same for a convolution, as an implicit GEMM.
ir::Program BuildConv(const Contraction& contraction, const Schedule& schedule, const target::Target& target);
// The same for a depthwise convolution on CUDA cores.
ir::Program BuildDirect(const Contraction& contraction, const Schedule& schedule, const target::Target& target);
// The same for the gradient of its filters.
ir::Program BuildDirectGradient(const Contraction& contraction, const Schedule& schedule, const target::Target& target);
// The same for a matrix times a few vectors on CUDA cores.
ir::Program BuildGemv(const Contraction& contraction, const Schedule& schedule, const target::Target& target);
ir::Program BuildFilterGradient(const Contraction& contraction, const Schedule& schedule, const target::Target& target);

// Turns put, send, take, release and drain into cursors, mbarrier operations, commits and fences, and counts the
// arrivals of each barrier. REQUIRES: Stage::kScheduled. ENSURES: Stage::kLowered.
Status LowerChannels(ir::Program& program, const target::Target& target);

// Places channels, buffers and barriers in shared memory, however large it gets; returns the bytes.
int PlaceShared(ir::Program& program);

// Places channels, buffers and barriers in shared memory and accumulators in Tensor Memory.
// kResourceExhausted says which memory and how much over. ENSURES: every offset and column is assigned.
Status AssignStorage(ir::Program& program, const target::Target& target);

}  // namespace laneshift::compiler
