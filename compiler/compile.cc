#include "compiler/compile.h"

#include <string_view>

#include "base/fingerprint.h"
#include "base/text.h"
#include "compiler/emit/llvm_version.h"
#include "compiler/legality/check_early.h"
#include "compiler/legality/check_groups.h"
#include "compiler/legality/check_numerics.h"
#include "compiler/legality/check_schedule.h"
#include "compiler/passes.h"
#include "compiler/plan/packing.h"
#include "ir/epilogue_steps.h"

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

// What the main kernel computes, if the schedule is legal for it.
Result<PackedProduct> Check(Contraction stored, const Schedule& asked, const target::Target& target) {
  LS_TRY(CheckMerged(stored, asked));
  LS_TRY(CheckEarly(stored, asked));
  LS_TRY(CheckPacks(stored, asked, target));
  PackedProduct product = ProductOf(std::move(stored), asked);
  LS_TRY(CheckSchedule(product.contraction, product.schedule, target));
  LS_TRY(CheckNumerics(product.contraction, product.schedule));
  return product;
}

// Several contractions have one kernel, so that it must know nothing in which they differ.
Status CheckPhases(const Problem& problem, const Schedule& asked, const target::Target& target) {
  const auto refused = [](std::string_view what) {
    return MakeError(ErrorCode::kUnsupported, base::Cat("a conv_dgrad with a stride above 1 ", what));
  };
  if (asked.reuse > Reuse::kIm2col)
    return refused("has a filter of other columns for each remainder of a pixel by the stride; use reuse=im2col");
  const Contraction first = ContractionOf(problem, asked);
  if (ir::OrdersReductions(first.epilogue(), first.numerics))
    return refused("reduces its epilogue's sums in several kernels, which have no fixed order; use numerics=default");
  const size_t count = ContractionsOf(problem, asked);
  for (size_t i = 1; i < count; ++i) LS_TRY(Check(ContractionOf(problem, asked, i), asked, target));
  return Ok();
}

// Checks the schedule, then builds the program.
Result<ir::Program> BuildChecked(const Problem& problem, const Schedule& asked, const target::Target& target) {
  if (ContractionsOf(problem, asked) > 1) LS_TRY(CheckPhases(problem, asked, target));
  LS_ASSIGN(const PackedProduct product, Check(ContractionOf(problem, asked), asked, target));
  const auto& [contraction, schedule] = product;
  const bool direct = schedule.reuse == Reuse::kDirect;
  if (contraction.SumsPixels() && direct) return BuildDirectGradient(contraction, schedule, target);
  if (direct && contraction.a.kind == SourceKind::kMatrix) return BuildGemv(contraction, schedule, target);
  if (direct) return BuildDirect(contraction, schedule, target);
  if (contraction.SumsPixels()) return BuildFilterGradient(contraction, schedule, target);
  return contraction.RowsArePixels() ? BuildConv(contraction, schedule, target)
                                     : BuildGemm(contraction, schedule, target);
}

// Bytes of one stage of a ring, with its barriers.
int StageBytes(const ir::Program& program, int ring) {
  return program.channels.at(static_cast<size_t>(ring)).StageBytes() + 2 * ir::kBarrierBytes;
}

// B has a separate ring where activations are loaded once for several of its tiles.
bool HasOwnRing(const ir::OperandRings& rings) { return rings.b >= 0 && rings.b != rings.a; }

}  // namespace

Result<Footprint> ValidateSchedule(const Problem& problem, const Schedule& schedule, const target::Target& target) {
  LS_ASSIGN(const Sketch sketch, SketchSchedule(problem, schedule, target));
  return sketch.footprint;
}

Result<Sketch> SketchSchedule(const Problem& problem, const Schedule& schedule, const target::Target& target) {
  LS_ASSIGN(ir::Program program, BuildChecked(problem, schedule, target));
  LS_TRY(AssignStorage(program, target));
  const ir::OperandRings rings = ir::RingsOf(program);
  const Footprint footprint{.smem_bytes = program.smem_bytes,
                            .stage_bytes = rings.a >= 0 ? StageBytes(program, rings.a) : 0,
                            .filter_stage_bytes = HasOwnRing(rings) ? StageBytes(program, rings.b) : 0,
                            .tmem_columns = program.tmem_columns};
  return Sketch{std::move(program), footprint, rings};
}

void DeepenRings(Sketch& sketch, const Schedule& schedule) {
  std::vector<ir::Channel>& channels = sketch.program.channels;
  if (sketch.rings.a < 0) return;
  channels.at(static_cast<size_t>(sketch.rings.a)).stages = schedule.stages;
  if (HasOwnRing(sketch.rings)) channels.at(static_cast<size_t>(sketch.rings.b)).stages = schedule.filter_stages;
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

}  // namespace laneshift::compiler
