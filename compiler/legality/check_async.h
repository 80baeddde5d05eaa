// What operands need that threads load by asynchronous copies (a_load=async, b_load=async).
//
// Thread-safety: pure functions.
#pragma once

#include "compiler/contraction/contraction.h"
#include "ir/binding.h"
#include "target/target.h"

namespace laneshift::compiler {

// Ok, or kUnsupported with the rule that the operand breaks.
Status CheckAsync(const Contraction& contraction, ir::Operand operand, const target::Target& target);

// Bytes of one of these copies of an operand whose tiles have rows of `row_bytes`: 4, 8 or 16, the most that the starts
// of all rows allow. REQUIRES: CheckAsync found nothing.
int PieceOf(const OperandSource& source, int row_bytes);

}  // namespace laneshift::compiler
