// Totals: sums of the epilogue in a fixed order. Where tiles end in any order, every fragment stores its sums to a line
// of its own in the plan's workspace (ir::TotalLines); behind the product's kernel another one adds up the lines of
// each total, always in the same order, and then adds them to what the caller's total holds. Of very many lines a
// kernel in between makes fewer.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/compile.h"
#include "compiler/contraction/bindings.h"
#include "compiler/plan/plan_workspace.h"
#include "ir/program.h"
#include "laneshift/problem.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::compiler {

// Whether the problem has totals that are added in a fixed order.
bool OrdersSums(const Problem& problem);

// A total whose sums lie in the workspace.
struct OrderedTotal {
  ir::Binding base{};             // of the caller's
  int64_t length = 0, lines = 0;  // elements of a line
  size_t begin = 0;               // of the lines, in bytes

  int64_t Bytes() const { return ir::TotalLines::Bytes(length, lines); }
  bool operator==(const OrderedTotal&) const = default;
};

// In the order of the steps; as the product's program stores them, at any stage. Their lines are added to the
// workspace.
std::vector<OrderedTotal> TotalsOf(const Problem& problem, const Schedule& schedule, const ir::Program& program,
                                   PlanWorkspace& workspace);

// One kernel behind the product's: what it adds up, and where to.
struct TotalsPass {
  int section = 0;  // lines that become one; 0: all of them become the caller's
  std::vector<OrderedTotal> from;
  std::vector<OrderedTotal> to{};  // without a section, nothing
};
// None where there are no totals. Lines that sections become are added to the workspace.
std::vector<TotalsPass> PassesOf(const std::vector<OrderedTotal>& totals, PlanWorkspace& workspace);

// Lowered, with its storage. It depends on how many totals there are, and on nothing else of the problem.
Result<ir::Program> BuildTotals(const TotalsPass& pass, const target::Target& target);
std::vector<BoundParam> BindTotals(const TotalsPass& pass, const ir::Program& program);
LaunchGeometry TotalsLaunch(const TotalsPass& pass, const ir::Program& program, int sm_count);

}  // namespace laneshift::compiler
