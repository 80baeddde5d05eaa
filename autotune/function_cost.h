// What a function of the epilogue costs.
//
// Thread-safety: pure.
#pragma once

#include "ir/epilogue_steps.h"

namespace laneshift::autotune {

// Instructions of one element, and those of them that the special function units execute, as
// compiler/emit/emit_function.cc writes a function: exactly, and to the precision of 16 bits.
struct FunctionCost {
  double operations, special, approximate_operations, approximate_special;
};
FunctionCost CostOf(ir::Function function);

}  // namespace laneshift::autotune
