#include <algorithm>

#include "emulator/program.h"

namespace laneshift::emulator {
namespace {

bool Encloses(const FunctionSyntax& function, int outer, int scope) {
  while (scope >= 0 && scope != outer) scope = function.scope_parents[static_cast<size_t>(scope)];
  return scope == outer;
}

// The index of the first statement at or behind the line.
size_t StatementAt(const FunctionSyntax& function, int line) {
  const auto at =
      std::lower_bound(function.statements.begin(), function.statements.end(), line,
                       [](const StatementSyntax& statement, int wanted) { return statement.at.line < wanted; });
  return static_cast<size_t>(at - function.statements.begin());
}

std::string_view LabelAt(const FunctionSyntax& function, int line) {
  const size_t index = StatementAt(function, line);
  if (index == function.statements.size()) return {};
  const LabelSyntax* nearest = nullptr;
  for (const LabelSyntax& label : function.labels) {
    if (label.statement > index || label.name.starts_with('$')) continue;
    if (nearest != nullptr && label.statement < nearest->statement) continue;
    if (Encloses(function, label.scope, function.statements[index].scope)) nearest = &label;
  }
  return nearest == nullptr ? std::string_view() : nearest->name;
}

}  // namespace

std::string_view Kernel::FunctionAt(int line) const {
  for (const CallTarget& callee : callees) {
    const FunctionSyntax* function = callee.syntax;
    if (function == nullptr || function->statements.empty()) continue;
    if (line >= function->at.line && line <= function->statements.back().at.line) return function->name;
  }
  return syntax == nullptr ? std::string_view() : LabelAt(*syntax, line);
}

}  // namespace laneshift::emulator
