// Scale factors in rows (ScaleLayout::kLinear), reordered to the blocks of 128 rows x 4 factors that the main kernel's
// bulk copies read: one kernel for those of A and B, into one region of the plan's workspace.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "compiler/compile.h"
#include "compiler/contraction/contraction.h"
#include "ir/program.h"
#include "target/target.h"

namespace laneshift::compiler {

bool PacksFactors(const Problem& problem);
bool PacksFactors(const Contraction& contraction);

// Of the operand's blocks in the workspace. REQUIRES: the factors are packed.
int64_t PackedFactorBytes(const Contraction& contraction, ir::Operand operand);

// Lowered, with its storage. Its parameters are those of the contraction; the blocks of A are first in its workspace,
// then those of B. REQUIRES: the factors are packed.
Result<ir::Program> BuildFactorPack(const Contraction& contraction, const target::Target& target);
LaunchGeometry FactorPackLaunch(const Contraction& contraction, const ir::Program& program, int sm_count);

}  // namespace laneshift::compiler
