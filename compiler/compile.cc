#include "compiler/compile.h"

#include <algorithm>
#include <string_view>

#include "base/fingerprint.h"
#include "base/text.h"
#include "compiler/bindings.h"
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

// What the compiler does with a kind of problem.
ir::Program Build(const GemmProblem& problem, const Schedule& schedule, const target::Target& target) {
  return BuildGemm(problem, schedule, target);
}
ir::Program Build(const ConvProblem& problem, const Schedule& schedule, const target::Target& target) {
  return BuildConv(problem, schedule, target);
}

// Checks the schedule, then builds the program.
Result<ir::Program> BuildChecked(const Problem& problem, const Schedule& schedule, const target::Target& target) {
  return std::visit(
      [&](const auto& kind) -> Result<ir::Program> {
        LS_TRY(CheckSchedule(kind, schedule, target));
        return Build(kind, schedule, target);
      },
      problem);
}

}  // namespace

Result<Footprint> ValidateSchedule(const Problem& problem, const Schedule& schedule, const target::Target& target) {
  LS_ASSIGN(ir::Program program, BuildChecked(problem, schedule, target));
  LS_TRY(AssignStorage(program, target));
  const auto ring_bytes = [&](std::string_view name) {
    for (const ir::Channel& channel : program.channels) {
      if (channel.name == name) return channel.StageBytes() + 2 * ir::kBarrierBytes;
    }
    return 0;
  };
  return Footprint{.smem_bytes = program.smem_bytes,
                   .stage_bytes = program.channels[0].StageBytes() + 2 * ir::kBarrierBytes,
                   .filter_stage_bytes = ring_bytes(kFilterRing),
                   .tmem_columns = program.tmem_columns};
}

Result<ir::Program> SketchProgram(const Problem& problem, const Schedule& schedule, const target::Target& target) {
  return BuildChecked(problem, schedule, target);
}

Result<ir::Program> BuildProgram(const Problem& problem, const Schedule& schedule, const target::Target& target,
                                 std::vector<PassDump>* dumps) {
  LS_ASSIGN(ir::Program program, BuildChecked(problem, schedule, target));
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

LaunchShape PlanLaunch(const Problem& problem, const Schedule& schedule, const ir::Program& program, int sm_count) {
  const auto size = [&](ir::Binding binding) { return static_cast<int64_t>(NumberOf(problem, schedule, binding)); };
  const int64_t tiles = CeilDiv(size(ir::Binding::kM), program.TileRows()) *
                        CeilDiv(size(ir::Binding::kN), program.tile_n) * size(ir::Binding::kBatch);
  return {.grid = static_cast<unsigned>(std::min<int64_t>(tiles, sm_count)),
          .threads = static_cast<unsigned>(program.threads),
          .smem_bytes = static_cast<unsigned>(program.smem_bytes)};
}

}  // namespace laneshift::compiler
