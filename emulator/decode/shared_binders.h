// Parts of binders that one source file lends to another: the integer halves of instructions that exist for both kinds
// of numbers.
//
// Thread-safety: pure functions.
#pragma once

#include "emulator/decode/binders.h"

namespace laneshift::emulator {

Result<Handler> IntegerAdd(const Match& match, Instruction& instruction, bool subtract);
Result<Handler> IntegerDivide(const Match& match);
Result<Handler> IntegerMinMax(const Match& match, Instruction& instruction, bool max);
Result<Handler> IntegerNegate(const Match& match, bool absolute);

}  // namespace laneshift::emulator
