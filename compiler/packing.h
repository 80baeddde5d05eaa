// Packing: an operand of a GEMM that the TMA cannot reach (compiler/tma_reach.h) is first copied to where it can: into
// the plan's workspace, row by row, each row at a multiple of kPackedLine. The product's kernel then is that of a
// problem whose operand lies there; the copy is a kernel of its own.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/compile.h"
#include "compiler/tma_reach.h"
#include "ir/program.h"
#include "laneshift/problem.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::compiler {

inline constexpr int64_t kPackedLine = 128;  // bytes

bool IsPacked(const Schedule& schedule, ir::Operand operand);
bool PacksAny(const Schedule& schedule);

// Whether operands that the schedule packs may be: kUnsupported names the rule and what would be right.
Status CheckPacks(const GemmProblem& problem, const Schedule& schedule, const target::Target& target);
Status CheckPacks(const ConvProblem& problem, const Schedule& schedule, const target::Target& target);

// What the product's kernel computes, and how: packed operands lie as their copies do, and come by the TMA.
struct Product {
  GemmProblem problem{};
  Schedule schedule{};
};
Product ProductOf(const GemmProblem& problem, const Schedule& schedule);

// The operand as the product's kernel reads it.
StoredOperand StoredForProduct(const GemmProblem& problem, const Schedule& schedule, ir::Operand operand);

// A copy that comes before the product.
struct Pack {
  ir::Operand operand{};
  GemmProblem copy{};  // as a GEMM without a product: rows of A, m of n elements, become those of D
  size_t offset = 0;   // of the copy in the workspace, in bytes
};
// A workspace begins with the counters of CTAs that share tiles, whose place is the same in every plan (ir/layout.h);
// behind what the product needs come the copies.
struct PackPlan {
  std::vector<Pack> packs{};   // in the order in which they run
  size_t workspace_bytes = 0;  // of all kernels together
};
// `product_bytes`: what the product's kernel needs of the workspace.
PackPlan PlanPacks(const Problem& problem, const Schedule& schedule, size_t product_bytes);

// The kernel that copies: one for each size of elements. Lowered, with its storage.
Result<ir::Program> BuildPack(const Pack& pack, const target::Target& target);
LaunchShape PackLaunch(const Pack& pack, const ir::Program& program, int sm_count);

}  // namespace laneshift::compiler
