// How a kernel runs a user's function on one element: as an inline-assembly statement that holds its body, or that
// calls it as a function of the same module.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "compiler/functions/function_module.h"

namespace laneshift::compiler {

struct FunctionCode {
  bool inlined = false;
  bool pure = false;     // computes with registers alone: may be moved, merged, dropped
  bool guarded = false;  // not to be run for an element that is outside of D
  int instructions = 0;  // of the body
  int results = 1;
  std::vector<bool> wide;  // of each parameter: 64 bits, an address; else an f32
  // Operands: the results ($0 …), then the predicate of a guarded one, then the parameters.
  std::string statement;
  std::string declarations;  // of the module: what the statement refers to
};

// `label` names the function in the PTX: it begins every copy, and every name that it brings begins with it.
// `copies` of it stand in the kernel: a long body is not copied often. REQUIRES: the label is an identifier.
FunctionCode MakeFunctionCode(const FunctionModule& module, const std::string& label, int copies);

// What CheckPtx passes over (compiler/emit/ptx_check.h): the lines around every copy.
inline constexpr std::string_view kFunctionBegins = "// user function";
inline constexpr std::string_view kFunctionEnds = "// end of user function";

}  // namespace laneshift::compiler
