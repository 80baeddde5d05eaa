#include "compiler/build/piece_steps.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "ir/element_type.h"

namespace laneshift::compiler {

using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::ValueId;

namespace {

// What lies along D's rows or columns, or is one value.
BiasAxis AxisOf(ir::StepOperand operand) {
  switch (operand) {
    case ir::StepOperand::kRowVector:
    case ir::StepOperand::kRowTotal:
      return BiasAxis::kM;
    case ir::StepOperand::kColumnVector:
    case ir::StepOperand::kColumnTotal:
      return BiasAxis::kN;
    case ir::StepOperand::kNone:
    case ir::StepOperand::kMatrix:
    case ir::StepOperand::kOutput:
    case ir::StepOperand::kBlocks:
    case ir::StepOperand::kTotal:
    case ir::StepOperand::kTable:
      return BiasAxis::kNone;
  }
  return BiasAxis::kNone;
}

void JoinColumns(Builder& b, Piece& piece) {
  piece.column = b.Div({piece.column, b.Constant(2)});
  piece.gated = true;
}

ValueId ScaleBy(Builder& b, ValueId fragment, ValueId scale) {
  return scale == ir::kNoValue ? fragment : b.ScaleBy({fragment, scale});
}

ir::ProgramFunction FunctionOf(const FunctionCall& call, DataType d) {
  ir::ProgramFunction function{.name = call.name, .digest = call.digest, .joins_pairs = call.joins_pairs, .inputs = {}};
  // "ns::Swish<2>" has to be an identifier of PTX.
  for (char& c : function.name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain) c = '_';
  }
  for (const FunctionParameter& parameter : call.parameters) {
    const bool number = parameter.operand == FunctionOperand::kNumber;
    function.inputs.push_back({.kind = parameter.operand,
                               .type = number ? DataType::kF32 : parameter.type.value_or(ir::AddendType(d)),
                               .count = static_cast<int>(parameter.count)});
  }
  return function;
}

// Of the program's functions the one that the call is of.
int IndexOf(const std::vector<ir::ProgramFunction>& functions, const FunctionCall& call) {
  const auto same = [&](const ir::ProgramFunction& function) { return function.digest == call.digest; };
  return static_cast<int>(std::find_if(functions.begin(), functions.end(), same) - functions.begin());
}

// Once for all calls; functions of one name, which come from several sources, are distinguished by a number.
void DeclareFunction(const FunctionCall& call, DataType d, std::vector<ir::ProgramFunction>& functions) {
  if (static_cast<size_t>(IndexOf(functions, call)) < functions.size()) return;
  ir::ProgramFunction function = FunctionOf(call, d);
  const auto taken = [&](const ir::ProgramFunction& other) { return other.name == function.name; };
  if (std::any_of(functions.begin(), functions.end(), taken)) {
    function.name += "_" + std::to_string(functions.size());
  }
  functions.push_back(std::move(function));
}

}  // namespace

void AddScaleParams(const EpilogueTerms& terms, std::vector<ir::Param>& params) {
  if (terms.scale == Scaling::kNone) return;
  if (terms.scale != Scaling::kMx)
    params.insert(params.end(), {{Binding::kBaseScaleA, {}}, {Binding::kBaseScaleB, {}}});
  if (DataTypeBytes(terms.type) == 1) params.push_back({Binding::kBaseScaleD, {}});
}

void DeclareSteps(const EpilogueTerms& terms, ir::Program& program) {
  int operand = 0, number = 0;
  for (const EpilogueStep& step : terms.steps) {
    for (size_t i = 0; i < ir::TensorsOf(step, terms.type).size(); ++i) {
      program.params.push_back({ir::EpilogueBase(operand++), {}});
    }
    for (size_t i = 0; i < ir::NumbersOf(step).size(); ++i) {
      program.params.push_back({ir::EpilogueNumber(number++), {}});
    }
    if (step.function) DeclareFunction(*step.function, terms.type, program.functions);
  }
  if (ir::IsGated(terms.steps)) program.params.push_back({Binding::kColumns, {}});
}

TensorScales PieceSteps::LoadTensorScales(Builder& b) const {
  TensorScales scales;
  if (terms_.scale == Scaling::kTensor) {
    scales.a = b.LoadFactor({}, {.binding = Binding::kBaseScaleA});
    scales.b = b.LoadFactor({}, {.binding = Binding::kBaseScaleB});
  }
  if (terms_.scale != Scaling::kNone && DataTypeBytes(terms_.type) == 1) {
    scales.d = b.LoadFactor({}, {.binding = Binding::kBaseScaleD});
  }
  return scales;
}

void PieceSteps::Write(Builder& b, Piece& piece, const TensorScales& scales) const {
  if (terms_.StoresAccumulator()) return;
  if (ir::IsInteger(terms_.accumulator)) piece.fragment = b.ToF32({piece.fragment});
  piece.fragment = b.Scale({piece.fragment}, {.binding = Binding::kAlpha});
  piece.fragment = ScaleBy(b, piece.fragment, scales.a);
  piece.fragment = ScaleBy(b, piece.fragment, scales.b);
  if (terms_.adds_c) {
    const ir::GlobalAttrs c = AccessOf(Operand::kC, piece.columns);
    piece.fragment = b.CombineMatrix(
        piece.Operands(),
        {.base = c.base, .operand = c.operand, .type = c.type, .vector = c.vector, .rows = c.rows, .beta = true});
  }
  if (terms_.bias != BiasAxis::kNone) {
    piece.fragment = b.CombineVector(piece.Operands(), {.axis = terms_.bias,
                                                        .type = ir::AddendType(terms_.type),
                                                        .rows = terms_.rows,
                                                        .halves = HalvesOf(terms_.bias, piece)});
  }
  for (const EpilogueStep& step : terms_.steps) WriteStep(b, step, piece);
  piece.fragment = ScaleBy(b, piece.fragment, scales.d);
}

void PieceSteps::WriteStep(Builder& b, const EpilogueStep& step, Piece& piece) const {
  const ir::StepInfo& info = ir::InfoOf(step.kind);
  if (info.action == ir::StepAction::kCall) return WriteCall(b, step, piece);
  if (info.operand == ir::StepOperand::kNone) return WriteFunction(b, step, piece);
  if (ir::IsTotal(info.operand)) return Reduce(b, step, piece);
  if (ir::IsMatrix(info.operand)) return PassMatrix(b, step, piece);
  CombineVector(b, step, piece);
}

void PieceSteps::WriteCall(Builder& b, const EpilogueStep& step, Piece& piece) const {
  const int operand = piece.operand, number = piece.number;
  // Operands of a gated linear unit lie as D does.
  if (ir::JoinsPairs(step)) JoinColumns(b, piece);
  piece.operand += static_cast<int>(ir::TensorsOf(step, terms_.type).size());
  piece.number += static_cast<int>(ir::NumbersOf(step).size());
  piece.fragment = b.Call(piece.Operands(), {.function = IndexOf(program_.functions, *step.function),
                                             .operand = operand,
                                             .number = number,
                                             .vector = AccessOf(Operand::kD, piece.columns).vector,
                                             .rows = terms_.rows,
                                             .gated = piece.gated,
                                             .halves = HalvesOf(BiasAxis::kN, piece)});
}

// A step of no operand.
void PieceSteps::WriteFunction(Builder& b, const EpilogueStep& step, Piece& piece) const {
  const ir::StepInfo& info = ir::InfoOf(step.kind);
  const int number = info.numbers > 0 ? piece.number : 0;
  const bool approximate = !terms_.KeepsF32();
  piece.number += info.numbers;
  if (info.action == ir::StepAction::kMultiply) {
    piece.fragment = b.Scale({piece.fragment}, {.binding = ir::EpilogueNumber(number)});
  } else if (info.action == ir::StepAction::kGate) {
    piece.fragment = b.Gate({piece.fragment}, {.function = info.function, .approximate = approximate});
    JoinColumns(b, piece);
  } else {
    const ir::Function cut = terms_.type == DataType::kBf16 ? ir::Function::kCutBf16 : ir::Function::kCutF16;
    piece.fragment = b.Map({piece.fragment}, {.function = info.action == ir::StepAction::kCut ? cut : info.function,
                                              .number = number,
                                              .approximate = approximate});
  }
}

void PieceSteps::CombineVector(Builder& b, const EpilogueStep& step, Piece& piece) const {
  const ir::StepInfo& info = ir::InfoOf(step.kind);
  const BiasAxis axis = AxisOf(info.operand);
  const bool adds = info.action == ir::StepAction::kAdd;
  piece.fragment = b.CombineVector(piece.Operands(), {.base = ir::EpilogueBase(piece.operand++),
                                                      .how = adds ? ir::Combine::kAdd : ir::Combine::kMultiply,
                                                      .axis = axis,
                                                      .type = ir::OperandTypeOf(step, terms_.type),
                                                      .rows = terms_.rows,
                                                      .blocks = axis == BiasAxis::kNone,
                                                      .gated = piece.gated,
                                                      .halves = HalvesOf(axis, piece)});
}

// Combines the piece with a matrix that lies as D does, or stores it to one.
void PieceSteps::PassMatrix(Builder& b, const EpilogueStep& step, Piece& piece) const {
  const ir::StepInfo& info = ir::InfoOf(step.kind);
  const Binding base = ir::EpilogueBase(piece.operand++);
  const DataType type = ir::OperandTypeOf(step, terms_.type);
  const int number = info.numbers > 0 ? piece.number : 0;
  piece.number += info.numbers;
  const ir::GlobalAttrs access = StepAccess(base, type, piece.columns);
  if (info.operand == ir::StepOperand::kOutput) {
    b.GlobalStore(piece.Operands(), access);
    return;
  }
  const bool adds = info.action == ir::StepAction::kAdd;
  piece.fragment = b.CombineMatrix(piece.Operands(), {.base = base,
                                                      .how = adds ? ir::Combine::kAdd : ir::Combine::kMultiply,
                                                      .operand = access.operand,
                                                      .type = type,
                                                      .vector = access.vector,
                                                      .rows = terms_.rows,
                                                      .derivative = info.function,
                                                      .number = number});
}

// Added to the caller's values where tiles may end in any order, else stored to the line that is the piece's own.
void PieceSteps::Reduce(Builder& b, const EpilogueStep& step, Piece& piece) const {
  const ir::StepInfo& info = ir::InfoOf(step.kind);
  const BiasAxis axis = AxisOf(info.operand);
  const Binding base = ir::EpilogueBase(piece.operand++);
  const bool sum = info.action == ir::StepAction::kSum;
  if (sum && terms_.orders_sums) return StorePartials(b, base, axis, piece);
  b.Reduce(piece.Operands(), {.base = base,
                              .how = sum ? ir::Reduction::kSum : ir::Reduction::kAmax,
                              .axis = axis,
                              .rows = terms_.rows,
                              .gated = piece.gated,
                              .halves = HalvesOf(axis, piece)});
}

// Along the accumulator's rows a fragment is a unit, of the rows that it keeps; along its columns a tile is, in as many
// pieces as it is treated in.
void PieceSteps::StorePartials(Builder& b, Binding base, BiasAxis axis, const Piece& piece) const {
  using ir::Axis;
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
    const int panel = plan_.staging.panel;
    const auto pieces_of = [&](int columns) { return static_cast<int>(plan_.PiecesOf(columns).size()); };
    attrs.unit = along == Axis::kM ? program_.TileRows() : program_.tile_n;
    attrs.pieces = plan_.columns / panel * pieces_of(panel) + pieces_of(plan_.columns % panel);
    start = piece.tile;
    number = b.Add({b.Mul({piece.panel, b.Constant(pieces_of(panel))}), b.Constant(piece.part)});
  }
  std::vector<ValueId> operands = piece.Operands();
  operands.insert(operands.end(), {start, number});
  b.StoreTotals(operands, attrs);
}

int PieceSteps::RowsOfWarp() const {
  const int rows = plan_.rows_along_n || program_.kept_rows == 0 ? program_.Rows() : program_.kept_rows;
  return rows / plan_.blocks / plan_.warps;
}

ir::GlobalAttrs PieceSteps::AccessOf(Operand operand, int columns) const {
  const bool joined = operand == Operand::kD && ir::IsGated(terms_.steps);
  const int run = plan_.rows_along_n ? 1 : ir::FragmentLayout{plan_.fragment, joined ? columns / 2 : columns}.Run();
  return {.operand = operand,
          .base = ir::BaseOf(operand),
          .type = operand == Operand::kC ? terms_.c_type : terms_.type,
          .vector = std::gcd(output_.AccessWidthOf(operand, run), run),
          .rows = terms_.rows};
}

// As wide as D's accesses, within 16 bytes: the matrix begins at a multiple of those, and its runs are D's.
ir::GlobalAttrs PieceSteps::StepAccess(Binding base, DataType type, int columns) const {
  ir::GlobalAttrs access = AccessOf(Operand::kD, columns);
  access.base = base;
  access.type = type;
  access.vector = std::min(access.vector, static_cast<int>(16 / DataTypeBytes(type)));
  return access;
}

}  // namespace laneshift::compiler
