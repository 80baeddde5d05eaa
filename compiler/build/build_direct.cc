// A depthwise convolution on CUDA cores: one role copies the filters of the CTA's channels to shared memory once,
// transposed to taps x channels; another brings the box of pixels under each tile; the third computes the sums of the
// tile from these, and stores them as any epilogue does.
#include <utility>

#include "base/integer_math.h"
#include "compiler/build/box_loader.h"
#include "compiler/build/cta_plan.h"
#include "compiler/build/kernel_frame.h"
#include "compiler/build/operand_parts.h"
#include "compiler/build/pixel_output.h"
#include "compiler/build/subtile_steps.h"
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

constexpr int kFilters = 0, kPixels = 1;  // channels

class DirectKernel {
 public:
  // REQUIRES: all outlive the kernel.
  DirectKernel(const Contraction& contraction, const Schedule& schedule, const target::Target& target)
      : contraction_(contraction),
        schedule_(schedule),
        geometry_(contraction.geometry),
        boxes_(contraction),
        terms_(TermsOf(contraction, ir::RowMap::kPixels, target)),
        output_(contraction, false),
        plan_(PlanOf(schedule, geometry_)),
        steps_(terms_, plan_, program_, output_) {
    program_ = ProgramOfTile("depthwise", schedule, contraction.a.type(), target);
    program_.threads = 32 * (kEpilogueWarp + plan_.warps);
    program_.box_lines = static_cast<int>(geometry_.outputs_of_box[kHeight]);
    program_.box_columns = static_cast<int>(geometry_.outputs_of_box[kWidth]);
  }

  ir::Program Write() && {
    program_.channels = {
        {.name = "w", .stages = 1, .tiles = {{"w", FilterTile()}}, .resident = true},
        {.name = "x", .stages = schedule_.stages, .tiles = {{"x", boxes_.TileOf(Operand::kA, schedule_.tile_n)}}},
    };
    DeclareParams();
    const DirectRegisters registers = kDirectRegisters[schedule_.math_warpgroups];
    AddRole(program_,
            {.name = "load",
             .kind = RoleKind::kLoad,
             .first_warp = kLoadWarp,
             .warps = 1,
             .elected = true,
             .registers = registers.load},
            [this](Builder& b) { LoadTiles(b); });
    AddRole(program_,
            {.name = "copy",
             .kind = RoleKind::kCopy,
             .first_warp = kLoadWarp + 1,
             .warps = kEpilogueWarp - kLoadWarp - 1,
             .registers = registers.load},
            [this](Builder& b) { CopyFilters(b); });
    AddRole(program_,
            {.name = "math",
             .kind = RoleKind::kMath,
             .first_warp = kEpilogueWarp,
             .warps = plan_.warps,
             .registers = registers.load == 0 ? 0 : registers.math},
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
    plan.blocks = base::CeilDiv(schedule.tile_m, plan.warps * ir::FragmentLayout{plan.fragment}.Rows());
    return plan;
  }

  ir::SharedLayout FilterTile() const {
    return {.type = contraction_.b.type(),
            .outer_axis = ir::Axis::kK,
            .inner_axis = ir::Axis::kN,
            .outer = schedule_.tile_k,
            .inner = schedule_.tile_n,
            .swizzle = ir::Swizzle::k128,
            .linear = true};
  }

  void DeclareParams() {
    std::vector<ir::Param>& params = program_.params;
    params.push_back({Binding::kMapA, boxes_.TileOf(Operand::kA, schedule_.tile_n)});
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

  TileLoop Tiles() const {
    return {.tile_m = schedule_.tile_m, .tile_n = schedule_.tile_n, .raster = schedule_.raster};
  }
  std::vector<ValueId> FirstOutput(Builder& b, const Corner& corner) const {
    return boxes_.FirstOutput(b, b.Div({corner.row, b.Constant(schedule_.tile_m)}));
  }

  void LoadTiles(Builder& b) const {
    Tiles().ForEachCorner(b, [&](const Corner& corner) {
      const ValueId slot = b.Put({}, {.channel = kPixels});
      boxes_.Load(b, Operand::kA, slot, 0, corner.column, FirstOutput(b, corner));
      b.Send({slot});
    });
  }

  void WriteTiles(Builder& b) const {
    b.Await({b.Constant(1)}, {.channel = kFilters});
    const ValueId filters = b.ResidentSlot({b.Constant(0)}, {.channel = kFilters});
    const int rows = ir::FragmentLayout{plan_.fragment}.Rows();
    Tiles().ForEachCorner(b, [&](const Corner& corner) {
      std::vector<ValueId> phases;
      if (geometry_.divides) {
        const std::vector<ValueId> first = FirstOutput(b, corner);
        for (size_t d = 1; d < boxes_.dimensions(); ++d) phases.push_back(boxes_.PhaseAt(b, d, first[d]));
      }
      const ValueId pixels = b.Take({}, {.channel = kPixels});
      ForEach(b, b.Constant(plan_.blocks), [&](ValueId pass) {
        const ValueId own = b.Add({b.Mul({pass, b.Constant(rows * plan_.warps)}), b.WarpRow({}, {.rows = rows})});
        std::vector<ValueId> operands = {pixels, filters, own};
        operands.insert(operands.end(), phases.begin(), phases.end());
        if (schedule_.tile_m % (rows * plan_.warps) == 0) return WriteRows(b, corner, operands);
        b.If({b.Less({own, b.Constant(schedule_.tile_m)})});
        b.InBody([&] { WriteRows(b, corner, operands); });
      });
      b.Release({pixels});
    });
  }

  // Those of a warp, of which the third operand is the first one in the tile.
  void WriteRows(Builder& b, const Corner& corner, const std::vector<ValueId>& operands) const {
    const ValueId row = b.Add({corner.row, operands[2]});
    Subtile sums{.row = row, .column = corner.column, .batch = corner.batch, .columns = plan_.columns};
    sums.own = row;
    sums.tile = corner.column;
    if (terms_.orders_reductions) sums.panel = b.Constant(0);
    sums.fragment = b.Depthwise(operands, AttrsOfFilter());
    steps_.Write(b, sums, {});
    b.GlobalStore(sums.Operands(), steps_.AccessOf(Operand::kD, plan_.columns));
  }

  ir::DepthwiseAttrs AttrsOfFilter() const {
    const int64_t stride = geometry_.stride[kWidth];
    const int64_t phase = geometry_.divides ? ((-geometry_.pad[kWidth]) % stride + stride) % stride : 0;
    return {.fragment = plan_.fragment,
            .columns = static_cast<int>(geometry_.filter[kWidth]),
            .stride = static_cast<int>(stride),
            .dilation = static_cast<int>(geometry_.dilation[kWidth]),
            .line = static_cast<int>(geometry_.box[kWidth]),
            .lines = static_cast<int>(geometry_.box[kHeight]),
            .planes = geometry_.planes,
            .reversed = geometry_.tap_step[kWidth] != 0,
            .divides = geometry_.divides,
            .phase = static_cast<int>(phase)};
  }

  const Contraction& contraction_;
  const Schedule& schedule_;
  const ConvGeometry& geometry_;
  const BoxLoader boxes_;
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
