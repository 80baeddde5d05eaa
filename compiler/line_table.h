// LineTable: which line of a tile program's text each line of its PTX comes from, for people who read both.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "compiler/compile.h"

namespace laneshift::compiler {

struct LinedPtx {
  std::string ptx;                 // the same text as EmitPtx makes
  std::vector<int> program_lines;  // of each of its lines, that of PrintProgram's text, from 1; 0: no op's
};

// Errors as EmitPtx.
Result<LinedPtx> EmitLinedPtx(const ir::Program& program, const target::Target& target,
                              const EmitOptions& options = {});

}  // namespace laneshift::compiler
