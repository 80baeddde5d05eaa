// A depthwise convolution on CUDA cores: one role copies the filters of the CTA's channels to shared memory once,
// transposed to taps x channels; the other goes through the tiles, computes its sums from pixels in memory, and stores
// them as any epilogue does.
#include <utility>

#include "compiler/build/cta_plan.h"
#include "compiler/build/kernel_frame.h"
#include "compiler/build/operand_parts.h"
#include "compiler/build/pixel_output.h"
#include "compiler/build/subtile_steps.h"
#include "compiler/build/tile_loop.h"
#include "compiler/passes.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::RoleKind;
using ir::ValueId;

constexpr int kFilters = 0;  // the only channel

class DirectKernel {
 public:
  // REQUIRES: all outlive the kernel.
  DirectKernel(const Contraction& contraction, const Schedule& schedule, const target::Target& target)
      : contraction_(contraction),
        schedule_(schedule),
        geometry_(contraction.geometry),
        terms_(TermsOf(contraction, ir::RowMap::kPixels, target)),
        output_(contraction, true),
        plan_(PlanOf(schedule, geometry_)),
        steps_(terms_, plan_, program_, output_) {
    program_ = ProgramOfTile("depthwise", schedule, contraction.a.type(), target);
    program_.threads = 32 * (kEpilogueWarp + plan_.warps);
  }

  ir::Program Write() && {
    program_.channels = {{.name = "w", .stages = 1, .tiles = {{"w", FilterTile()}}, .resident = true}};
    DeclareParams();
    AddRole(program_, {.name = "copy", .kind = RoleKind::kCopy, .first_warp = kLoadWarp, .warps = kEpilogueWarp},
            [this](Builder& b) { CopyFilters(b); });
    AddRole(program_, {.name = "math", .kind = RoleKind::kMath, .first_warp = kEpilogueWarp, .warps = plan_.warps},
            [this](Builder& b) { WriteTiles(b); });
    return std::move(program_);
  }

 private:
  static CtaPlan PlanOf(const Schedule& schedule, const ConvGeometry& geometry) {
    const bool short_runs = geometry.direct_run == 4;
    CtaPlan plan;
    plan.warps = ir::kWarpgroupWarps * schedule.math_warpgroups;
    plan.columns = schedule.tile_n;
    plan.fragment = short_runs ? ir::FragmentKind::kRuns4 : ir::FragmentKind::kRuns8;
    plan.staging.panel = plan.staging.subtile = schedule.tile_n;
    return plan;
  }

  ir::SharedLayout FilterTile() const {
    return {.type = contraction_.b.type(),
            .outer_axis = ir::Axis::kK,
            .inner_axis = ir::Axis::kN,
            .outer = schedule_.tile_k,
            .inner = schedule_.tile_n,
            .swizzle = ir::Swizzle::k128};
  }

  void DeclareParams() {
    std::vector<ir::Param>& params = program_.params;
    params.push_back({Binding::kBaseA, {}});
    output_.AddPitches(Operand::kA, params);
    params.insert(params.end(), {{Binding::kBaseB, {}}, {Binding::kPitchB, {}}, {Binding::kStrideB, {}}});
    params.push_back({Binding::kBaseD, {}});
    output_.AddPitches(Operand::kD, params);
    DeclareEpilogue(terms_, output_, program_);
  }

  // Adjacent threads load adjacent taps.
  void CopyFilters(Builder& b) const {
    const ValueId channel = OperandParts(schedule_, false).ColumnOfResidentB(b);
    const ValueId slot = b.Put({}, {.channel = kFilters});
    b.CopyLoad({slot, channel, b.Constant(0), b.Constant(0)}, {.operand = Operand::kB, .transposed = true});
    b.Send({slot});
  }

  void WriteTiles(Builder& b) const {
    b.Await({b.Constant(1)}, {.channel = kFilters});
    const ValueId filters = b.ResidentSlot({b.Constant(0)}, {.channel = kFilters});
    const TileLoop tiles{.tile_m = schedule_.tile_m, .tile_n = schedule_.tile_n, .raster = schedule_.raster};
    tiles.ForEachCorner(b, [&](const Corner& corner) {
      const ValueId row = b.Add({corner.row, b.WarpRow({}, {.rows = steps_.RowsOfWarp()})});
      Subtile sums{.row = row, .column = corner.column, .batch = corner.batch, .columns = plan_.columns};
      sums.own = row;
      sums.tile = corner.column;
      if (terms_.orders_reductions) sums.panel = b.Constant(0);
      sums.fragment = b.Depthwise({filters, row, corner.column}, AttrsOfFilter());
      steps_.Write(b, sums, {});
      b.GlobalStore(sums.Operands(), steps_.AccessOf(Operand::kD, plan_.columns));
    });
  }

  ir::DepthwiseAttrs AttrsOfFilter() const {
    const int64_t stride = geometry_.stride[kWidth];
    const int64_t phase = geometry_.divides ? ((-geometry_.pad[kWidth]) % stride + stride) % stride : 0;
    return {.fragment = plan_.fragment,
            .columns = static_cast<int>(geometry_.filter[kWidth]),
            .stride = static_cast<int>(stride),
            .dilation = static_cast<int>(geometry_.dilation[kWidth]),
            .planes = geometry_.planes,
            .reversed = geometry_.tap_step[kWidth] != 0,
            .divides = geometry_.divides,
            .phase = static_cast<int>(phase)};
  }

  const Contraction& contraction_;
  const Schedule& schedule_;
  const ConvGeometry& geometry_;
  const EpilogueTerms terms_;
  const PixelOutput output_;
  const CtaPlan plan_;
  ir::Program program_;
  const SubtileSteps steps_;
};

}  // namespace

ir::Program BuildDirect(const Contraction& contraction, const Schedule& schedule, const target::Target& target) {
  return DirectKernel(contraction, schedule, target).Write();
}

}  // namespace laneshift::compiler
