// Totals: ordered reductions of the epilogue. Tiles finish in any order, so each fragment stores its sums to a separate
// partial row in the plan's workspace (ir::PartialRows); after the main kernel another one adds the partial rows of
// each reduction, always in the same order, and then adds the result to the caller's vector. Of very many rows a
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

// Whether the problem has reductions in a fixed order.
bool OrdersReductions(const Problem& problem);

// A reduction whose partial rows are in the workspace.
struct OrderedReduction {
  ir::Binding base{};             // of the caller's
  int64_t length = 0, lines = 0;  // elements of a partial row, and rows
  size_t begin = 0;               // of the partial rows, in bytes

  int64_t Bytes() const { return ir::PartialRows::Bytes(length, lines); }
  bool operator==(const OrderedReduction&) const = default;
};

// In the order of the steps; as the main kernel's program stores them, at any stage. Adds their partial rows to the
// workspace.
std::vector<OrderedReduction> ReductionsOf(const Problem& problem, const Schedule& schedule, const ir::Program& program,
                                           PlanWorkspace& workspace);

// One kernel after the main kernel: what it reduces, and where to.
struct ReductionPass {
  int fold = 0;  // partial rows that become one; 0: all of them are added to the caller's vector
  std::vector<OrderedReduction> from;
  std::vector<OrderedReduction> to{};  // without a section, nothing
};
// Empty where there are no ordered reductions. The results of sections are added to the workspace.
std::vector<ReductionPass> PassesOf(const std::vector<OrderedReduction>& reductions, PlanWorkspace& workspace);

// Lowered, with its storage. It depends on the number of reductions, and on nothing else of the problem.
Result<ir::Program> BuildReduction(const ReductionPass& pass, const target::Target& target);
std::vector<BoundParam> BindReduction(const ReductionPass& pass, const ir::Program& program);
LaunchGeometry ReductionLaunch(const ReductionPass& pass, const ir::Program& program, int sm_count);

}  // namespace laneshift::compiler
