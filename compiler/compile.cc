#include "compiler/compile.h"

#include <algorithm>
#include <string_view>

#include "base/fingerprint.h"
#include "base/integer_math.h"
#include "base/text.h"
#include "compiler/contraction/bindings.h"
#include "compiler/emit/llvm_version.h"
#include "compiler/legality/check_numerics.h"
#include "compiler/legality/check_schedule.h"
#include "compiler/passes.h"
#include "compiler/plan/constant_indices.h"
#include "compiler/plan/packing.h"

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

// Checks the schedule, then builds the program.
Result<ir::Program> BuildChecked(const Problem& problem, const Schedule& asked, const target::Target& target) {
  Contraction stored = ContractionOf(problem, asked);
  LS_TRY(CheckPacks(stored, asked, target));
  const auto& [contraction, schedule] = ProductOf(std::move(stored), asked);
  LS_TRY(CheckSchedule(contraction, schedule, target));
  LS_TRY(CheckNumerics(contraction, schedule));
  return contraction.WalksPixels() ? BuildConv(contraction, schedule, target)
                                   : BuildGemm(contraction, schedule, target);
}

// Bytes of a stage of a ring, its barriers included.
int StageBytes(const ir::Channel& ring) { return ring.StageBytes() + 2 * ir::kBarrierBytes; }
template <typename Program>
// Filters that stay have none.
auto* FilterRing(Program& program) {
  const auto ring = std::find_if(program.channels.begin(), program.channels.end(), [](const ir::Channel& channel) {
    return channel.name == kFilterRing && !channel.stays;
  });
  return ring != program.channels.end() ? &*ring : nullptr;
}

}  // namespace

Result<Footprint> ValidateSchedule(const Problem& problem, const Schedule& schedule, const target::Target& target) {
  LS_ASSIGN(const Sketch sketch, SketchSchedule(problem, schedule, target));
  return sketch.footprint;
}

Result<Sketch> SketchSchedule(const Problem& problem, const Schedule& schedule, const target::Target& target) {
  LS_ASSIGN(ir::Program program, BuildChecked(problem, schedule, target));
  LS_TRY(AssignStorage(program, target));
  const ir::Channel* filters = FilterRing(program);
  const Footprint footprint{.smem_bytes = program.smem_bytes,
                            .stage_bytes = StageBytes(program.channels[0]),
                            .filter_stage_bytes = filters != nullptr ? StageBytes(*filters) : 0,
                            .tmem_columns = program.tmem_columns};
  return Sketch{std::move(program), footprint};
}

void DeepenRings(ir::Program& program, const Schedule& schedule) {
  program.channels[0].stages = schedule.stages;
  ir::Channel* filters = FilterRing(program);
  if (filters != nullptr) filters->stages = schedule.filter_stages;
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

const std::string& Generator() {
  static const std::string generator = base::Cat(kGeneratorRevision, "/llvm-", LlvmVersion());
  return generator;
}

std::string KernelKey(const ir::Program& program) {
  return base::Fingerprinter().Text("generator", Generator()).Text("program", ir::PrintProgram(program)).Finish().Hex();
}

int64_t ClusterTiles(const Problem& problem, const Schedule& schedule, const ir::Program& program) {
  const ProblemNumbers numbers(problem, schedule);
  return base::CeilDiv(numbers.SizeOf(ir::Binding::kM), int64_t{program.TileRows()} * program.cluster_m) *
         base::CeilDiv(numbers.SizeOf(ir::Binding::kN), int64_t{program.tile_n} * program.cluster_n) *
         numbers.SizeOf(ir::Binding::kBatch);
}

LaunchGeometry PlanLaunch(const Problem& problem, const Schedule& schedule, const ir::Program& program, int most) {
  const auto cluster = static_cast<unsigned>(program.ClusterSize());
  const int64_t tiles = ClusterTiles(problem, schedule, program);
  const int64_t sections = std::min<int64_t>(schedule.split_k, ContractionOf(problem, schedule).Iterations(schedule));
  const int64_t running =
      std::min({tiles * sections, int64_t{most}, int64_t{ir::WorkspaceLayout::kMostTiles} / cluster});
  int64_t clusters = program.TakesOver() ? tiles : running;
  // What stays is of one column of tiles: in rounds of whole rows, a CTA comes back to its own.
  if (schedule.b_keep > 0) {
    const int64_t columns = base::CeilDiv(ProblemNumbers(problem, schedule).SizeOf(ir::Binding::kN), program.tile_n);
    if (columns > 1) clusters = std::max(columns, clusters / columns * columns);
  }
  LaunchGeometry shape{.grid = static_cast<unsigned>(clusters) * cluster,
                       .cluster = cluster,
                       .threads = static_cast<unsigned>(program.threads),
                       .smem_bytes = static_cast<unsigned>(program.smem_bytes)};
  if (program.FindParam(ir::Binding::kWorkspace) != nullptr) {
    const int64_t pieces = tiles % clusters * cluster * sections;
    shape.workspace_bytes = static_cast<size_t>(ir::WorkspaceOf(program).Bytes(pieces));
  }
  return shape;
}

}  // namespace laneshift::compiler
