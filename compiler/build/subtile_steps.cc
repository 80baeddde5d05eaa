#include "compiler/build/subtile_steps.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "ir/element_type.h"
#include "ir/stored_tensor.h"

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
    case ir::StepOperand::kRowReduction:
      return BiasAxis::kM;
    case ir::StepOperand::kColumnVector:
    case ir::StepOperand::kColumnReduction:
      return BiasAxis::kN;
    case ir::StepOperand::kNone:
    case ir::StepOperand::kMatrix:
    case ir::StepOperand::kOutput:
    case ir::StepOperand::kBlocks:
    case ir::StepOperand::kReduction:
    case ir::StepOperand::kTable:
      return BiasAxis::kNone;
  }
  return BiasAxis::kNone;
}

void GateColumns(Builder& b, Subtile& subtile) {
  subtile.column = b.Div({subtile.column, b.Constant(2)});
  subtile.gated = true;
}

ValueId ScaleBy(Builder& b, ValueId fragment, ValueId scale) {
  return scale == ir::kNoValue ? fragment : b.ScaleBy({fragment, scale});
}

ir::ProgramFunction FunctionOf(const FunctionCall& call, DataType d) {
  ir::ProgramFunction function{.name = call.name, .digest = call.digest, .is_gated = call.is_gated, .inputs = {}};
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

void AddScaleParams(const EpilogueTerms& terms, std::vector<ir::Param>& params) {
  if (terms.scale == Scaling::kNv)
    params.insert(params.end(), {{Binding::kBaseTensorScaleA, {}}, {Binding::kBaseTensorScaleB, {}}});
  if (terms.scale != Scaling::kNone && !ir::BlockScalingOf(terms.scale) && !terms.scale_tiles.InSlots())
    params.insert(params.end(), {{Binding::kBaseScaleA, {}}, {Binding::kBaseScaleB, {}}});
  if (terms.HasScaleOfD()) params.push_back({Binding::kBaseScaleD, {}});
  if (terms.d_scale != OutputScaling::kNone) params.push_back({Binding::kBaseBlockScaleD, {}});
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

}  // namespace

void DeclareEpilogue(const EpilogueTerms& terms, const OutputTensor& output, ir::Program& program) {
  std::vector<ir::Param>& params = program.params;
  if (terms.adds_c) {
    params.push_back({Binding::kBaseC, {}});
    output.AddPitches(ir::Operand::kC, params);
  }
  if (terms.bias != BiasAxis::kNone) params.push_back({Binding::kBaseBias, {}});
  AddScaleParams(terms, params);
  DeclareSteps(terms, program);
  output.AddSizes(params);
  params.push_back({Binding::kAlpha, {}});
  if (terms.adds_c) params.push_back({Binding::kBeta, {}});
}

TensorScales SubtileSteps::LoadTensorScales(Builder& b) const {
  TensorScales scales;
  if (terms_.scale == Scaling::kTensor) {
    scales.a = b.LoadScaleFactor({}, {.binding = Binding::kBaseScaleA});
    scales.b = b.LoadScaleFactor({}, {.binding = Binding::kBaseScaleB});
  }
  if (terms_.scale == Scaling::kNv) {
    scales.a = b.LoadScaleFactor({}, {.binding = Binding::kBaseTensorScaleA});
    scales.b = b.LoadScaleFactor({}, {.binding = Binding::kBaseTensorScaleB});
  }
  if (terms_.HasScaleOfD()) scales.d = b.LoadScaleFactor({}, {.binding = Binding::kBaseScaleD});
  return scales;
}

void SubtileSteps::Write(Builder& b, Subtile& subtile, const TensorScales& scales) const {
  if (terms_.StoresAccumulator()) return;
  if (ir::IsInteger(terms_.accumulator)) subtile.fragment = b.ToF32({subtile.fragment});
  subtile.fragment = b.Scale({subtile.fragment}, {.binding = Binding::kAlpha});
  subtile.fragment = ScaleBy(b, subtile.fragment, scales.a);
  subtile.fragment = ScaleBy(b, subtile.fragment, scales.b);
  if (terms_.scale == Scaling::kRow) {
    for (const BiasAxis axis : {BiasAxis::kM, BiasAxis::kN}) MultiplyByFactors(b, axis, subtile);
  }
  if (terms_.adds_c) {
    const ir::GlobalAttrs c = AccessOf(Operand::kC, subtile.columns);
    subtile.fragment = b.CombineMatrix(
        OperandsOf(b, subtile),
        {.base = c.base, .operand = c.operand, .type = c.type, .vector = c.vector, .rows = c.rows, .beta = true});
  }
  if (terms_.bias != BiasAxis::kNone) {
    subtile.fragment = b.CombineVector(OperandsOf(b, subtile), {.axis = terms_.bias,
                                                                .type = ir::AddendType(terms_.type),
                                                                .rows = terms_.rows,
                                                                .halves = HalvesOf(terms_.bias, subtile)});
  }
  for (const EpilogueStep& step : terms_.steps) WriteStep(b, step, subtile);
  if (terms_.d_scale == OutputScaling::kNone) {
    subtile.fragment = ScaleBy(b, subtile.fragment, scales.d);
    return;
  }
  std::vector<ValueId> operands = OperandsOf(b, subtile);
  if (scales.d != ir::kNoValue) operands.push_back(scales.d);
  subtile.fragment = b.Quantize(operands, {.scaling = terms_.d_scale, .type = terms_.type});
}

std::vector<ValueId> SubtileSteps::OperandsOf(Builder& b, const Subtile& subtile) const {
  if (plan_.steps_share) return subtile.Operands();
  return {subtile.fragment, b.Anew({subtile.row}), b.Anew({subtile.column}), subtile.batch};
}

void SubtileSteps::WriteStep(Builder& b, const EpilogueStep& step, Subtile& subtile) const {
  const ir::StepInfo& info = ir::InfoOf(step.kind);
  if (info.action == ir::StepAction::kCall) return WriteCall(b, step, subtile);
  if (info.operand == ir::StepOperand::kNone) return WriteFunction(b, step, subtile);
  if (ir::IsReduction(info.operand)) return Reduce(b, step, subtile);
  if (ir::IsMatrix(info.operand)) return PassMatrix(b, step, subtile);
  CombineVector(b, step, subtile);
}

void SubtileSteps::WriteCall(Builder& b, const EpilogueStep& step, Subtile& subtile) const {
  const int operand = subtile.operand, number = subtile.number;
  // Operands of a gated linear unit lie as D does.
  if (ir::IsGatedStep(step)) GateColumns(b, subtile);
  subtile.operand += static_cast<int>(ir::TensorsOf(step, terms_.type).size());
  subtile.number += static_cast<int>(ir::NumbersOf(step).size());
  subtile.fragment = b.Call(OperandsOf(b, subtile), {.function = IndexOf(program_.functions, *step.function),
                                                     .operand = operand,
                                                     .number = number,
                                                     .vector = AccessOf(Operand::kD, subtile.columns).vector,
                                                     .rows = terms_.rows,
                                                     .gated = subtile.gated,
                                                     .halves = HalvesOf(BiasAxis::kN, subtile)});
}

// A step of no operand.
void SubtileSteps::WriteFunction(Builder& b, const EpilogueStep& step, Subtile& subtile) const {
  const ir::StepInfo& info = ir::InfoOf(step.kind);
  const int number = info.numbers > 0 ? subtile.number : 0;
  const bool approximate = !terms_.KeepsF32();
  subtile.number += info.numbers;
  if (info.action == ir::StepAction::kMultiply) {
    subtile.fragment = b.Scale({subtile.fragment}, {.binding = ir::EpilogueNumber(number)});
  } else if (info.action == ir::StepAction::kGate) {
    subtile.fragment = b.Gate({subtile.fragment}, {.function = info.function, .approximate = approximate});
    GateColumns(b, subtile);
  } else {
    const ir::Function cut = terms_.type == DataType::kBf16 ? ir::Function::kCutBf16 : ir::Function::kCutF16;
    subtile.fragment = b.Map({subtile.fragment}, {.function = info.action == ir::StepAction::kCut ? cut : info.function,
                                                  .number = number,
                                                  .approximate = approximate});
  }
}

// Of scale=row.
void SubtileSteps::MultiplyByFactors(Builder& b, BiasAxis axis, Subtile& subtile) const {
  const Binding base = axis == BiasAxis::kM ? Binding::kBaseScaleA : Binding::kBaseScaleB;
  subtile.fragment = b.CombineVector(OperandsOf(b, subtile), {.base = base,
                                                              .how = ir::Combine::kMultiply,
                                                              .axis = axis,
                                                              .type = DataType::kF32,
                                                              .rows = terms_.rows,
                                                              .halves = HalvesOf(axis, subtile),
                                                              .factors = true});
}

void SubtileSteps::CombineVector(Builder& b, const EpilogueStep& step, Subtile& subtile) const {
  const ir::StepInfo& info = ir::InfoOf(step.kind);
  const BiasAxis axis = AxisOf(info.operand);
  const bool adds = info.action == ir::StepAction::kAdd;
  subtile.fragment = b.CombineVector(OperandsOf(b, subtile), {.base = ir::EpilogueBase(subtile.operand++),
                                                              .how = adds ? ir::Combine::kAdd : ir::Combine::kMultiply,
                                                              .axis = axis,
                                                              .type = ir::OperandTypeOf(step, terms_.type),
                                                              .rows = terms_.rows,
                                                              .blocks = axis == BiasAxis::kNone,
                                                              .gated = subtile.gated,
                                                              .halves = HalvesOf(axis, subtile)});
}

// Combines the subtile with a matrix that lies as D does, or stores it to one.
void SubtileSteps::PassMatrix(Builder& b, const EpilogueStep& step, Subtile& subtile) const {
  const ir::StepInfo& info = ir::InfoOf(step.kind);
  const Binding base = ir::EpilogueBase(subtile.operand++);
  const DataType type = ir::OperandTypeOf(step, terms_.type);
  const int number = info.numbers > 0 ? subtile.number : 0;
  subtile.number += info.numbers;
  const ir::GlobalAttrs access = StepAccess(base, type, subtile.columns);
  if (info.operand == ir::StepOperand::kOutput) {
    b.GlobalStore(OperandsOf(b, subtile), access);
    return;
  }
  const bool adds = info.action == ir::StepAction::kAdd;
  subtile.fragment = b.CombineMatrix(OperandsOf(b, subtile), {.base = base,
                                                              .how = adds ? ir::Combine::kAdd : ir::Combine::kMultiply,
                                                              .operand = access.operand,
                                                              .type = type,
                                                              .vector = access.vector,
                                                              .rows = terms_.rows,
                                                              .derivative = info.function,
                                                              .number = number});
}

// Added to the caller's values where tiles may end in any order, else stored to the line that is the subtile's own.
void SubtileSteps::Reduce(Builder& b, const EpilogueStep& step, Subtile& subtile) const {
  const ir::StepInfo& info = ir::InfoOf(step.kind);
  const BiasAxis axis = AxisOf(info.operand);
  const Binding base = ir::EpilogueBase(subtile.operand++);
  const bool sum = info.action == ir::StepAction::kSum;
  if (sum && terms_.orders_reductions) return StorePartials(b, base, axis, subtile);
  b.Reduce(OperandsOf(b, subtile), {.base = base,
                                    .how = sum ? ir::Reduction::kSum : ir::Reduction::kAmax,
                                    .axis = axis,
                                    .rows = terms_.rows,
                                    .gated = subtile.gated,
                                    .halves = HalvesOf(axis, subtile)});
}

// Along the accumulator's rows a fragment is a unit, of the rows that it keeps; along its columns a tile is, in as many
// pieces as it is treated in.
void SubtileSteps::StorePartials(Builder& b, Binding base, BiasAxis axis, const Subtile& subtile) const {
  using ir::Axis;
  const Axis along = axis == BiasAxis::kM ? Axis::kN : Axis::kM;
  ir::StorePartialRowAttrs attrs{.base = base,
                                 .axis = axis,
                                 .rows = terms_.rows,
                                 .gated = subtile.gated,
                                 .halves = HalvesOf(axis, subtile),
                                 .unit = RowsOfWarp()};
  ValueId start = subtile.own, number = ir::kNoValue;
  if (along == program_.row_axis) {
    number = b.Constant(0);
  } else {
    const int panel = plan_.staging.panel;
    const auto pieces_of = [&](int columns) { return static_cast<int>(plan_.SubtilesOf(columns).size()); };
    attrs.unit = along == Axis::kM ? program_.TileRows() : program_.tile_n;
    attrs.rows_per_unit = plan_.columns / panel * pieces_of(panel) + pieces_of(plan_.columns % panel);
    start = subtile.tile;
    number = b.Add({b.Mul({subtile.panel, b.Constant(pieces_of(panel))}), b.Constant(subtile.part)});
  }
  std::vector<ValueId> operands = OperandsOf(b, subtile);
  operands.insert(operands.end(), {start, number});
  b.StorePartialRow(operands, attrs);
}

// C, and the matrices that steps read, whose rows begin at multiples of 16 bytes.
std::vector<ir::PrefetchMatrixAttrs> SubtileSteps::MatricesToPrefetch() const {
  std::vector<ir::PrefetchMatrixAttrs> matrices;
  if (terms_.patches || program_.HasWindows() || program_.diagonal_blocks > 1) return matrices;
  const auto add = [&](Operand operand, Binding base, DataType type, int columns) {
    const int bytes = static_cast<int>(DataTypeBytes(type)), whole = 16 / bytes;
    if (columns % whole != 0 || output_.AccessWidthOf(operand, whole) != whole) return;
    matrices.push_back({.base = base,
                        .operand = operand,
                        .type = type,
                        .rows = terms_.rows,
                        .tile_rows = program_.TileRows(),
                        .tile_columns = columns});
  };
  if (terms_.adds_c) add(Operand::kC, Binding::kBaseC, terms_.c_type, program_.tile_n);
  int operand = 0;
  for (const EpilogueStep& step : terms_.steps) {
    for (const ir::StepTensor& tensor : ir::TensorsOf(step, terms_.type)) {
      const Binding base = ir::EpilogueBase(operand++);
      const int columns = program_.tile_n / ir::ColumnsPerOutput(terms_.steps);
      if (tensor.operand == ir::StepOperand::kMatrix) add(Operand::kD, base, tensor.type, columns);
    }
  }
  return matrices;
}

void SubtileSteps::Prefetch(Builder& b, const Corner& corner) const {
  for (const ir::PrefetchMatrixAttrs& matrix : MatricesToPrefetch()) {
    const int joined = matrix.operand == Operand::kD ? ir::ColumnsPerOutput(terms_.steps) : 1;
    const ValueId column = joined > 1 ? b.Div({corner.column, b.Constant(joined)}) : corner.column;
    b.PrefetchMatrix({corner.row, column, corner.batch}, matrix);
  }
}

int SubtileSteps::RowsOfWarp() const {
  const ir::FragmentLayout fragment{plan_.fragment};
  if (fragment.HasRunsOfRows()) return fragment.Rows();
  const int rows = plan_.rows_along_n || program_.live_rows == 0 ? program_.Rows() : program_.live_rows;
  return rows / plan_.blocks / plan_.warps;
}

ir::GlobalAttrs SubtileSteps::AccessOf(Operand operand, int columns) const {
  const int joined = operand == Operand::kD ? ir::ColumnsPerOutput(terms_.steps) : 1;
  const int run = plan_.rows_along_n ? 1 : ir::FragmentLayout{plan_.fragment, columns / joined}.Run();
  return {.operand = operand,
          .base = ir::BaseOf(operand),
          .type = operand == Operand::kC ? terms_.c_type : terms_.type,
          .vector = std::gcd(output_.AccessWidthOf(operand, run), run),
          .rows = terms_.rows};
}

// As wide as D's accesses, within 16 bytes: the matrix begins at a multiple of those, and its runs are D's.
ir::GlobalAttrs SubtileSteps::StepAccess(Binding base, DataType type, int columns) const {
  ir::GlobalAttrs access = AccessOf(Operand::kD, columns);
  access.base = base;
  access.type = type;
  access.vector = std::min(access.vector, static_cast<int>(16 / DataTypeBytes(type)));
  return access;
}

}  // namespace laneshift::compiler
