// The rings through which tiles of A and B come, found by what the loads fill.
//
// Thread-safety: pure functions.
#pragma once

#include "ir/program.h"

namespace laneshift::ir {

// Indices of the channels whose slots loads of the operand fill for each tile, which may be one for both; -1 where an
// operand comes through none: it stays in shared memory.
struct OperandRings {
  int a = -1, b = -1;
};
OperandRings RingsOf(const Program& program);

}  // namespace laneshift::ir
