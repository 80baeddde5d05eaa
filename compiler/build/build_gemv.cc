// A matrix times a few vectors on CUDA cores: the warps of one role read both from memory, multiply them and leave the
// sums in shared memory; those of the other store the sums. No operand comes through a ring.
#include <utility>

#include "compiler/build/cta_plan.h"
#include "compiler/build/k_loop.h"
#include "compiler/build/kernel_frame.h"
#include "compiler/build/matrix_output.h"
#include "compiler/build/subtile_steps.h"
#include "compiler/build/sums_epilogue.h"
#include "compiler/build/tile_loop.h"
#include "compiler/legality/check_gemv.h"
#include "compiler/passes.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::RoleKind;
using ir::ValueId;

constexpr int kProducts = 0;        // the only channel,
constexpr int kProductsStages = 2;  // so that a tile's sums are stored while those of the next one are computed
constexpr int kVectorsOfTile = 8;   // columns of the accumulator, which fragments have in eights

class GemvKernel {
 public:
  // REQUIRES: all outlive the kernel.
  GemvKernel(const Contraction& contraction, const Schedule& schedule, const target::Target& target)
      : contraction_(contraction),
        schedule_(schedule),
        terms_(TermsOf(contraction, ir::RowMap::kMatrix, target)),
        output_(contraction),
        plan_(PlanOf(schedule)),
        gemv_(GemvOf(contraction, schedule)),
        warps_(ir::kWarpgroupWarps * schedule.math_warpgroups),
        k_{.tile_k = schedule.tile_k},
        steps_(terms_, plan_, program_, output_) {
    program_ = ProgramOfTile("gemv", schedule, contraction.a.type(), target);
    program_.row_axis = plan_.rows_along_n ? ir::Axis::kN : ir::Axis::kM;
    (plan_.rows_along_n ? program_.tile_m : program_.tile_n) = kVectorsOfTile;
    program_.threads = 32 * (kEpilogueWarp + warps_);
  }

  ir::Program Write() && {
    program_.channels = {{.name = "sums", .stages = kProductsStages, .tiles = {{"d", SumsTile()}}}};
    DeclareParams();
    AddRole(program_, {.name = "epilogue", .kind = RoleKind::kEpilogue, .first_warp = 0, .warps = plan_.warps},
            [this](Builder& b) {
              SumsEpilogue{plan_, terms_, steps_, kProducts, gemv_.copies}.StoreTiles(b, Tiles());
            });
    AddRole(
        program_,
        {.name = "sum", .kind = RoleKind::kCopy, .first_warp = kEpilogueWarp, .warps = warps_, .early = gemv_.waits},
        [this](Builder& b) { MultiplyTiles(b); });
    return std::move(program_);
  }

 private:
  static CtaPlan PlanOf(const Schedule& schedule) {
    constexpr int kRowsOfWarp = 16;
    CtaPlan plan;
    plan.rows_along_n = schedule.rows == RowSide::kN;
    plan.warps = (plan.rows_along_n ? schedule.tile_n : schedule.tile_m) / kRowsOfWarp;
    plan.columns = kVectorsOfTile;
    plan.fragment = ir::FragmentKind::kMma16x8;
    plan.staging.panel = plan.staging.subtile = kVectorsOfTile;
    return plan;
  }

  ir::SharedLayout SumsTile() const {
    constexpr int kNarrow = 16;  // lines, whose f32 sums are half of the widest span
    return {.type = DataType::kF32,
            .outer_axis = program_.ColumnAxis(),
            .inner_axis = program_.row_axis,
            .outer = gemv_.copies * kVectorsOfTile,
            .inner = program_.Rows(),
            .swizzle = program_.Rows() == kNarrow ? ir::Swizzle::k64 : ir::Swizzle::k128};
  }

  void DeclareParams() {
    std::vector<ir::Param>& params = program_.params;
    for (const Operand operand : {Operand::kA, Operand::kB})
      params.insert(params.end(), {{ir::BaseOf(operand), {}}, {ir::PitchOf(operand), {}}, {ir::StrideOf(operand), {}}});
    if (gemv_.scale_run > 0) params.insert(params.end(), {{Binding::kBaseScaleA, {}}, {Binding::kBaseScaleB, {}}});
    params.push_back({Binding::kBaseD, {}});
    output_.AddPitches(Operand::kD, params);
    DeclareEpilogue(terms_, output_, program_);
    if (schedule_.split_k > 1) params.push_back({Binding::kWorkspace, {}});
  }

  TileLoop Tiles() const { return TilesOfSums(program_, schedule_, k_); }

  void MultiplyTiles(Builder& b) const {
    SumTiles(b, Tiles(), kProducts, [&](const Corner& corner, ValueId slot, ValueId first, ValueId end) {
      b.Gemv({slot, plan_.rows_along_n ? corner.column : corner.row, first, end, corner.batch}, gemv_);
    });
  }

  const Contraction& contraction_;
  const Schedule& schedule_;
  const EpilogueTerms terms_;
  const MatrixOutput output_;
  const CtaPlan plan_;
  const ir::GemvAttrs gemv_;
  const int warps_;  // that multiply
  const KLoop k_;
  ir::Program program_;
  const SubtileSteps steps_;
};

}  // namespace

ir::Program BuildGemv(const Contraction& contraction, const Schedule& schedule, const target::Target& target) {
  return GemvKernel(contraction, schedule, target).Write();
}

}  // namespace laneshift::compiler
