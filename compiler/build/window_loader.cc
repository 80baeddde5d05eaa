#include "compiler/build/window_loader.h"

namespace laneshift::compiler {

using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::ValueId;

MatrixOperand WindowOperandOf(const Contraction& contraction, const Schedule& schedule, Operand operand,
                              const target::Target& target) {
  MatrixOperand matrix = MatrixOperandOf(contraction, schedule, operand, target);
  if (operand == Operand::kB) matrix.tile.step = contraction.windows.block_columns;
  return matrix;
}

void WindowLoader::AddParams(std::vector<ir::Param>& params) const {
  params.push_back({ir::MapOf(matrix_.operand), matrix_.tile});
}

WindowLoader::Start WindowLoader::StartOf(Builder& b, const Corner& corner) const {
  if (matrix_.operand == Operand::kA) return {.element = corner.row};
  const ValueId lines = b.Constant(windows_.lines), spans = b.Constant(windows_.spans);
  const ValueId elements = b.Constant(windows_.elements);
  const ValueId window = b.Div({corner.column, elements});
  const ValueId run = b.Div({window, lines});
  Start start{.element = b.Mul({b.Rem({run, spans}), elements}), .line = b.Rem({window, lines})};
  if (dimensions_ == 3) start.plane = b.Mul({b.Div({run, spans}), b.ParamValue(Binding::kDilationD)});
  return start;
}

std::vector<ValueId> WindowLoader::BlockAt(Builder& b, ValueId number) const {
  const ValueId width = b.Constant(windows_.block_columns), height = b.Constant(windows_.block_rows);
  const ValueId columns = b.CeilDiv({b.ParamValue(Binding::kOutQ), width});
  const ValueId rows = b.Div({b.ParamValue(Binding::kOutP), height});
  std::vector<ValueId> at = {b.Mul({b.Rem({number, columns}), width})};
  number = b.Div({number, columns});
  at.push_back(b.Mul({b.Rem({number, rows}), height}));
  number = b.Div({number, rows});
  if (dimensions_ == 3) {
    at.push_back(b.Rem({number, b.ParamValue(Binding::kOutO)}));
    number = b.Div({number, b.ParamValue(Binding::kOutO)});
  }
  at.push_back(number);
  return at;
}

OperandLoader::LoadBlock WindowLoader::StartTile(Builder& b, const Corner& corner) const {
  return [this, start = StartOf(b, corner)](Builder& into, ValueId slot, const KBlock& block, int) {
    std::vector<ValueId> operands = {slot, start.element};
    std::vector<ValueId> at = BlockAt(into, block.number);
    if (matrix_.operand == Operand::kB) {
      at[1] = into.Add({at[1], start.line});
      if (dimensions_ == 3) {
        const ValueId first = into.Mul({at[2], into.ParamValue(Binding::kConvStrideD)});
        at[2] = into.Sub({into.Add({first, start.plane}), into.ParamValue(Binding::kPadD)});
      }
    }
    operands.insert(operands.end(), at.begin(), at.end());
    into.LoadPixels(operands, {.tile = target().tile, .map = ir::MapOf(matrix_.operand), .block = true});
  };
}

}  // namespace laneshift::compiler
