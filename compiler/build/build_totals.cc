// How the kernel builder writes the totals of a piece: added to the caller's where tiles may end in any order, else
// stored to the line that is the piece's own.
#include "compiler/build/kernel_builder.h"

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
  const Binding base = ir::EpilogueBase(piece.operand++);
  const bool sum = info.action == ir::StepAction::kSum;
  if (sum && terms_.orders_sums) return StoreTotal(b, base, axis, piece);
  b.Reduce(piece.Operands(), {.base = base,
                              .how = sum ? ir::Reduction::kSum : ir::Reduction::kAmax,
                              .axis = axis,
                              .rows = terms_.rows,
                              .gated = piece.gated,
                              .halves = HalvesOf(axis, piece)});
}

// Along the accumulator's rows a fragment is a unit, of the rows that it keeps; along its columns a tile is, in as many
// pieces as it is treated in.
void KernelBuilder::StoreTotal(Builder& b, Binding base, BiasAxis axis, const Piece& piece) const {
  const Axis along = axis == BiasAxis::kM ? Axis::kN : Axis::kM;
  ir::StoreTotalsAttrs attrs{.base = base,
                             .axis = axis,
                             .rows = terms_.rows,
                             .gated = piece.gated,
                             .halves = HalvesOf(axis, piece),
                             .unit = RowsOfWarp()};
  ValueId start = piece.own, number = ir::kNoValue;
  if (along == program_.row_axis) {
    number = b.Constant(0);
  } else {
    const int panel = staging_.panel;
    const auto pieces_of = [&](int columns) {
      return static_cast<int>(staging_.PiecesOf(columns, in_tensor_memory_).size());
    };
    attrs.unit = along == Axis::kM ? program_.TileRows() : schedule_.tile_n;
    attrs.pieces = program_.Columns() / panel * pieces_of(panel) + pieces_of(program_.Columns() % panel);
    start = piece.tile;
    number = b.Add({b.Mul({piece.panel, b.Constant(pieces_of(panel))}), b.Constant(piece.part)});
  }
  std::vector<ValueId> operands = piece.Operands();
  operands.insert(operands.end(), {start, number});
  b.StoreTotals(operands, attrs);
}

}  // namespace laneshift::compiler
