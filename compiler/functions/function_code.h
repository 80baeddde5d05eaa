// How a kernel runs a user's function on one element: by an inline-assembly statement that has its body, or that
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
  bool pure = false;     // uses only registers: may be moved, merged, dropped
  bool guarded = false;  // must not run for an element outside of D
  int instructions = 0;  // of the body
  int results = 1;
  std::vector<bool> wide;  // of each parameter: 64 bits, an address; else an f32
  // Operands: the results ($0 …), then the predicate of a guarded one, then the parameters.
  std::string statement;
  std::string declarations;  // of the module: what the statement refers to
};

// `label` names the function in the PTX: every copy begins with it, and every name that it adds has it as a prefix.
// The kernel has `copies` of it: a long body is not copied often. REQUIRES: the label is an identifier.
FunctionCode MakeFunctionCode(const FunctionModule& module, const std::string& label, int copies);

// What CheckPtx skips (compiler/emit/ptx_check.h): the lines around every copy.
inline constexpr std::string_view kFunctionBegins = "// user function";
inline constexpr std::string_view kFunctionEnds = "// end of user function";

}  // namespace laneshift::compiler
