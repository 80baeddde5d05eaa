// The rings that carry tiles of A and B, found by the loads that fill them.
//
// Thread-safety: pure functions.
#pragma once

#include "ir/program.h"

namespace laneshift::ir {

// Indices of the channels whose slots are filled with the operand for each tile; both operands may have the same one.
// -1: the operand has no ring, because it is resident in shared memory.
struct OperandRings {
  int a = -1, b = -1;
};
OperandRings RingsOf(const Program& program);

}  // namespace laneshift::ir
