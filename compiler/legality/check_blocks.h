// What a schedule may be where the tensor core reads scale factors and metadata, which come in blocks, and rows of 48
// bytes, which only instructions with scale factors have.
//
// Thread-safety: pure functions.
#pragma once

#include "compiler/contraction/contraction.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::compiler {

// kUnsupported names the rule.
Status CheckBlockScales(const Contraction& contraction, const Schedule& s, const target::Target& target);
// REQUIRES: A is sparse.
Status CheckSparse(const Contraction& contraction, const Schedule& s, const target::Target& target);
// REQUIRES: ir::HasLongRows of the block of K.
Status CheckLongRows(const Schedule& s, const Contraction& contraction, const target::Target& target);

}  // namespace laneshift::compiler
