// The gradient of the filters of a depthwise convolution on CUDA cores: the warps of one role have rows of the filter,
// go through the positions of a tile and leave their sums in shared memory; those of the other add the copies of a
// sum, and partial sums of other CTAs, in a fixed order, and store them as any epilogue does.
#include <utility>

#include "compiler/build/cta_plan.h"
#include "compiler/build/filter_output.h"
#include "compiler/build/k_loop.h"
#include "compiler/build/kernel_frame.h"
#include "compiler/build/subtile_steps.h"
#include "compiler/build/sums_epilogue.h"
#include "compiler/build/tile_loop.h"
#include "compiler/legality/check_direct.h"
#include "compiler/passes.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::RoleKind;
using ir::ValueId;

constexpr int kSums = 0;        // the only channel,
constexpr int kSumsStages = 2;  // so that a tile's sums are stored while those of the next one are computed

class DirectGradientKernel {
 public:
  // REQUIRES: all outlive the kernel.
  DirectGradientKernel(const Contraction& contraction, const Schedule& schedule, const target::Target& target)
      : contraction_(contraction),
        schedule_(schedule),
        terms_(TermsOf(contraction, ir::RowMap::kFilters, target)),
        output_(contraction, true),
        plan_(PlanOf(schedule)),
        gradient_(AttrsOf(contraction.geometry, schedule, target)),
        warps_(ir::kWarpgroupWarps * schedule.math_warpgroups),
        k_{.tile_k = schedule.tile_k},
        steps_(terms_, plan_, program_, output_) {
    program_ = ProgramOfTile("depthwise_gradient", schedule, contraction.a.type(), target);
    program_.threads = 32 * (plan_.warps + warps_);
  }

  ir::Program Write() && {
    program_.channels = {{.name = "sums", .stages = kSumsStages, .tiles = {{"w", SumsTile()}}}};
    DeclareParams();
    AddRole(program_, {.name = "epilogue", .kind = RoleKind::kEpilogue, .first_warp = 0, .warps = plan_.warps},
            [this](Builder& b) {
              SumsEpilogue{plan_, terms_, steps_, kSums, Copies()}.StoreTiles(b, Tiles());
            });
    AddRole(program_, {.name = "sum", .kind = RoleKind::kCopy, .first_warp = plan_.warps, .warps = warps_},
            [this](Builder& b) { MultiplyTiles(b); });
    return std::move(program_);
  }

 private:
  static CtaPlan PlanOf(const Schedule& schedule) {
    CtaPlan plan;
    plan.warps = ir::kWarpgroupWarps;
    plan.columns = schedule.tile_n;
    plan.fragment = ir::FragmentKind::kMma16x8;
    plan.staging.panel = plan.staging.subtile = schedule.tile_n;
    return plan;
  }

  static ir::DepthwiseGradientAttrs AttrsOf(const ConvGeometry& geometry, const Schedule& schedule,
                                            const target::Target& target) {
    const int rows = DirectGradientRows(geometry, schedule, target);
    const int64_t all = geometry.filter[kDepth] * geometry.filter[kHeight];
    return {.run = geometry.direct_run,
            .columns = static_cast<int>(geometry.filter[kWidth]),
            .stride = static_cast<int>(geometry.stride[kWidth]),
            .dilation = static_cast<int>(geometry.dilation[kWidth]),
            .rows = rows,
            .groups = static_cast<int>((all + rows - 1) / rows),
            .planes = geometry.planes};
  }

  int Copies() const { return gradient_.Copies(warps_); }

  ir::SharedLayout SumsTile() const {
    return {.type = DataType::kF32,
            .outer_axis = ir::Axis::kN,
            .inner_axis = ir::Axis::kM,
            .outer = Copies() * schedule_.tile_n,
            .inner = schedule_.tile_m,
            .swizzle = ir::Swizzle::k128};
  }

  void DeclareParams() {
    std::vector<ir::Param>& params = program_.params;
    for (const Operand operand : {Operand::kA, Operand::kB}) {
      const ir::PixelPitches pitches = ir::PixelPitchesOf(operand);
      params.insert(params.end(), {{ir::BaseOf(operand), {}}, {ir::PitchOf(operand), {}}, {pitches.row, {}}});
      if (gradient_.planes) params.push_back({pitches.plane, {}});
      params.push_back({ir::StrideOf(operand), {}});
    }
    params.push_back({Binding::kBaseD, {}});
    output_.AddPitches(Operand::kD, params);
    DeclareEpilogue(terms_, output_, program_);
    if (schedule_.split_k > 1) params.push_back({Binding::kWorkspace, {}});
  }

  TileLoop Tiles() const { return TilesOfSums(program_, schedule_, k_); }

  void MultiplyTiles(Builder& b) const {
    SumTiles(b, Tiles(), kSums, [&](const Corner& corner, ValueId slot, ValueId first, ValueId end) {
      b.DepthwiseGradient({slot, corner.row, first, end}, gradient_);
    });
  }

  const Contraction& contraction_;
  const Schedule& schedule_;
  const EpilogueTerms terms_;
  const FilterOutput output_;
  const CtaPlan plan_;
  const ir::DepthwiseGradientAttrs gradient_;
  const int warps_;  // that sum
  const KLoop k_;
  ir::Program program_;
  const SubtileSteps steps_;
};

}  // namespace

ir::Program BuildDirectGradient(const Contraction& contraction, const Schedule& schedule,
                                const target::Target& target) {
  return DirectGradientKernel(contraction, schedule, target).Write();
}

}  // namespace laneshift::compiler
