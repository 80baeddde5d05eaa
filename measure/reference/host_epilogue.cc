#include "measure/reference/host_epilogue.h"

#include <algorithm>
#include <cmath>

#include "base/small_float.h"
#include "ir/element_type.h"

namespace laneshift::measure {
namespace {

// What is stored of a value in the type.
double Stored(DataType type, double value) {
  std::byte rounded[4];
  StoreElement(rounded, type, 0, static_cast<float>(value));
  return ElementAt(rounded, type, 0);
}

// Whether an infinity is what the type stores of a value in the range: f16 has no number beyond its largest one.
bool Overflows(DataType type, double out, const ValueRange& range) {
  return std::isinf(out) && Stored(type, out > 0 ? range.high : range.low) == out;
}

void CountBad(int64_t index, int64_t& count, int64_t& first) {
  ++count;
  if (first < 0 || index < first) first = index;
}

// The result of a conversion to the type for a value beyond its largest number.
ValueRange Saturated(DataType type, const ValueRange& value) {
  if (!ir::InfoOf(type).Saturates()) return value;
  return value.Through([&](double v) { return std::clamp(v, -ir::LargestOf(type), ir::LargestOf(type)); });
}

// After one operation in f32.
ValueRange Rounded(const ValueRange& value) { return value.Widened(kUnitRoundoff * value.Magnitude()); }

// With the index vectors in the host's memory.
ProductView ViewOf(const Problem& problem, const HostOperands& operands) {
  ProductView view = measure::ViewOf(problem);
  const auto indices = [&](OperandRole role) {
    return ir::Uses(problem, role) ? reinterpret_cast<const int*>(operands.Of(role)->bytes.data()) : nullptr;
  };
  view.a_row_indices = indices(OperandRole::kRowIndicesA);
  view.d_row_indices = indices(OperandRole::kRowIndicesD);
  return view;
}

}  // namespace

HostEpilogue::HostEpilogue(const Problem& problem, const HostOperands& operands, DataType output,
                           EpilogueReductions* totals, SumsFrom from)
    : problem_(problem),
      view_(ViewOf(problem, operands)),
      output_(output),
      alpha_(view_.alpha),
      saturates_(std::visit([](const auto& kind) { return kind.sum == SumPrecision::kSaturate; }, problem_)),
      unsigned_(ir::InfoOf(operands.a.shape.type).numbers == ir::DataTypeInfo::kUnsigned &&
                ir::InfoOf(operands.b.shape.type).numbers == ir::DataTypeInfo::kUnsigned),
      epilogue_(ir::EpilogueOf(problem_)),
      operands_(operands),
      totals_(totals),
      gate_(ir::GateOf(epilogue_)),
      cut_(from == SumsFrom::kProducts ? CutRuleOf(problem_) : std::nullopt),
      sum_error_(SumErrorFactor(problem_) + (from == SumsFrom::kProducts ? 0 : AverageCutFactor(problem_))),
      by_range_(NeedsRanges(problem_)),
      each_(!ir::CallsFunctions(problem_) &&
            (ir::HasJumps(epilogue_) || from == SumsFrom::kProducts || !CutRuleOf(problem_))) {
  if (const auto scales = TensorScaleRolesOf(problem_)) {
    alpha_ *= operands.Of(scales->a)->At(0, 0) * operands.Of(scales->b)->At(0, 0);
  }
  if (ir::Uses(problem_, OperandRole::kScaleD)) last_ = operands.scale_d.At(0, 0);
  if (const OutputScaling scaling = ir::OutputScalingOf(problem_); scaling != OutputScaling::kNone)
    quantizer_.emplace(scaling, output_);
}

std::optional<ValueRange> HostEpilogue::Finish(int64_t batch, int64_t i, int64_t j, const ProductSums& sums,
                                               const HostTensor& d, Comparison& into, FunctionValues& functions,
                                               int64_t element) const {
  const int64_t own_row = view_.RowOfA(i);
  if (view_.d_row_indices != nullptr) i = view_.StoredRowOfD(i);
  if (i < 0) return std::nullopt;  // the row is not stored
  const int64_t row = view_.RowOfD(batch, i);
  if (ir::IsInteger(output_)) {
    CountInteger(d, row, view_.ColumnOfD(batch, j, view_.n), sums.exact[0], sums.magnitudes[0], into);
    return std::nullopt;
  }
  const int64_t group = view_.kind == ProductView::kGroups ? batch : 0;
  std::array<ValueRange, 2> values{};
  int64_t known = 0;
  Passed passed;
  for (int64_t c = 0; c < columns_per_output(); ++c) {
    const int64_t column = view_.ColumnOfD(batch, ColumnOfB(j + c), view_.n);
    ValueRange value = ValueRange::Around(sums.exact[c], sum_error_ * sums.magnitudes[c]);
    if (cut_) value = value.Widened(sums.below[c], sums.above[c]);
    value = Rounded(value * alpha_);
    if (view_.scale_by_row != 0) {
      const int64_t matrix = view_.kind == ProductView::kGroups ? 0 : batch;  // of the factors of rows
      const double of_row = own_row < 0 ? 0 : static_cast<double>(operands_.scale_a.At(matrix, own_row));
      value = Rounded(Rounded(value * of_row) * static_cast<double>(operands_.scale_b.At(batch, column)));
    }
    const Place at{i, row, column, columns_per_output() * element + c, group};
    value = Rounded(value + Bias(at));
    if (view_.beta != 0) {
      // Exact in a double. A kernel rounds it before it adds it, or only the sum.
      const double term = view_.beta * static_cast<double>(operands_.c.At(row, column)),
                   rounding = static_cast<float>(term) - term;
      value = Rounded((value + term).Widened(std::max(0.0, -rounding), std::max(0.0, rounding)));
    }
    passed = {};
    const auto before = After(0, gate_, passed, value, at, into, functions);
    if (before) values[static_cast<size_t>(known++)] = *before;
  }
  if (known < columns_per_output()) return std::nullopt;
  const Place own{i, row, view_.ColumnOfD(batch, j, view_.n) / columns_per_output(), element, group};
  std::optional<ValueRange> value = values[0];
  if (columns_per_output() > 1) {
    value = Gated(passed, values, own, into, functions);
    if (value) value = After(gate_ + 1, epilogue_.size(), passed, *value, own, into, functions);
  }
  if (quantizer_ || !value) return value;
  Count(d, row, own.column, Saturated(output_, Rounded(*value * last_)), into);
  return std::nullopt;
}

// A magnitude in f32 is at least the f32 that is nearest to a lower bound, and likewise above: the formulas are
// monotonic, so that their results at both ends bound those in between.
void HostEpilogue::FinishBlock(int64_t batch, int64_t i, int64_t first, std::span<const ValueRange> values,
                               const HostTensor& d, Comparison& into) const {
  double least = 0, most = 0;
  for (const ValueRange& value : values) {
    if (!std::isfinite(value.low) || !std::isfinite(value.high)) return;  // the inputs overflow; nothing to compare
    least = std::max(least, value.Has(0) ? 0 : std::min(std::abs(value.low), std::abs(value.high)));
    most = std::max(most, value.Magnitude());
  }
  const auto scale_d = static_cast<float>(last_);
  const auto factor_of = [&](double amax) { return quantizer_->FactorOf(static_cast<float>(amax), scale_d); };
  const int64_t row = view_.RowOfD(batch, i), columns = d.shape.Inner();
  const int64_t place = ir::FactorOffset(view_.m, (columns + quantizer_->run() - 1) / quantizer_->run(), batch, i,
                                         first / quantizer_->run());
  const auto factor = std::to_integer<uint8_t>(operands_.block_scale_d.bytes[static_cast<size_t>(place)]);
  if (factor < factor_of(least) || factor > factor_of(most)) CountBad(place, into.factors_outside, into.first_factor);
  const base::FloatFormat format = *ir::InfoOf(output_).format;
  const auto stored = [&](double value, float multiplier) {
    return double{base::ToFloat(format, quantizer_->ElementOf(static_cast<float>(value), multiplier))};
  };
  const float multiplier = quantizer_->MultiplierOf(factor, scale_d);
  for (size_t c = 0; c < values.size(); ++c) {
    const ValueRange& value = values[c];
    const int64_t column = first + static_cast<int64_t>(c);
    const double out = d.At(row, column);
    ++into.compared;
    const int64_t index = row * columns + column;
    if (!std::isfinite(out) || !std::isfinite(multiplier)) {
      CountBad(index, into.not_finite, into.first_not_finite);
      continue;
    }
    if (out < stored(value.low, multiplier) || out > stored(value.high, multiplier))
      CountBad(index, into.outside, into.first_outside);
    // A block whose factor is 0 is lost, whoever computes it.
    const double error = (multiplier == 0 ? 0 : out / multiplier) - value.at;
    const double unavoidable = (multiplier == 0 ? 0 : stored(value.at, multiplier) / multiplier) - value.at;
    into.error_squares += error * error;
    into.reference_squares += value.at * value.at;
    into.rounding_squares += unavoidable * unavoidable;
  }
}

void HostEpilogue::CountPadding(Comparison& into) const {
  if (!quantizer_) return;
  const std::vector<std::byte>& bytes = operands_.block_scale_d.bytes;
  std::vector<bool> used(bytes.size());
  const int64_t blocks = (view_.n / columns_per_output() + quantizer_->run() - 1) / quantizer_->run();
  for (int64_t batch = 0; batch < view_.batches; ++batch) {
    for (int64_t row = 0; row < view_.m; ++row) {
      for (int64_t block = 0; block < blocks; ++block) {
        used[static_cast<size_t>(ir::FactorOffset(view_.m, blocks, batch, row, block))] = true;
      }
    }
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (!used[i] && bytes[i] != std::byte{0})
      CountBad(static_cast<int64_t>(i), into.factors_outside, into.first_factor);
  }
}

// Products of unsigned operands only grow, so that a sum that is clamped at every instruction is the clamped
// exact one. Otherwise a clamped sum depends on the order of products.
void HostEpilogue::CountInteger(const HostTensor& d, int64_t row, int64_t column, double sum, double magnitude,
                                Comparison& into) const {
  const double largest = ir::LargestOf(output_);
  if (saturates_) {
    if (magnitude > largest && !unsigned_) return;
    sum = std::clamp(sum, -largest - 1, largest);
  } else {
    sum = static_cast<double>(static_cast<int32_t>(static_cast<uint64_t>(static_cast<int64_t>(sum))));
  }
  Count(d, row, column, {sum, sum, sum}, into);
}

double HostEpilogue::Bias(const Place& at) const {
  if (view_.bias_axis == 0) return 0;
  return view_.bias_axis == 1 ? operands_.bias.At(0, at.row_of_product) : operands_.bias.At(at.group, at.column);
}

void HostEpilogue::Count(const HostTensor& d, int64_t row, int64_t column, const ValueRange& range,
                         Comparison& into) const {
  const double out = d.At(row, column);
  const double reference = range.at;
  ++into.compared;
  if (Overflows(d.shape.type, out, range)) return;
  const int64_t index = row * d.shape.Inner() + column;
  if (!std::isfinite(out) && std::isfinite(reference)) return CountBad(index, into.not_finite, into.first_not_finite);
  if (!std::isfinite(reference)) return;  // the inputs overflow; nothing to compare
  const double allowed = range.Nearest(out);
  into.ranged += each_;
  if (each_ && std::abs(out - allowed) > HalfPlace(d.shape.type, allowed))
    CountBad(index, into.outside, into.first_outside);
  const double nearest = by_range_ ? allowed : reference;
  into.error_squares += (out - nearest) * (out - nearest);
  into.reference_squares += reference * reference;
  if (ir::IsInteger(d.shape.type)) return;  // exact, where f32 would not be
  const double unavoidable = Stored(d.shape.type, reference) - reference;
  if (std::isfinite(unavoidable)) into.rounding_squares += unavoidable * unavoidable;
}

float HostEpilogue::OperandOf(const FunctionParameter& parameter, const HostTensor& tensor, const Place& at) {
  if (parameter.operand == FunctionOperand::kPerRow) return tensor.At(0, at.row_of_product);
  if (parameter.operand == FunctionOperand::kPerColumn) return tensor.At(at.group, at.column);
  return parameter.operand == FunctionOperand::kPerElement ? tensor.At(at.row, at.column) : 0.0f;
}

// At one point of the ranges of the values: 0 for the values, 1 and 2 for the ends.
void HostEpilogue::LeaveInputs(const FunctionCall& call, const HostTensor* operands, std::span<const ValueRange> values,
                               const Place& at, FunctionValues& functions, size_t function, int64_t point) {
  size_t parameter = 0, number = 0;
  const int64_t own = kPoints * at.call + point;
  for (const ValueRange& value : values) {
    const double input = point == 0 ? value.at : point == 1 ? value.low : value.high;
    functions.Input(function, parameter++, own) = static_cast<float>(input);
  }
  for (const FunctionParameter& p : call.parameters) {
    const bool is_number = p.operand == FunctionOperand::kNumber;
    const float input = is_number ? static_cast<float>(call.numbers[number++]) : OperandOf(p, *operands++, at);
    if (p.operand != FunctionOperand::kTable) functions.Input(function, parameter++, own) = input;
  }
}

void HostEpilogue::CountOutputs(const FunctionCall& call, const HostTensor* operands, const Place& at, Comparison& into,
                                const FunctionValues& functions, size_t function) const {
  size_t result = 1;
  for (const FunctionParameter& p : call.parameters) {
    if (p.operand == FunctionOperand::kOutput) {
      const ValueRange value = functions.RangeOf(function, result++, at.call);
      Count(*operands, at.row, at.column, Saturated(operands->shape.type, value), into);
    }
    if (p.operand != FunctionOperand::kNumber) ++operands;
  }
}

// The result of a function for a value, or for those of a pair; nothing if it is not known yet.
std::optional<ValueRange> HostEpilogue::Called(const FunctionCall& call, size_t operand,
                                               std::span<const ValueRange> values, const Place& at, Comparison& into,
                                               FunctionValues& functions, size_t function) const {
  const HostTensor* operands = operands_.epilogue.data() + operand;
  if (!functions.Knows(function)) {
    for (int64_t point = 0; point < kPoints; ++point) {
      LeaveInputs(call, operands, values, at, functions, function, point);
    }
    return std::nullopt;
  }
  CountOutputs(call, operands, at, into, functions, function);
  return functions.RangeOf(function, 0, at.call);
}

// After the step that joins the values of a pair.
std::optional<ValueRange> HostEpilogue::Gated(Passed& passed, std::span<const ValueRange> values, const Place& at,
                                              Comparison& into, FunctionValues& functions) const {
  const EpilogueStep& gate = epilogue_[gate_];
  const size_t own = passed.operands;
  passed.operands += ir::TensorsOf(gate, output_).size();
  if (gate.function) return Called(*gate.function, own, values, at, into, functions, passed.functions++);
  return Rounded(Applied(ir::InfoOf(gate.kind).function, gate.numbers, values[0]) * values[1]);
}

ValueRange HostEpilogue::Applied(ir::Function function, const std::array<double, 2>& numbers,
                                 const ValueRange& value) const {
  ValueRange result = value.Through([&](double v) { return ir::Evaluate(function, numbers, v); });
  const std::optional<double> lowest = ir::LowestPoint(function, numbers);
  if (lowest && value.Has(*lowest)) result = result.Including(ir::Evaluate(function, numbers, *lowest));
  return result.Widened(FunctionError(function, problem_, value.Magnitude()));
}

std::optional<ValueRange> HostEpilogue::After(size_t first, size_t end, Passed& passed, ValueRange value,
                                              const Place& at, Comparison& into, FunctionValues& functions) const {
  for (size_t i = first; i < end; ++i) {
    const EpilogueStep& step = epilogue_[i];
    const size_t own = passed.operands;
    passed.operands += ir::TensorsOf(step, output_).size();
    if (!step.function) {
      value = After(step, own, value, at, into, functions.complete());
      continue;
    }
    const auto called = Called(*step.function, own, {&value, 1}, at, into, functions, passed.functions++);
    if (!called) return std::nullopt;
    value = *called;
  }
  return value;
}

// Reductions get each value once: when all functions are known.
ValueRange HostEpilogue::After(const EpilogueStep& step, size_t operand, const ValueRange& value, const Place& at,
                               Comparison& into, bool totals) const {
  const ir::StepInfo& info = ir::InfoOf(step.kind);
  // Of a vector along columns, for each group.
  const int64_t columns = ir::IsReduction(info.operand) ? operands_.epilogue[operand].shape.Inner() : 0;
  switch (info.action) {
    case ir::StepAction::kMultiply:
      return Rounded(value * Other(step, operand, at));
    case ir::StepAction::kAdd:
      return Rounded(value + Other(step, operand, at));
    case ir::StepAction::kApply:
      return Applied(info.function, step.numbers, value);
    case ir::StepAction::kDerivative: {
      const double other = Other(step, operand, at);
      const double factor = ir::EvaluateDerivative(info.function, step.numbers, other);
      return Rounded(value * factor).Widened(DerivativeError(info.function, other) * value.Magnitude());
    }
    case ir::StepAction::kStore: {
      const HostTensor& to = operands_.epilogue[operand];
      Count(to, at.row, at.column, Saturated(to.shape.type, value), into);
      return value;
    }
    case ir::StepAction::kCut:
      return Applied(output_ == DataType::kBf16 ? ir::Function::kCutBf16 : ir::Function::kCutF16, {}, value);
    case ir::StepAction::kSum:
      if (totals && totals_ != nullptr) totals_->Add(operand, PlaceOfReduction(info.operand, columns, at), value);
      return value;
    case ir::StepAction::kAmax:
      if (totals && totals_ != nullptr) totals_->Raise(operand, PlaceOfReduction(info.operand, columns, at), value);
      return value;
    case ir::StepAction::kGate:
    case ir::StepAction::kCall:
      break;
  }
  LS_CHECK(false, "unknown action ", static_cast<int>(info.action));
}

double HostEpilogue::Other(const EpilogueStep& step, size_t operand, const Place& at) const {
  const ir::StepOperand of = ir::InfoOf(step.kind).operand;
  if (of == ir::StepOperand::kNone) return step.numbers[0];
  const HostTensor& tensor = operands_.epilogue[operand];
  if (of == ir::StepOperand::kRowVector) return tensor.At(0, at.row_of_product);
  if (of == ir::StepOperand::kColumnVector) return tensor.At(at.group, at.column);
  if (of == ir::StepOperand::kBlocks) return tensor.At(at.row_of_product / kScaleRun, at.column / kScaleRun);
  return tensor.At(at.row, at.column);
}

int64_t HostEpilogue::PlaceOfReduction(ir::StepOperand operand, int64_t columns, const Place& at) {
  if (operand == ir::StepOperand::kRowReduction) return at.row_of_product;
  return operand == ir::StepOperand::kColumnReduction ? at.group * columns + at.column : 0;
}

}  // namespace laneshift::measure
