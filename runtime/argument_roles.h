// The arguments of any kind of problem, by the roles that they have in a program.
//
// Thread-safety: pure functions.
#pragma once

#include "laneshift/engine.h"

namespace laneshift::runtime {

// The x, w, z and y of a convolution are the a, b, c and d of a GEMM (ir::OperandRole). kInvalidArgument: the arguments
// are of another kind than the problem.
Result<GemmArguments> RolesOf(const Problem& problem, const Arguments& arguments);

// The way back.
Arguments ArgumentsOf(const Problem& problem, const GemmArguments& roles);

// kInvalidArgument names the pointer that is missing or less aligned than the problem promises. REQUIRES: `roles` are
// RolesOf the problem.
Status CheckPointers(const Problem& problem, const GemmArguments& roles);

}  // namespace laneshift::runtime
