// How the kernel builder writes the epilogue: what happens to a piece of the tile between its sums and D.
#include <algorithm>
#include <numeric>

#include "compiler/build/kernel_builder.h"
#include "ir/element_type.h"

namespace laneshift::compiler {

using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::ValueId;

// The factors of whole tensors, once for all tiles.
void KernelBuilder::LoadTensorFactors(Builder& b) {
  factors_.clear();
  if (terms_.scale == Scaling::kNone) return;
  for (const Binding binding : {Binding::kBaseScaleA, Binding::kBaseScaleB, Binding::kBaseScaleD}) {
    const bool of_sum = binding != Binding::kBaseScaleD;
    if (of_sum ? terms_.scale != Scaling::kTensor : program_.FindParam(binding) == nullptr) continue;
    factors_[binding] = b.LoadFactor({}, {.binding = binding});
  }
}

ValueId KernelBuilder::ScaleByPointer(Builder& b, ValueId fragment, Binding binding) const {
  const auto factor = factors_.find(binding);
  return factor == factors_.end() ? fragment : b.ScaleBy({fragment, factor->second});
}

// steps(alpha * factors * accumulator + beta * C + bias) * factor of D.
void KernelBuilder::Finish(Builder& b, Piece& piece) const {
  piece.fragment = b.Scale({piece.fragment}, {.binding = Binding::kAlpha});
  piece.fragment = ScaleByPointer(b, piece.fragment, Binding::kBaseScaleA);
  piece.fragment = ScaleByPointer(b, piece.fragment, Binding::kBaseScaleB);
  if (terms_.adds_c) {
    const ir::GlobalAttrs c = GlobalAccess(Operand::kC, piece.columns);
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
  piece.fragment = ScaleByPointer(b, piece.fragment, Binding::kBaseScaleD);
}

void KernelBuilder::WriteStep(Builder& b, const EpilogueStep& step, Piece& piece) const {
  const ir::StepInfo& info = ir::InfoOf(step.kind);
  if (info.action == ir::StepAction::kCall) {
    const int operand = piece.operand, number = piece.number;
    // Operands of a function that joins pairs lie as D does.
    if (ir::JoinsPairs(step)) PassGate(b, piece);
    piece.operand += static_cast<int>(ir::TensorsOf(step, terms_.type).size());
    piece.number += static_cast<int>(ir::NumbersOf(step).size());
    piece.fragment = b.Call(piece.Operands(), {.function = IndexOf(*step.function),
                                               .operand = operand,
                                               .number = number,
                                               .vector = GlobalAccess(Operand::kD, piece.columns).vector,
                                               .rows = terms_.rows,
                                               .gated = piece.gated,
                                               .halves = HalvesOf(BiasAxis::kN, piece)});
    return;
  }
  if (info.operand == ir::StepOperand::kNone) return WriteFunction(b, step, piece);
  if (ir::IsTotal(info.operand)) return WriteTotal(b, step, piece);
  const Binding base = ir::EpilogueBase(piece.operand++);
  const DataType type = ir::OperandTypeOf(step, terms_.type);
  const ir::Combine how = info.action == ir::StepAction::kAdd ? ir::Combine::kAdd : ir::Combine::kMultiply;
  if (!ir::IsMatrix(info.operand)) {
    const BiasAxis axis = info.operand == ir::StepOperand::kRowVector      ? BiasAxis::kM
                          : info.operand == ir::StepOperand::kColumnVector ? BiasAxis::kN
                                                                           : BiasAxis::kNone;
    piece.fragment = b.CombineVector(piece.Operands(), {.base = base,
                                                        .how = how,
                                                        .axis = axis,
                                                        .type = type,
                                                        .rows = terms_.rows,
                                                        .blocks = axis == BiasAxis::kNone,
                                                        .gated = piece.gated,
                                                        .halves = HalvesOf(axis, piece)});
    return;
  }
  const int number = info.numbers > 0 ? piece.number : 0;
  piece.number += info.numbers;
  const ir::GlobalAttrs access = StepAccess(base, type, piece.columns);
  if (info.operand == ir::StepOperand::kOutput) {
    b.GlobalStore(piece.Operands(), access);
    return;
  }
  piece.fragment = b.CombineMatrix(piece.Operands(), {.base = base,
                                                      .how = how,
                                                      .operand = access.operand,
                                                      .type = type,
                                                      .vector = access.vector,
                                                      .rows = terms_.rows,
                                                      .derivative = info.function,
                                                      .number = number});
}

void KernelBuilder::PassGate(Builder& b, Piece& piece) {
  piece.column = b.Div({piece.column, b.Constant(2)});
  piece.gated = true;
}

// A step of no operand.
void KernelBuilder::WriteFunction(Builder& b, const EpilogueStep& step, Piece& piece) const {
  const ir::StepInfo& info = ir::InfoOf(step.kind);
  const int number = info.numbers > 0 ? piece.number : 0;
  const bool approximate = !terms_.KeepsF32();
  piece.number += info.numbers;
  if (info.action == ir::StepAction::kMultiply) {
    piece.fragment = b.Scale({piece.fragment}, {.binding = ir::EpilogueNumber(number)});
  } else if (info.action == ir::StepAction::kGate) {
    piece.fragment = b.Gate({piece.fragment}, {.function = info.function, .approximate = approximate});
    PassGate(b, piece);
  } else {
    const ir::Function cut = terms_.type == DataType::kBf16 ? ir::Function::kCutBf16 : ir::Function::kCutF16;
    piece.fragment = b.Map({piece.fragment}, {.function = info.action == ir::StepAction::kCut ? cut : info.function,
                                              .number = number,
                                              .approximate = approximate});
  }
}

namespace {

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

}  // namespace

int KernelBuilder::IndexOf(const FunctionCall& call) const {
  const auto& functions = program_.functions;
  const auto same = [&](const ir::ProgramFunction& function) { return function.digest == call.digest; };
  return static_cast<int>(std::find_if(functions.begin(), functions.end(), same) - functions.begin());
}

// Once for all calls; functions of one name, which come from several sources, are told apart by a number.
void KernelBuilder::AddFunction(const FunctionCall& call) {
  auto& functions = program_.functions;
  if (static_cast<size_t>(IndexOf(call)) < functions.size()) return;
  ir::ProgramFunction function = FunctionOf(call, terms_.type);
  const auto taken = [&](const ir::ProgramFunction& other) { return other.name == function.name; };
  if (std::any_of(functions.begin(), functions.end(), taken)) {
    function.name += "_" + std::to_string(functions.size());
  }
  functions.push_back(std::move(function));
}

void KernelBuilder::AddEpilogueParams() {
  int operand = 0, number = 0;
  for (const EpilogueStep& step : terms_.steps) {
    for (size_t i = 0; i < ir::TensorsOf(step, terms_.type).size(); ++i) AddParam(ir::EpilogueBase(operand++));
    for (size_t i = 0; i < ir::NumbersOf(step).size(); ++i) AddParam(ir::EpilogueNumber(number++));
    if (step.function) AddFunction(*step.function);
  }
  if (ir::IsGated(terms_.steps)) AddParam(Binding::kColumns);
}

bool EpilogueTerms::HasMatrices() const {
  // A user's function is not run outside of D, and so has to know where that is.
  return std::any_of(steps.begin(), steps.end(), [](const EpilogueStep& step) {
    const ir::StepOperand operand = ir::InfoOf(step.kind).operand;
    // Totals skip the rows that D has not, and users' functions are not run there: they need to know where those are.
    return ir::IsMatrix(operand) || ir::IsTotal(operand) || step.function;
  });
}

bool EpilogueTerms::KeepsF32() const {
  return type == DataType::kF32 || std::any_of(steps.begin(), steps.end(), [&](const EpilogueStep& step) {
           const std::vector<ir::StepTensor> tensors = ir::TensorsOf(step, type);
           return std::any_of(tensors.begin(), tensors.end(), [](const ir::StepTensor& tensor) {
             return tensor.operand == ir::StepOperand::kOutput && tensor.type == DataType::kF32;
           });
         });
}

ir::GlobalAttrs KernelBuilder::GlobalAccess(Operand operand, int columns) const {
  const bool joined = operand == Operand::kD && ir::IsGated(terms_.steps);
  const int run = RowsAlongN() ? 1 : ir::FragmentLayout{fragment_, joined ? columns / 2 : columns}.Run();
  const DataType type = operand == Operand::kC ? terms_.c_type : terms_.type;
  return {.operand = operand,
          .base = ir::BaseOf(operand),
          .type = type,
          .vector = std::gcd(AccessWidthOf(operand, run), run),
          .rows = terms_.rows};
}

// As wide as D's accesses, within 16 bytes: the matrix begins at a multiple of those, and its runs are D's.
ir::GlobalAttrs KernelBuilder::StepAccess(Binding base, DataType type, int columns) const {
  ir::GlobalAttrs access = GlobalAccess(Operand::kD, columns);
  access.base = base;
  access.type = type;
  access.vector = std::min(access.vector, static_cast<int>(16 / DataTypeBytes(type)));
  return access;
}

}  // namespace laneshift::compiler
