// Where an op is legal: rule 6 of ir/verifier.cc, and the part of rule 5 on MMAs.
//
// Private to the verifier. Thread-safety: pure.
#pragma once

#include "ir/program.h"

namespace laneshift::ir {

// Checks that the program's stage, the target, the kind of role and its threads allow the op.
Status CheckPlacement(const Program& program, const target::Target& target, const Role& role, const Op& op);

}  // namespace laneshift::ir
