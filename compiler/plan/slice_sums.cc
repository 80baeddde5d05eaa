#include "compiler/plan/slice_sums.h"

#include <memory>

#include "compiler/build/filter_output.h"
#include "compiler/build/kernel_frame.h"
#include "compiler/build/matrix_output.h"
#include "compiler/build/subtile_steps.h"
#include "compiler/build/sums_epilogue.h"
#include "compiler/emit/plain_kernel.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::RoleKind;
using ir::ValueId;

constexpr int kPieceColumns = 8;  // of an accumulator: whole quads of registers (ir::WorkspaceLayout)

class SliceSums {
 public:
  // REQUIRES: all outlive the kernel.
  SliceSums(const Contraction& contraction, const Schedule& schedule, const target::Target& target)
      : schedule_(schedule),
        terms_(TermsOf(contraction, RowsOf(contraction), target)),
        output_(OutputOf(contraction)),
        program_(DeclareProgram(contraction, schedule, target)),
        plan_(PlanOf(program_, schedule, target)),
        k_{.tile_k = schedule.tile_k},
        steps_(terms_, plan_, program_, *output_) {}

  ir::Program Write() && {
    DeclareParams();
    // Two warpgroups begin after the first one.
    const int first = plan_.warps > ir::kWarpgroupWarps ? ir::kWarpgroupWarps : 0;
    program_.threads = 32 * (first + plan_.warps);
    const bool apart = plan_.in_tensor_memory || schedule_.reuse == Reuse::kDirect;  // from what multiplies
    const RoleKind kind = apart ? RoleKind::kEpilogue : RoleKind::kMath;
    AddRole(program_, {.name = "sum", .kind = kind, .first_warp = first, .warps = plan_.warps},
            [this](Builder& b) { AddTiles(b); });
    return std::move(program_);
  }

 private:
  static ir::RowMap RowsOf(const Contraction& contraction) {
    return contraction.d.kind == SourceKind::kMatrix ? ir::RowMap::kMatrix : ir::RowMap::kFilters;
  }
  static std::unique_ptr<OutputTensor> OutputOf(const Contraction& contraction) {
    if (contraction.d.kind == SourceKind::kMatrix) return std::make_unique<MatrixOutput>(contraction);
    return std::make_unique<FilterOutput>(contraction, false);
  }
  static ir::Program DeclareProgram(const Contraction& contraction, const Schedule& schedule,
                                    const target::Target& target) {
    ir::Program program = ProgramOfTile("slice_sums", schedule, contraction.a.type(), target);
    program.row_axis = schedule.rows == RowSide::kM ? ir::Axis::kM : ir::Axis::kN;
    program.cluster_m = schedule.cluster_m;
    program.cluster_n = schedule.cluster_n;
    program.ctas = schedule.ctas;
    program.diagonal_blocks = static_cast<int>(contraction.merged);
    program.saturates = contraction.sum == SumPrecision::kSaturate;
    NameWindows(contraction.windows, program);
    return program;
  }

  static CtaPlan PlanOf(const ir::Program& program, const Schedule& schedule, const target::Target& target) {
    CtaPlan plan;
    plan.columns = program.Columns();
    plan.staging.panel = plan.staging.subtile = kPieceColumns;
    if (schedule.reuse == Reuse::kDirect) {
      plan.warps = ir::kWarpgroupWarps;
      plan.fragment = ir::FragmentKind::kMma16x8;
      return plan;
    }
    plan.in_tensor_memory = target.mma.AccumulatesInTensorMemory();
    plan.rows_along_n = schedule.rows == RowSide::kN;
    plan.warps = ir::kWarpgroupWarps * schedule.math_warpgroups;
    if (!plan.in_tensor_memory) plan.blocks = program.Rows() / (kWarpRows * plan.warps);
    plan.fragment = ir::AccumulatorFragment(program.Rows() / plan.blocks / schedule.math_warpgroups);
    return plan;
  }

  void DeclareParams() {
    program_.params.push_back({Binding::kBaseD, {}});
    output_->AddPitches(Operand::kD, program_.params);
    DeclareEpilogue(terms_, *output_, program_);
    program_.params.push_back({Binding::kWorkspace, {}});
  }

  void AddTiles(Builder& b) const {
    const TensorScales scales = steps_.LoadTensorScales(b);
    TilesOfSums(program_, schedule_, k_).ForEachCorner(b, [&](const Corner& corner) {
      b.If({b.Less({b.Constant(1), corner.slices})});
      b.InBody([&] { AddPieces(b, corner, scales); });
    });
  }

  // Pieces of what each warp held, in turn to the first warp of each CTA, then to the second one of each.
  void AddPieces(Builder& b, const Corner& corner, const TensorScales& scales) const {
    const ValueId pieces = b.Constant(plan_.warps * plan_.blocks * plan_.columns / kPieceColumns);
    const ValueId rows = b.Constant(steps_.RowsOfWarp());
    const ValueId warp = b.Div({b.WarpRow({}, {.rows = steps_.RowsOfWarp()}), rows});
    const ValueId first = b.Add({b.Mul({warp, corner.slices}), corner.slice});
    const ValueId step = b.Mul({b.Constant(plan_.warps), corner.slices});
    b.If({b.Less({first, pieces})});
    b.InBody([&] {
      ForEach(b, b.CeilDiv({b.Sub({pieces, first}), step}), [&](ValueId i) {
        AddPiece(b, corner, b.Add({first, b.Mul({i, step})}), scales);
      });
    });
  }

  void AddPiece(Builder& b, const Corner& corner, ValueId number, const TensorScales& scales) const {
    const bool along_n = plan_.rows_along_n;
    const ValueId warps = b.Constant(plan_.warps), width = b.Constant(kPieceColumns);
    const ValueId warp = b.Rem({number, warps}), column = b.Mul({b.Div({number, warps}), width});
    const ValueId columns = b.Constant(plan_.columns), all = b.Constant(plan_.blocks * plan_.columns);
    const ValueId total =
        b.PartialTotal({b.Add({b.Mul({warp, all}), column}), b.Mul({corner.number, corner.slices}), corner.slices},
                       {.columns = kPieceColumns, .fragment = plan_.fragment});
    // Rows of the warps of one block, then of the next one.
    const ValueId block = b.Div({column, columns});
    const ValueId row = b.Mul({b.Add({b.Mul({block, warps}), warp}), b.Constant(steps_.RowsOfWarp())});
    const ValueId own = b.Add({along_n ? corner.column : corner.row, row});
    const ValueId tile = along_n ? corner.row : corner.column;
    const ValueId first = b.Add({tile, b.Rem({column, columns})});
    Subtile subtile{.fragment = total,
                    .row = along_n ? first : own,
                    .column = along_n ? own : first,
                    .batch = corner.batch,
                    .columns = kPieceColumns};
    subtile.own = own;
    subtile.tile = tile;
    steps_.Write(b, subtile, scales);
    b.GlobalStore(subtile.Operands(), steps_.AccessOf(Operand::kD, kPieceColumns));
  }

  const Schedule& schedule_;
  const EpilogueTerms terms_;
  const std::unique_ptr<OutputTensor> output_;
  ir::Program program_;
  const CtaPlan plan_;
  const KLoop k_;
  const SubtileSteps steps_;
};

}  // namespace

Result<ir::Program> BuildSliceSums(const Contraction& contraction, const Schedule& schedule,
                                   const target::Target& target) {
  return LowerProgram(SliceSums(contraction, schedule, target).Write(), target);
}

}  // namespace laneshift::compiler
