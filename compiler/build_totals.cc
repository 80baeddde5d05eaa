// How the kernel builder writes the totals of a piece: added to the caller's where tiles may end in any order, else
// stored to the line that is the piece's own.
#include "compiler/kernel_builder.h"

namespace laneshift::compiler {

using ir::Axis;
using ir::Binding;
using ir::Builder;
using ir::ValueId;

void KernelBuilder::WriteTotal(Builder& b, const EpilogueStep& step, Piece& piece) const {
  const ir::StepInfo& info = ir::InfoOf(step.kind);
  const BiasAxis axis = info.operand == ir::StepOperand::kRowTotal      ? BiasAxis::kM
                        : info.operand == ir::StepOperand::kColumnTotal ? BiasAxis::kN
                                                                        : BiasAxis::kNone;
  const bool sum = info.action == ir::StepAction::kSum;
  const ir::ReduceAttrs attrs{.base = ir::EpilogueBase(piece.operand++),
                              .how = sum ? ir::Reduction::kSum : ir::Reduction::kAmax,
                              .axis = axis,
                              .rows = terms_.rows,
                              .gated = piece.gated ? 1 : 0,
                              .halves = HalvesOf(axis, piece)};
  if (!sum || !terms_.orders_sums) {
    b.Reduce(piece.Operands(), attrs);
    return;
  }
  const auto [line, lines] = LineOf(b, axis == BiasAxis::kM ? Axis::kN : Axis::kM, piece);
  std::vector<ValueId> operands = piece.Operands();
  operands.insert(operands.end(), {line, lines});
  b.StoreTotals(operands, attrs);
}

// Along the accumulator's rows lines are counted by fragments, which begin at multiples of the rows that they keep;
// along its columns by tiles, and the pieces of a tile: those outside of D have lines, too, where their tile begins
// inside.
KernelBuilder::Line KernelBuilder::LineOf(Builder& b, Axis along, const Piece& piece) const {
  const ValueId extent = b.ParamValue(along == Axis::kM ? Binding::kM : Binding::kN);
  if (along == program_.row_axis) {
    const ValueId rows = b.Constant(RowsOfWarp());
    return {b.Div({piece.own, rows}), b.CeilDiv({extent, rows})};
  }
  const int panel = staging_.panel, whole = program_.Columns() / panel, rest = program_.Columns() % panel;
  const auto pieces_of = [&](int columns) {
    return static_cast<int>(staging_.PiecesOf(columns, in_tensor_memory_).size());
  };
  const ValueId of_panel = b.Constant(pieces_of(panel));
  const ValueId of_tile = b.Constant(whole * pieces_of(panel) + pieces_of(rest));
  const ValueId tile = b.Constant(along == Axis::kM ? program_.TileRows() : schedule_.tile_n);
  const ValueId before = b.Mul({b.Div({piece.tile, tile}), of_tile});
  const ValueId in_tile = b.Add({b.Mul({piece.panel, of_panel}), b.Constant(piece.part)});
  return {b.Add({before, in_tile}), b.Mul({b.CeilDiv({extent, tile}), of_tile})};
}

}  // namespace laneshift::compiler
