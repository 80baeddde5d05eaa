// The binders that ptx_instructions.def names, and the few handlers that the program builder itself places.
//
// Thread-safety: pure functions.
#pragma once

#include "emulator/decode/decoded_kernel.h"
#include "emulator/ptx/ptx_instructions.h"
#include "laneshift/result.h"

namespace laneshift::emulator {

// Every binder of the table. A name may appear in several rows.
#define PTX(pattern, operands, scope, since, binder) \
  Result<Handler> binder(const Match& match, Instruction& instruction);
#include "emulator/ptx/ptx_instructions.def"

Outcome ExecuteExit(Warp& warp, const Instruction& instruction, uint32_t mask);
Outcome ExecuteBranch(Warp& warp, const Instruction& instruction, uint32_t mask);
// Around an .aligned instruction: looks at whether the whole warp executes it.
Outcome ExecuteAligned(Warp& warp, const Instruction& instruction, uint32_t mask);
// Moves between register-file slots of different widths.
Handler NarrowHandler(uint8_t from_bytes);
Handler WidenHandler(uint8_t to_bytes, Type type);

// The state space that a Space suffix means; absent: generic.
StateSpace SpaceOf(std::string_view suffix);

// "not for .f64": the answer of a binder to a type that its instruction does not have.
Error WrongType(const Match& match, int nth = 0);
Error Wrong(std::string message);

}  // namespace laneshift::emulator
