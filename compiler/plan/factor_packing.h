// Scale factors in another order than the main kernel's bulk copies read them, reordered to its blocks of 128 rows x 4
// factors: those in rows (ScaleLayout::kLinear), and those of B whose columns come from two halves. One kernel does it
// for A and B, into one region of the plan's workspace.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "compiler/compile.h"
#include "compiler/contraction/contraction.h"
#include "ir/program.h"
#include "target/target.h"

namespace laneshift::compiler {

// Whether the caller's scale factors of A and B lie in rows.
bool HasFactorsInRows(const Problem& problem);
// Whether a schedule packs any.
bool MayPackFactors(const Problem& problem);
// Whether those of the operand are packed, or of any.
bool PacksFactors(const Contraction& contraction, const Schedule& schedule, ir::Operand operand);
bool PacksFactors(const Contraction& contraction, const Schedule& schedule);

// Of the operand's blocks in the workspace: none where its factors are not packed.
int64_t PackedFactorBytes(const Contraction& contraction, const Schedule& schedule, ir::Operand operand);

// Lowered, with its storage. Its parameters are those of the contraction; the blocks of A are first in its workspace,
// then those of B. REQUIRES: factors are packed.
Result<ir::Program> BuildFactorPack(const Contraction& contraction, const Schedule& schedule,
                                    const target::Target& target);
LaunchGeometry FactorPackLaunch(const Contraction& contraction, const ir::Program& program, int sm_count);

}  // namespace laneshift::compiler
