// A plain kernel that applies a user's function to arrays: the reference for the results of fused kernels.
//
// Thread-safety: pure functions.
#pragma once

#include <string>

#include "compiler/functions/function_module.h"
#include "laneshift/result.h"
#include "target/target.h"

namespace laneshift::measure {

inline constexpr const char* kFunctionKernel = "laneshift_apply";

// Parameters of the kernel: the f32 inputs ([parameter][element], the value first; without 64-bit ones), the
// results ([result][element]), the number of elements, then the 64-bit parameters of the function in order. One thread
// per element.
std::string FunctionKernel(const compiler::FunctionModule& module, const target::Target& target);

}  // namespace laneshift::measure
