// The instruction census of a PTX text, and the rules that every emitted kernel keeps.
//
// Thread-safety: pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "ir/program.h"
#include "laneshift/result.h"

namespace laneshift::compiler {

// Static occurrences of each opcode with its qualifiers, "tcgen05.commit.cta_group::1.….b64" and so on.
std::map<std::string, int> InstructionCensus(std::string_view ptx);

// Users' functions are not checked. kInternal if the PTX touches local memory, calls, jumps through a table, or does
// not hold exactly as many MMA, bulk copy and commit instructions as the program asks for: LLVM must neither drop nor
// copy one.
Status CheckPtx(std::string_view whole, const ir::Program& program);

}  // namespace laneshift::compiler
