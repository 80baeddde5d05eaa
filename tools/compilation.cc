#include "tools/compilation.h"

#include <cstdio>

#include "base/output_file.h"
#include "compiler/plan/packing.h"
#include "compiler/plan/totals.h"
#include "runtime/engine_parts.h"
#include "runtime/schedule_choice.h"
#include "runtime/stopwatch.h"
#include "tools/device_options.h"

namespace laneshift::tools {

namespace {

Result<CompiledKernel> CompileKernel(ir::Program program, const target::Target& target, Keep keep) {
  LS_ASSIGN(compiler::PtxModule module,
            compiler::EmitPtx(program, target, {.with_llvm_ir = keep == Keep::kPtxAndLlvm}));
  return CompiledKernel{std::move(program), std::move(module)};
}

}  // namespace

Result<Compilation> CompileProblem(const Problem& problem, const std::string& schedule, Keep keep,
                                   ProblemReader& reader) {
  LS_ASSIGN(const ScheduleConstraint constraint, ConstraintOf(schedule));
  LS_ASSIGN(const Engine* engine, reader.Look());
  LS_ASSIGN(const runtime::ChosenSchedule chosen, runtime::ChooseFor(engine->parts(), problem, constraint));
  Compilation result;
  result.problem = problem;
  result.target = chosen.target;
  result.schedule = chosen.schedule;
  result.choice = chosen.origin;
  LS_ASSIGN(result.program, compiler::BuildProgram(problem, result.schedule, *result.target, &result.passes));
  LS_ASSIGN(const compiler::FunctionTexts functions, reader.TextsOf(result.program));
  const runtime::Stopwatch watch;
  LS_ASSIGN(result.module, compiler::EmitPtx(result.program, *result.target,
                                             {.with_llvm_ir = keep == Keep::kPtxAndLlvm, .functions = functions}));
  result.ptx_ms = watch.Milliseconds();
  if (compiler::PacksAny(result.schedule)) {
    LS_ASSIGN(ir::Program program,
              compiler::BuildPack(std::get<GemmProblem>(problem), result.schedule, *result.target));
    LS_ASSIGN(result.pack, CompileKernel(std::move(program), *result.target, keep));
  }
  const auto totals = compiler::TotalsOf(problem, result.schedule, result.program, /*behind=*/0);
  const std::vector<compiler::TotalsPass> passes = compiler::PassesOf(totals);
  for (const compiler::TotalsPass& pass : passes) {
    LS_ASSIGN(ir::Program program, compiler::BuildTotals(pass, *result.target));
    LS_ASSIGN(CompiledKernel kernel, CompileKernel(std::move(program), *result.target, keep));
    result.totals.push_back(std::move(kernel));
  }
  if (!totals.empty()) result.totals_bytes = compiler::WorkspaceBytes(passes, 0) - totals.front().begin;
  return result;
}

Status WriteOutput(const std::string& path, const std::string& bytes) {
  if (path.empty() || path == "-") {
    // Failing, it leaves a mark on the stream, of which main makes an exit code.
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);
    return Ok();
  }
  return base::WriteFile(path, bytes);
}

}  // namespace laneshift::tools
