// Compilation: a problem compiled but not run, for verbs that only show.
//
// Thread-safety: values; valid as long as the reader that they were made with.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "laneshift/engine.h"
#include "laneshift/problem.h"
#include "laneshift/schedule.h"
#include "target/target.h"
#include "tools/problem_reader.h"

namespace laneshift::tools {

// A kernel before the main kernel, which packs operands (compiler/plan/packing.h), or after it, which adds partial rows
// of reductions (compiler/plan/totals.h).
struct CompiledKernel {
  ir::Program program;
  compiler::PtxModule module;
};

struct Compilation {
  Problem problem;
  const target::Target* target = nullptr;
  Schedule schedule;
  ChoiceOrigin choice = ChoiceOrigin::kRule;  // why it is that one
  ir::Program program;
  std::vector<compiler::PassDump> passes;
  compiler::PtxModule module;
  std::optional<CompiledKernel> pack;
  std::vector<CompiledKernel> totals;
  size_t totals_bytes = 0;  // of the workspace, for the partial rows of reductions
  double ptx_ms = 0;        // tile program to PTX, of the main kernel
};

enum class Keep { kPtx, kPtxAndLlvm };
// For the target of the reader's engine, with the schedule that `run` uses there (runtime/schedule_choice.h). Users'
// functions come from the reader.
Result<Compilation> CompileProblem(const Problem& problem, const std::string& schedule, Keep keep,
                                   ProblemReader& reader);

// Writes `bytes` to the file, or to standard output if `path` is empty or "-".
Status WriteOutput(const std::string& path, const std::string& bytes);

}  // namespace laneshift::tools
