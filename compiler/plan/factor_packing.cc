#include "compiler/plan/factor_packing.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/integer_math.h"
#include "base/text.h"
#include "compiler/emit/plain_kernel.h"
#include "compiler/plan/packing.h"
#include "ir/builder.h"
#include "ir/epilogue_steps.h"
#include "ir/stored_tensor.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::ScaleBlock;
using ir::ValueId;

constexpr int kFactorWarps = 4;  // for each operand

ir::BlockScaling ScalingOf(const Contraction& contraction) {
  const auto scaling = contraction.BlockScaling();
  LS_CHECK(scaling.has_value(), "no scale factors in blocks");
  return *scaling;
}

Binding SizeOf(Operand operand) { return operand == Operand::kA ? Binding::kM : Binding::kN; }

// Blocks of 128 rows x 4 factors of one operand.
ValueId BlocksOf(Builder& b, Operand operand, int run) {
  const ValueId rows = b.CeilDiv({b.ParamValue(SizeOf(operand)), b.Constant(ScaleBlock::kRows)});
  const ValueId along_k = b.CeilDiv({b.ParamValue(Binding::kK), b.Constant(run * ScaleBlock::kFactors)});
  return b.Mul({b.Mul({b.ParamValue(Binding::kBatch), rows}), along_k});
}

void AddFactorRole(const ir::PackFactorsAttrs& attrs, bool after_a, ir::Program& program) {
  const ir::Role role{.name = base::Cat("pack_", ir::OperandName(attrs.operand)),
                      .kind = ir::RoleKind::kCopy,
                      .first_warp = program.threads / 32,
                      .warps = kFactorWarps};
  program.threads += 32 * kFactorWarps;
  AddRole(program, role, [&](Builder& b) {
    const ValueId tile_m = b.Constant(program.tile_m), tile_n = b.Constant(program.tile_n);
    const ValueId rows = b.CeilDiv({b.ParamValue(SizeOf(attrs.operand)), tile_m});
    const ValueId columns = b.CeilDiv({b.ParamValue(Binding::kK), b.Constant(attrs.run * program.tile_n)});
    const ValueId begin = after_a ? BlocksOf(b, Operand::kA, attrs.run) : b.Constant(0);
    const ValueId first = b.Work({rows, columns, b.ParamValue(Binding::kBatch)}, {.raster = 1});
    b.InBody([&] {
      b.PackFactors({b.Mul({Builder::Argument(first, 0), tile_m}), b.Mul({Builder::Argument(first, 1), tile_n}),
                     Builder::Argument(first, 2), begin},
                    attrs);
    });
  });
}

bool LieInRows(const Contraction& contraction) { return contraction.scale_layout == ScaleLayout::kLinear; }

// The tensor core reads factors of columns of B that alternate, and CUDA cores where the columns lie.
bool AreInterleaved(const Contraction& contraction, const Schedule& schedule, Operand operand) {
  return operand == Operand::kB && schedule.reuse != Reuse::kDirect && contraction.BlockScaling() &&
         ir::HasSplitGateUp(contraction.epilogue());
}

}  // namespace

bool HasFactorsInRows(const Problem& problem) {
  return std::visit(
      [](const auto& kind) {
        if constexpr (requires { kind.scale_layout; }) return kind.scale_layout == ScaleLayout::kLinear;
        return false;
      },
      problem);
}

bool MayPackFactors(const Problem& problem) {
  const bool interleaves = std::visit(
      [](const auto& kind) { return ir::BlockScalingOf(kind.scale).has_value() && ir::HasSplitGateUp(kind.epilogue); },
      problem);
  return interleaves || HasFactorsInRows(problem);
}

bool PacksFactors(const Contraction& contraction, const Schedule& schedule, Operand operand) {
  return LieInRows(contraction) || AreInterleaved(contraction, schedule, operand);
}
bool PacksFactors(const Contraction& contraction, const Schedule& schedule) {
  return PacksFactors(contraction, schedule, Operand::kA) || PacksFactors(contraction, schedule, Operand::kB);
}

int64_t PackedFactorBytes(const Contraction& contraction, const Schedule& schedule, Operand operand) {
  if (!PacksFactors(contraction, schedule, operand)) return 0;
  return static_cast<int64_t>(contraction.Of(operand).scales.Bytes());
}

Result<ir::Program> BuildFactorPack(const Contraction& contraction, const Schedule& schedule,
                                    const target::Target& target) {
  ir::Program program;
  program.name = "pack_factors";
  program.target = std::string(target.name);
  program.tile_m = ScaleBlock::kRows;
  program.tile_n = ir::kPackedFactors * kFactorWarps;
  program.tile_k = 1;
  for (const Binding binding : {Binding::kBaseScaleA, Binding::kBaseScaleB, Binding::kWorkspace, Binding::kM,
                                Binding::kN, Binding::kK, Binding::kBatch})
    program.params.push_back({binding});
  bool packs_a = false;
  for (const Operand operand : kPackableOperands) {
    if (!PacksFactors(contraction, schedule, operand)) continue;
    AddFactorRole({.operand = operand,
                   .run = ScalingOf(contraction).run,
                   .blocks = !LieInRows(contraction),
                   .halves = AreInterleaved(contraction, schedule, operand)},
                  packs_a, program);
    packs_a |= operand == Operand::kA;
  }
  return LowerProgram(std::move(program), target);
}

LaunchGeometry FactorPackLaunch(const Contraction& contraction, const ir::Program& program, int sm_count) {
  const int64_t columns = base::CeilDiv(contraction.run, int64_t{ScalingOf(contraction).run} * program.tile_n);
  const int64_t rows = base::CeilDiv(std::max(contraction.m, contraction.n), program.tile_m);
  return LaunchOver(rows * columns * contraction.batch, program, sm_count);
}

}  // namespace laneshift::compiler
