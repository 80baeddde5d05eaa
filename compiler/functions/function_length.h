// How long a compiled function is, for the timing model.
//
// Thread-safety: pure functions.
#pragma once

#include "compiler/functions/function_module.h"
#include "laneshift/epilogue_function.h"

namespace laneshift::compiler {

// Of one element. Each instruction counts once: loops as one turn, of a branch both sides, calls with what they call.
// Divisions and roots that round count as what ptxas makes of them; moves and accesses of parameters, which are gone in
// the kernel, as nothing.
FunctionLength LengthOf(const FunctionModule& module);

}  // namespace laneshift::compiler
