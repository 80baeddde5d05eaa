// The gradient of the filters of a depthwise convolution on CUDA cores. One role brings boxes of positions, gradients
// of y and the pixels of x under them; the warps of another have rows of the filter, go through the positions and leave
// their sums in shared memory; those of the third add the copies of a sum, and partial sums of other CTAs, in a fixed
// order, and store them as any epilogue does.
#include <utility>

#include "base/integer_math.h"
#include "compiler/build/box_loader.h"
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

constexpr int kPositions = 0, kSums = 1;  // channels
constexpr int kSumsStages = 2;            // so that a tile's sums are stored while those of the next one are computed

class DirectGradientKernel {
 public:
  // REQUIRES: all outlive the kernel.
  DirectGradientKernel(const Contraction& contraction, const Schedule& schedule, const target::Target& target)
      : contraction_(contraction),
        schedule_(schedule),
        boxes_(contraction),
        terms_(TermsOf(contraction, ir::RowMap::kFilters, target)),
        output_(contraction, true),
        plan_(PlanOf(schedule)),
        gradient_(AttrsOf(contraction.geometry, schedule)),
        warps_(ir::kWarpgroupWarps * schedule.math_warpgroups),
        k_{.tile_k = schedule.tile_k},
        steps_(terms_, plan_, program_, output_) {
    program_ = ProgramOfTile("depthwise_gradient", schedule, contraction.a.type(), target);
    program_.threads = 32 * (kEpilogueWarp + warps_ + plan_.warps);
  }

  ir::Program Write() && {
    program_.channels = {
        {.name = "xy",
         .stages = schedule_.stages,
         .tiles = {{"y", PixelsOf(Operand::kA)}, {"x", PixelsOf(Operand::kB)}}},
        {.name = "sums", .stages = kSumsStages, .tiles = {{"w", SumsTile()}}},
    };
    DeclareParams();
    const DirectGradientRegisters registers = DirectGradientRegistersOf(schedule_);
    AddRole(program_,
            {.name = "load",
             .kind = RoleKind::kLoad,
             .first_warp = kLoadWarp,
             .warps = 1,
             .elected = true,
             .registers = registers.load},
            [this](Builder& b) { LoadTiles(b); });
    AddRole(program_,
            {.name = "sum",
             .kind = RoleKind::kCopy,
             .first_warp = kEpilogueWarp,
             .warps = warps_,
             .registers = registers.sum},
            [this](Builder& b) { MultiplyTiles(b); });
    AddRole(program_,
            {.name = "epilogue",
             .kind = RoleKind::kEpilogue,
             .first_warp = kEpilogueWarp + warps_,
             .warps = plan_.warps,
             .registers = registers.epilogue},
            [this](Builder& b) {
              const SumsEpilogue epilogue{plan_, terms_,   steps_,
                                          kSums, Copies(), contraction_.AddsSlicesApart(schedule_)};
              epilogue.StoreTiles(b, Tiles());
            });
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

  static ir::DepthwiseGradientAttrs AttrsOf(const ConvGeometry& geometry, const Schedule& schedule) {
    const int rows = DirectGradientRows(geometry, schedule);
    const int64_t all = geometry.filter[kDepth] * geometry.filter[kHeight];
    return {.run = geometry.direct_run,
            .columns = static_cast<int>(geometry.filter[kWidth]),
            .stride = static_cast<int>(geometry.stride[kWidth]),
            .dilation = static_cast<int>(geometry.dilation[kWidth]),
            .outputs = static_cast<int>(geometry.outputs_of_box[kWidth]),
            .line = static_cast<int>(geometry.box[kWidth]),
            .lines = static_cast<int>(geometry.box[kHeight]),
            .rows = rows,
            .groups = static_cast<int>(base::CeilDiv(all, rows)),
            .planes = geometry.planes,
            .whole = geometry.output[kWidth] % geometry.direct_run == 0};
  }

  int Copies() const { return gradient_.Copies(warps_); }

  ir::SharedLayout PixelsOf(Operand operand) const { return boxes_.TileOf(operand, schedule_.tile_m); }
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
    params.insert(params.end(), {{Binding::kMapA, PixelsOf(Operand::kA)}, {Binding::kMapB, PixelsOf(Operand::kB)}});
    params.push_back({Binding::kBaseD, {}});
    output_.AddPitches(Operand::kD, params);
    DeclareEpilogue(terms_, output_, program_);
    if (schedule_.split_k > 1) params.push_back({Binding::kWorkspace, {}});
  }

  TileLoop Tiles() const { return TilesOfSums(program_, schedule_, k_); }

  // Calls `write(pass)` for each pass over a tile's positions.
  void ForEachPass(Builder& b, const std::function<void(ValueId)>& write) const {
    const int passes = gradient_.Passes(warps_);
    if (passes == 1) return write(b.Constant(0));
    ForEach(b, b.Constant(passes), write);
  }

  // A box is a block of K.
  void LoadTiles(Builder& b) const {
    Tiles().ForEachCorner(b, [&](const Corner& corner) {
      ForEachPass(b, [&](ValueId) {
        k_.ForEachNumber(b, corner, [&](ValueId number) {
          const std::vector<ValueId> first = boxes_.FirstOutput(b, number);
          const ValueId slot = b.Put({}, {.channel = kPositions});
          boxes_.Load(b, Operand::kA, slot, 0, corner.row, first);
          boxes_.Load(b, Operand::kB, slot, 1, corner.row, first);
          b.Send({slot});
        });
      });
    });
  }

  void MultiplyTiles(Builder& b) const {
    Tiles().ForEachCorner(b, [&](const Corner& corner) {
      const ValueId sums = b.Put({}, {.channel = kSums});
      ForEachPass(b, [&](ValueId pass) {
        b.ClearTaps({}, gradient_);
        k_.ForEachNumber(b, corner, [&](ValueId number) {
          const std::vector<ValueId> first = boxes_.FirstOutput(b, number);
          const ValueId columns = b.Sub({b.ParamValue(Binding::kOutQ), first[0]});
          const ValueId lines = b.Sub({b.ParamValue(Binding::kOutP), first[1]});
          const ValueId slot = b.Take({}, {.channel = kPositions});
          b.AddTaps({slot, columns, lines, pass}, gradient_);
          b.Release({slot});
        });
        b.StoreTaps({sums, pass}, gradient_);
      });
      b.Send({sums});
    });
  }

  const Contraction& contraction_;
  const Schedule& schedule_;
  const BoxLoader boxes_;
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
