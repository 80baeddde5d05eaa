#include "emulator/ptx/function_names.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"

namespace laneshift::emulator {
namespace {

bool Encloses(const FunctionSyntax& function, int outer, int scope) {
  while (scope >= 0 && scope != outer) scope = function.scope_parents[static_cast<size_t>(scope)];
  return scope == outer;
}

// The code of callees follows that of the kernel, in the order of their discovery.
std::string_view CalleeAt(const DecodedKernel& kernel, int line) {
  for (size_t i = 0; i < kernel.callees.size(); ++i) {
    const uint32_t begin = kernel.callees[i].start;
    const uint32_t end =
        i + 1 < kernel.callees.size() ? kernel.callees[i + 1].start : static_cast<uint32_t>(kernel.code.size());
    for (uint32_t pc = begin; pc < end && pc < kernel.code.size(); ++pc) {
      if (kernel.code[pc].at.line == line) return kernel.callees[i].name;
    }
  }
  return {};
}

std::string_view LabelAt(const FunctionSyntax& function, int line) {
  const auto at =
      std::lower_bound(function.statements.begin(), function.statements.end(), line,
                       [](const StatementSyntax& statement, int wanted) { return statement.at.line < wanted; });
  if (at == function.statements.end()) return {};
  const LabelSyntax* nearest = nullptr;
  for (const LabelSyntax& label : function.labels) {
    if (label.statement > at - function.statements.begin() || label.name.starts_with('$')) continue;
    if (nearest != nullptr && label.statement < nearest->statement) continue;
    if (Encloses(function, label.scope, at->scope)) nearest = &label;
  }
  return nearest == nullptr ? std::string_view() : nearest->name;
}

}  // namespace

std::string KernelAt(const DecodedKernel& kernel, int line) {
  std::string_view name = CalleeAt(kernel, line);
  if (name.empty() && kernel.syntax != nullptr) name = LabelAt(*kernel.syntax, line);
  return name.empty() ? kernel.name : base::Cat(kernel.name, " (", name, ")");
}

}  // namespace laneshift::emulator
