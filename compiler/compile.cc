#include "compiler/compile.h"

#include <algorithm>
#include <string_view>

#include "base/fingerprint.h"
#include "base/text.h"
#include "compiler/check_schedule.h"
#include "compiler/passes.h"

namespace laneshift::compiler {
namespace {

struct Pass {
  std::string_view name;
  Status (*run)(ir::Program& program, const target::Target& target);
};

// Read top to bottom: what happens to a program after it is built.
constexpr Pass kPipeline[] = {
    {"lower_channels", LowerChannels},
    {"assign_storage", AssignStorage},
};

Status Verify(const ir::Program& program, const target::Target& target, std::string_view pass) {
  if (auto status = ir::VerifyProgram(program, target); !status) {
    return status.error().Within(base::Cat("after ", pass));
  }
  return Ok();
}

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The kinds of problem that have a tile program.
Result<GemmProblem> Compilable(const Problem& problem) {
  if (const GemmProblem* gemm = std::get_if<GemmProblem>(&problem)) return *gemm;
  return MakeError(ErrorCode::kUnsupported,
                   base::Cat("problems of kind '", ProblemKind(problem), "' are not compiled yet; use gemm"));
}

}  // namespace

Result<Footprint> ValidateSchedule(const Problem& problem, const Schedule& schedule, const target::Target& target) {
  LS_ASSIGN(const GemmProblem gemm, Compilable(problem));
  LS_TRY(CheckSchedule(gemm, schedule, target));
  ir::Program program = BuildGemm(gemm, schedule, target);
  LS_TRY(AssignStorage(program, target));
  return Footprint{.smem_bytes = program.smem_bytes,
                   .stage_bytes = program.channels[0].StageBytes() + 2 * ir::kBarrierBytes,
                   .tmem_columns = program.tmem_columns};
}

Result<ir::Program> BuildProgram(const Problem& problem, const Schedule& schedule, const target::Target& target,
                                 std::vector<PassDump>* dumps) {
  LS_ASSIGN(const GemmProblem gemm, Compilable(problem));
  LS_TRY(CheckSchedule(gemm, schedule, target));
  ir::Program program = BuildGemm(gemm, schedule, target);
  LS_TRY(Verify(program, target, "build"));
  if (dumps != nullptr) dumps->push_back({"build", ir::PrintProgram(program)});
  for (const Pass& pass : kPipeline) {
    LS_TRY(pass.run(program, target));
    LS_TRY(Verify(program, target, pass.name));
    if (dumps != nullptr) dumps->push_back({std::string(pass.name), ir::PrintProgram(program)});
  }
  return program;
}

std::string KernelKey(const ir::Program& program) {
  return base::Fingerprinter()
      .Integer("generator", kGeneratorRevision)
      .Text("program", ir::PrintProgram(program))
      .Finish()
      .Hex();
}

LaunchShape PlanLaunch(const Problem& problem, const ir::Program& program, int sm_count) {
  const GemmProblem& gemm = std::get<GemmProblem>(problem);
  const int64_t tiles = CeilDiv(gemm.m, program.tile_m) * CeilDiv(gemm.n, program.tile_n) * gemm.batch;
  return {.grid = static_cast<unsigned>(std::min<int64_t>(tiles, sm_count)),
          .threads = static_cast<unsigned>(program.threads),
          .smem_bytes = static_cast<unsigned>(program.smem_bytes)};
}

}  // namespace laneshift::compiler
