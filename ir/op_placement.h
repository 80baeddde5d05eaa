// Where an op may stand: rule 6 of ir/verifier.cc, and who multiplies of rule 5.
//
// Private to the verifier. Thread-safety: pure.
#pragma once

#include "ir/program.h"

namespace laneshift::ir {

// Whether the program's stage, the target, the kind of role and its threads have the op.
Status CheckPlacement(const Program& program, const target::Target& target, const Role& role, const Op& op);

}  // namespace laneshift::ir
