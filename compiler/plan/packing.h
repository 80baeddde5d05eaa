// Packing: operands that the main kernel cannot read where they lie are first copied to where it can: into the plan's
// workspace, row by row, each row aligned to ir::kPackedLine bytes. The main kernel is then that of a problem with
// operands in that layout; one kernel before it makes the copies of matrices, or one that of each other operand.
//
//   matrices and pixels that the TMA cannot reach (compiler/legality/tma_addressable.h): the same rows, aligned
//   pixels of a few channels that a gradient of filters is computed from: a row for each output pixel, of all that the
//   filter covers (compiler/plan/im2col_packing.h)
//   filters that a gradient of x is computed from, and those of merged groups: a row for each column of the product
//   (compiler/plan/filter_packing.h)
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/compile.h"
#include "compiler/contraction/contraction.h"
#include "ir/program.h"
#include "laneshift/problem.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::compiler {

inline constexpr ir::Operand kPackableOperands[] = {ir::Operand::kA, ir::Operand::kB};
bool IsPacked(const Schedule& schedule, ir::Operand operand);
bool PacksAny(const Schedule& schedule);

// Whether the operands that the schedule packs may be packed: kUnsupported names the rule and what would be right.
Status CheckPacks(const Contraction& contraction, const Schedule& schedule, const target::Target& target);

// What the main kernel computes, and how: packed operands have the layout of their copies, and are loaded by the TMA.
struct PackedProduct {
  Contraction contraction{};
  Schedule schedule{};
};
PackedProduct ProductOf(Contraction contraction, const Schedule& schedule);

// The operand as the main kernel reads it, from the one that the caller stores.
OperandSource SourceForProduct(const Contraction& contraction, const Schedule& schedule, ir::Operand operand);

// The size of the copy in the workspace: rows aligned to ir::kPackedLine bytes.
int64_t PackedBytes(const Contraction& contraction, const Schedule& schedule, ir::Operand operand);

// The parameter that is the size of a matrix along an axis.
ir::Binding SizeAlong(ir::Axis axis);

// Bytes of an operand's rows, without the gaps between them; 0 if it is not packed, whatever a schedule asks for that
// CheckPacks refuses.
int64_t BytesToPack(const Problem& problem, const Schedule& schedule, ir::Operand operand);

// What one kernel copies: the operands that this schedule packs, with the sizes of this contraction.
struct PackStep {
  Contraction contraction{};
  Schedule schedule{};
};
std::vector<PackStep> PackStepsOf(const Contraction& contraction, const Schedule& schedule);

// The kernel of a step, which makes copies one after the other from the start of its workspace. Its parameters are
// those of the contraction. Lowered, with its storage. REQUIRES: it is a step of a schedule that keeps the rules of
// CheckPacks.
Result<ir::Program> BuildPack(const Contraction& contraction, const Schedule& schedule, const target::Target& target);
LaunchGeometry PackLaunch(const Contraction& contraction, const Schedule& schedule, const ir::Program& program,
                          int sm_count);

}  // namespace laneshift::compiler
