// A plain kernel that runs a user's function on arrays: what the results of fused kernels are compared with.
//
// Thread-safety: pure functions.
#pragma once

#include <string>

#include "compiler/functions/function_module.h"
#include "laneshift/result.h"
#include "target/target.h"

namespace laneshift::measure {

inline constexpr const char* kFunctionKernel = "laneshift_apply";

// Parameters of the kernel: the f32 inputs ([parameter][element], the value first; 64-bit ones are left out), the
// results ([result][element]), the number of elements, then the 64-bit parameters of the function in order. One thread
// an element.
std::string FunctionKernel(const compiler::FunctionModule& module, const target::Target& target);

}  // namespace laneshift::measure
