// Compilation: a problem compiled without a device, for the verbs that only look.
//
// Thread-safety: values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "laneshift/problem.h"
#include "laneshift/schedule.h"
#include "target/target.h"
#include "tools/problem_reader.h"

namespace laneshift::tools {

// A kernel before the product's, which packs operands (compiler/packing.h), or behind it, which adds up totals
// (compiler/totals.h).
struct CompiledKernel {
  ir::Program program;
  compiler::PtxModule module;
};

struct Compilation {
  Problem problem;
  const target::Target* target = nullptr;
  Schedule schedule;
  ir::Program program;
  std::vector<compiler::PassDump> passes;
  compiler::PtxModule module;
  std::optional<CompiledKernel> pack;
  std::vector<CompiledKernel> totals;
  size_t totals_bytes = 0;  // of the workspace, that lines of totals take
  double ptx_ms = 0;        // tile program to PTX, of the product's kernel
};

enum class Keep { kPtx, kPtxAndLlvm };
// `target` empty: the first target. Users' functions are asked of the reader. The schedule is chosen for the target's
// usual number of SMs.
Result<Compilation> CompileProblem(const Problem& problem, const std::string& target, const std::string& schedule,
                                   Keep keep, ProblemReader& reader);

// Writes `bytes` to the file, or to standard output if `path` is empty or "-".
Status WriteOutput(const std::string& path, const std::string& bytes);

}  // namespace laneshift::tools
