// Compilation: a problem compiled but not run, for verbs that only show.
//
// Thread-safety: values; valid as long as the reader that they were made with.
#pragma once

#include <string>
#include <vector>

#include "autotune/machine.h"
#include "compiler/compile.h"
#include "compiler/plan/kernel_plan.h"
#include "laneshift/engine.h"
#include "laneshift/problem.h"
#include "laneshift/schedule.h"
#include "runtime/engine_parts.h"
#include "store/records.h"
#include "target/target.h"
#include "tools/problem_reader.h"

namespace laneshift::tools {

struct CompiledKernel {
  compiler::LaunchPurpose purpose{};
  ir::Program program;
  compiler::PtxModule module;
  compiler::LaunchGeometry geometry{};  // of its first launch
};

// The device for which a verb looks at a problem.
struct LookedDevice {
  const target::Target* target = nullptr;
  autotune::Machine machine;  // with what the store holds of it
  std::string description;    // "published facts, 148 SMs", or the name of a GPU
  bool emulated = true;
};
LookedDevice DeviceOf(Engine::Parts& parts);

struct Compilation {
  Problem problem;
  const target::Target* target = nullptr;
  Schedule schedule;
  ChoiceOrigin choice = ChoiceOrigin::kRule;  // why it is that one
  std::vector<CompiledKernel> kernels;        // all of the plan, in the order in which they are launched
  compiler::PlanWorkspace workspace;
  std::vector<compiler::PassDump> passes;  // of the product's program
  double ptx_ms = 0;                       // tile program to PTX, of the main kernel
  std::vector<store::TrialRecord> trials;  // of the problem on the device, oldest first
  LookedDevice device;

  // The kernel that multiplies.
  const CompiledKernel& Product() const;
};

enum class Keep { kPtx, kPtxAndLlvm };
// For the target of the reader's engine, with the schedule that `run` uses there (runtime/schedule_choice.h). Users'
// functions come from the reader.
Result<Compilation> CompileProblem(const Problem& problem, const std::string& schedule, Keep keep,
                                   ProblemReader& reader);

// Writes `bytes` to the file, or to standard output if `path` is empty or "-".
Status WriteOutput(const std::string& path, const std::string& bytes);

}  // namespace laneshift::tools
