#include "tools/compilation.h"

#include <algorithm>
#include <cstdio>

#include "base/check.h"
#include "base/output_file.h"
#include "base/text.h"
#include "runtime/schedule_choice.h"
#include "runtime/stopwatch.h"
#include "tools/device_options.h"

namespace laneshift::tools {

const CompiledKernel& Compilation::Product() const {
  const auto product = std::find_if(kernels.begin(), kernels.end(), [](const CompiledKernel& kernel) {
    return kernel.purpose == compiler::LaunchPurpose::kMain;
  });
  LS_CHECK(product != kernels.end(), "a plan without a kernel that multiplies");
  return *product;
}

LookedDevice DeviceOf(Engine::Parts& parts) {
  const device::DeviceFacts& facts = parts.device.facts();
  return {.target = &parts.target,
          .machine = autotune::MachineOf(parts.target, facts.sm_count, parts.device_key, parts.store),
          .description = parts.emulated ? base::Cat("published facts, ", facts.sm_count, " SMs") : facts.name,
          .emulated = parts.emulated};
}

Result<Compilation> CompileProblem(const Problem& problem, const std::string& schedule, Keep keep,
                                   ProblemReader& reader) {
  LS_ASSIGN(const ScheduleConstraint constraint, ConstraintOf(schedule));
  LS_ASSIGN(const Engine* engine, reader.Look());
  LS_ASSIGN(const runtime::ChosenSchedule chosen, runtime::ChooseFor(engine->parts(), problem, constraint));
  Compilation result;
  result.device = DeviceOf(engine->parts());
  result.problem = problem;
  result.target = chosen.target;
  result.schedule = chosen.schedule;
  result.choice = chosen.origin;
  if (auto trials = engine->parts().store.GetTrials(PrintProblem(problem), std::string(chosen.target->name),
                                                    engine->parts().device_key))
    result.trials = std::move(*trials);
  LS_ASSIGN(compiler::KernelPlan plan,
            compiler::PlanKernels(problem, result.schedule, *result.target,
                                  {.sm_count = result.device.machine.sm_count}, &result.passes));
  result.workspace = plan.workspace;
  for (compiler::PlannedLaunch& launch : plan.launches) {
    if (launch.repeats) continue;
    LS_ASSIGN(const compiler::FunctionTexts functions, reader.TextsOf(launch.program));
    const runtime::Stopwatch watch;
    LS_ASSIGN(compiler::PtxModule module,
              compiler::EmitPtx(launch.program, *result.target,
                                {.with_llvm_ir = keep == Keep::kPtxAndLlvm, .functions = functions}));
    if (launch.purpose == compiler::LaunchPurpose::kMain) result.ptx_ms = watch.Milliseconds();
    result.kernels.push_back({launch.purpose, std::move(launch.program), std::move(module), launch.geometry});
  }
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
