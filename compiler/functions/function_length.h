// How long a compiled function is, for the timing model.
//
// Thread-safety: pure functions.
#pragma once

#include "compiler/functions/function_module.h"
#include "laneshift/epilogue_function.h"

namespace laneshift::compiler {

// Of one element. Each instruction counts once: one iteration of loops, both sides of branches, calls with their
// callees. Divisions and roots that round count as the code that ptxas makes of them; moves and accesses of parameters,
// which the kernel does not have, count as nothing.
FunctionLength LengthOf(const FunctionModule& module);

}  // namespace laneshift::compiler
