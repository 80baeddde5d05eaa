// LineTable: which line of a tile program's text each line of its LLVM IR and PTX comes from, for people who read them
// next to each other.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "compiler/compile.h"

namespace laneshift::compiler {

struct LinedCode {
  std::string ptx;             // the same text as EmitPtx makes
  std::vector<int> ptx_lines;  // of each of its lines, that of PrintProgram's text, from 1; 0: no op's
  std::string llvm_ir;         // before its passes; with options.with_llvm_ir
  std::vector<int> llvm_lines;
  std::string located_ptx;  // with .file and .loc, for an assembler that keeps lines
};

// Errors as EmitPtx.
Result<LinedCode> EmitLinedCode(const ir::Program& program, const target::Target& target,
                                const EmitOptions& options = {});

}  // namespace laneshift::compiler
