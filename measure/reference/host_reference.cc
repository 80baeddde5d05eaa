#include "measure/reference/host_reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/small_float.h"
#include "base/text.h"
#include "ir/element_type.h"
#include "ir/epilogue_steps.h"
#include "measure/parallel_for.h"
#include "measure/reference/epilogue_totals.h"
#include "measure/reference/value_range.h"

namespace laneshift::measure {
namespace {

// Columns of D that one thread computes at a time: their part of B stays in the second-level cache.
constexpr int kColumns = 64;
// Rows of D that share one pass over that part.
constexpr int kRows = 4;
// How many points of a range users' functions are evaluated at: the value, and both ends.
constexpr int64_t kPoints = 3;
// Half of a place, and what is left of f32's own rounding.
constexpr double kPlaceSlack = 1.01;
// Of one operation in f32.
constexpr double kStepError = 6e-8;

// A problem as `batches` products of `rows` x `depth` by `depth` x `columns` matrices, whose elements the view finds.

class GemmView {
 public:
  GemmView(const GemmProblem& problem, const HostOperands& operands) : p_(problem), operands_(operands) {}

  int64_t batches() const { return p_.batch; }
  int64_t rows() const { return p_.m; }
  int64_t columns() const { return p_.n; }
  int64_t depth() const { return p_.k; }

  // Row i of the left matrix.
  void Left(int64_t batch, int64_t i, float* to) const {
    const bool a_k = p_.a_major == Major::kK;
    const int64_t first = batch * p_.stride_a + (a_k ? i * p_.lda : i);
    for (int64_t q = 0; q < p_.k; ++q) {
      to[q] = ElementAt(operands_.a.bytes.data(), p_.a, first + q * (a_k ? 1 : p_.lda));
    }
    if (p_.scale != Scaling::kBlock) return;
    const int64_t runs = ir::ScaleRuns(p_.k);
    for (int64_t q = 0; q < p_.k; ++q) to[q] *= operands_.scale_a.At(batch * runs + q / kScaleRun, i);
  }
  // Column j of the right matrix, its elements `step` apart.
  void Right(int64_t batch, int64_t j, float* to, int64_t step) const {
    const bool b_k = p_.b_major == Major::kK;
    const int64_t first = batch * p_.stride_b + (b_k ? j * p_.ldb : j);
    for (int64_t q = 0; q < p_.k; ++q) {
      to[q * step] = ElementAt(operands_.b.bytes.data(), p_.b, first + q * (b_k ? 1 : p_.ldb));
    }
    if (p_.scale != Scaling::kBlock) return;
    const int64_t row = batch * ir::ScaleRuns(p_.n) + j / kScaleRun;
    for (int64_t q = 0; q < p_.k; ++q) to[q * step] *= operands_.scale_b.At(row, q / kScaleRun);
  }
  // Where element (i, j) lies in D.
  int64_t StoredRow(int64_t batch, int64_t i) const { return batch * p_.m + i; }
  int64_t StoredColumn(int64_t /*batch*/, int64_t j) const { return j; }
  float Bias(int64_t i, int64_t j) const {
    return p_.bias == BiasAxis::kNone ? 0.0f : operands_.bias.At(0, p_.bias == BiasAxis::kM ? i : j);
  }

 private:
  const GemmProblem& p_;
  const HostOperands& operands_;
};

// Each group is one product: its rows are the output pixels, its columns the group's filters.
class ConvView {
 public:
  ConvView(const ConvProblem& problem, const HostOperands& operands)
      : p_(problem), operands_(operands), output_(problem.Output()), channels_(p_.c / p_.groups) {}

  int64_t batches() const { return p_.groups; }
  int64_t rows() const { return p_.n * output_[kDepth] * output_[kHeight] * output_[kWidth]; }
  int64_t columns() const { return p_.k / p_.groups; }
  int64_t depth() const { return p_.filter[kDepth] * p_.filter[kHeight] * p_.filter[kWidth] * channels_; }

  // The pixels under the filter that makes output pixel i: every tap's channels, zeros outside of the image.
  void Left(int64_t group, int64_t i, float* to) const {
    Spatial out;
    for (const int dimension : {kWidth, kHeight, kDepth}) {
      out[dimension] = i % output_[dimension];
      i /= output_[dimension];
    }
    Spatial tap;
    for (tap[kDepth] = 0; tap[kDepth] < p_.filter[kDepth]; ++tap[kDepth]) {
      for (tap[kHeight] = 0; tap[kHeight] < p_.filter[kHeight]; ++tap[kHeight]) {
        for (tap[kWidth] = 0; tap[kWidth] < p_.filter[kWidth]; ++tap[kWidth], to += channels_) {
          LeftTap(group, i, out, tap, to);
        }
      }
    }
  }
  void Right(int64_t group, int64_t j, float* to, int64_t step) const {
    const int64_t taps = depth() / channels_;
    const int64_t first = (group * columns() + j) * taps;
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t c = 0; c < channels_; ++c, to += step) *to = operands_.b.At(first + tap, c);
    }
  }
  int64_t StoredRow(int64_t /*group*/, int64_t i) const { return i; }
  int64_t StoredColumn(int64_t group, int64_t j) const { return group * columns() + j; }
  float Bias(int64_t /*i*/, int64_t j) const { return p_.bias == ConvBias::kNone ? 0.0f : operands_.bias.At(0, j); }

 private:
  void LeftTap(int64_t group, int64_t image, const Spatial& out, const Spatial& tap, float* to) const {
    int64_t pixel = image;
    for (const int i : {kDepth, kHeight, kWidth}) {
      const int64_t position = out[i] * p_.stride[i] - p_.pad_before[i] + tap[i] * p_.dilation[i];
      if (position < 0 || position >= p_.input[i]) {
        std::fill_n(to, channels_, 0.0f);
        return;
      }
      pixel = pixel * p_.input[i] + position;
    }
    const int64_t first = operands_.a.shape.RowStart(pixel) + group * channels_;
    for (int64_t c = 0; c < channels_; ++c) to[c] = ElementAt(operands_.a.bytes.data(), p_.x, first + c);
  }

  const ConvProblem& p_;
  const HostOperands& operands_;
  const Spatial output_;
  const int64_t channels_;  // of a group
};

// Whether both are so large that the type has no number for one of them, or nearly so: f16 stores what is beyond its
// largest number as infinity.
bool BothOverflow(DataType type, double out, double reference) {
  constexpr double kNearly = 0.99;
  if (ir::InfoOf(type).Saturates()) return false;
  const double limit = kNearly * ir::LargestOf(type);
  return std::abs(reference) > limit && std::abs(out) > limit && std::signbit(out) == std::signbit(reference);
}

void CountBad(int64_t index, int64_t& count, int64_t& first) {
  ++count;
  if (first < 0 || index < first) first = index;
}

// How far a number that is rounded to the type may be from `value`.
double HalfPlace(DataType type, double value) {
  const auto& format = ir::InfoOf(type).format;
  const int bits = format ? base::InfoOf(*format).mantissa_bits : 23;
  const double normal = std::ldexp(std::abs(value), -1 - bits);
  // Below the least normal number places are no shorter.
  std::byte rounded[4];
  StoreElement(rounded, type, 0, static_cast<float>(value));
  return std::max(normal, std::abs(ElementAt(rounded, type, 0) - value));
}

// What an element is compared with: the value, or the nearest that its range has.
enum class Judgement { kByValue, kByRange, kByRangeAndEach };

void Count(const HostTensor& d, int64_t row, int64_t column, const ValueRange& range, Judgement judgement,
           Comparison& into) {
  const double out = d.At(row, column);
  const double reference = range.at;
  ++into.compared;
  if (BothOverflow(d.shape.type, out, reference)) return;
  const int64_t index = row * d.shape.Inner() + column;
  if (!std::isfinite(out) && std::isfinite(reference)) return CountBad(index, into.not_finite, into.first_not_finite);
  if (!std::isfinite(reference)) return;  // the inputs overflow; nothing to compare
  const double nearest = judgement == Judgement::kByValue ? reference : range.Nearest(out);
  if (judgement == Judgement::kByRangeAndEach &&
      std::abs(out - nearest) > kPlaceSlack * HalfPlace(d.shape.type, nearest)) {
    CountBad(index, into.outside, into.first_outside);
  }
  into.error_squares += (out - nearest) * (out - nearest);
  into.reference_squares += reference * reference;
  std::byte rounded[4];
  StoreElement(rounded, d.shape.type, 0, static_cast<float>(reference));
  const double unavoidable = ElementAt(rounded, d.shape.type, 0) - reference;
  if (std::isfinite(unavoidable)) into.rounding_squares += unavoidable * unavoidable;
}

// As conversions to the type leave a value that is beyond its largest number.
ValueRange Saturated(DataType type, const ValueRange& value) {
  if (!ir::InfoOf(type).Saturates()) return value;
  return value.Through([&](double v) { return std::clamp(v, -ir::LargestOf(type), ir::LargestOf(type)); });
}

// The values of users' functions, which are not computed one by one: elements come by until a function whose values are
// not known yet, leave their inputs, and come by again once it was evaluated.
class FunctionValues {
 public:
  // `count`: of elements of D.
  FunctionValues(const Epilogue& epilogue, int64_t count) {
    const size_t gate = ir::GateOf(epilogue);
    for (size_t i = 0; i < epilogue.size(); ++i) {
      const FunctionStep& function = epilogue[i].function;
      if (!function) continue;
      size_t inputs = function->joins_pairs ? 2 : 1;
      for (const FunctionParameter& p : function->parameters) inputs += p.operand != FunctionOperand::kTable;
      const int64_t calls = kPoints * (i < gate && gate < epilogue.size() ? 2 * count : count);
      functions_.push_back({calls, std::vector<float>(inputs * static_cast<size_t>(calls)), {}});
    }
  }
  size_t size() const { return functions_.size(); }
  bool complete() const { return known_ == functions_.size(); }
  bool Knows(size_t function) const { return function < known_; }
  float& Input(size_t function, size_t parameter, int64_t call) {
    Function& of = functions_[function];
    return of.inputs[parameter * static_cast<size_t>(of.calls) + static_cast<size_t>(call)];
  }
  float Result(size_t function, size_t result, int64_t call) const {
    const Function& of = functions_[function];
    return of.results[result * static_cast<size_t>(of.calls) + static_cast<size_t>(call)];
  }
  // From the least to the greatest of an element's.
  ValueRange RangeOf(size_t function, size_t result, int64_t element) const {
    const auto at = [&](int64_t point) { return double{Result(function, result, kPoints * element + point)}; };
    return ValueRange::Hull(at(0), at(1), at(2));
  }
  // Of the first function that is not known.
  Status EvaluateNext(const EvaluateFunction& evaluate) {
    LS_CHECK(evaluate != nullptr, "nobody evaluates the users' functions of the epilogue");
    Function& next = functions_[known_];
    LS_ASSIGN(next.results, evaluate(known_, next.inputs, next.calls));
    ++known_;
    return Ok();
  }

 private:
  struct Function {
    int64_t calls = 0;  // kPoints for each element, or for each column of its pair
    std::vector<float> inputs, results;
  };
  std::vector<Function> functions_;
  size_t known_ = 0;  // the first so many
};

// What becomes of a sum, in double precision.
class Finish {
 public:
  // Without `totals` those are left out.
  template <typename Kind>
  Finish(const Kind& problem, const HostOperands& operands, DataType output, EpilogueTotals* totals)
      : output_(output),
        alpha_(problem.alpha),
        beta_(problem.beta),
        epilogue_(problem.epilogue),
        operands_(operands),
        totals_(totals),
        gate_(ir::GateOf(problem.epilogue)),
        problem_(problem),
        sum_error_(SumErrorFactor(problem_)),
        judgement_(!ir::HasJumps(problem.epilogue) ? Judgement::kByValue
                   : ir::CallsFunctions(problem_)  ? Judgement::kByRange
                                                   : Judgement::kByRangeAndEach) {
    if (problem.scale == Scaling::kTensor) {
      alpha_ *= double{operands.scale_a.At(0, 0)} * double{operands.scale_b.At(0, 0)};
    }
    if (ir::IsEightBit(output) && problem.scale != Scaling::kNone) last_ = operands.scale_d.At(0, 0);
  }

  // Columns of the product that make one of D.
  int64_t joined() const { return gate_ < epilogue_.size() ? 2 : 1; }

  // The column of B that is multiplied `index`-th: those of a pair one after the other.
  template <typename View>
  int64_t ColumnOfB(const View& view, int64_t index) const {
    return ir::ColumnOfB(epilogue_, index, view.columns());
  }

  // Counts D's element, given the sums of joined() products from the `j`-th on with the sums of their magnitudes, and
  // what the epilogue stores on the way. Where a function of the epilogue is not known yet, its inputs are left for
  // `element` of D, and no more happens.
  template <typename View>
  void operator()(const View& view, int64_t batch, int64_t i, int64_t j, const double* sums, const double* magnitudes,
                  const HostTensor& d, Comparison& into, FunctionValues& functions, int64_t element) const {
    const int64_t row = view.StoredRow(batch, i);
    std::array<ValueRange, 2> values{};
    int64_t known = 0;
    Passed passed;
    for (int64_t c = 0; c < joined(); ++c) {
      const int64_t column = view.StoredColumn(batch, ColumnOfB(view, j + c));
      ValueRange value = Rounded(ValueRange::Around(sums[c], sum_error_ * magnitudes[c]) * alpha_);
      value = Rounded(value + static_cast<double>(view.Bias(i, column)));
      if (beta_ != 0) value = Rounded(value + beta_ * static_cast<double>(operands_.c.At(row, column)));
      passed = {};
      const auto before = After(0, gate_, passed, value, {i, row, column, joined() * element + c}, into, functions);
      if (before) values[static_cast<size_t>(known++)] = *before;
    }
    if (known < joined()) return;
    const Place own{i, row, view.StoredColumn(batch, j) / joined(), element};
    std::optional<ValueRange> value = values[0];
    if (joined() > 1) {
      value = Joined(passed, values, own, into, functions);
      if (value) value = After(gate_ + 1, epilogue_.size(), passed, *value, own, into, functions);
    }
    if (value) Count(d, row, own.column, Saturated(output_, Rounded(*value * last_)), judgement_, into);
  }

 private:
  struct Place {
    int64_t row_of_product, row, column;
    int64_t call;  // of a function there
  };
  // How many operands and functions of the epilogue belong to steps that a value has passed.
  struct Passed {
    size_t operands = 0, functions = 0;
  };

  static float OperandOf(const FunctionParameter& parameter, const HostTensor& tensor, const Place& at) {
    if (parameter.operand == FunctionOperand::kPerRow) return tensor.At(0, at.row_of_product);
    if (parameter.operand == FunctionOperand::kPerColumn) return tensor.At(0, at.column);
    return parameter.operand == FunctionOperand::kPerElement ? tensor.At(at.row, at.column) : 0.0f;
  }

  // After one operation in f32.
  static ValueRange Rounded(const ValueRange& value) { return value.Widened(kStepError * value.Magnitude()); }

  // At one point of the ranges of the values: 0, what they are; 1 and 2, their ends.
  static void LeaveInputs(const FunctionCall& call, const HostTensor* operands, std::span<const ValueRange> values,
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

  void CountOutputs(const FunctionCall& call, const HostTensor* operands, const Place& at, Comparison& into,
                    const FunctionValues& functions, size_t function) const {
    size_t result = 1;
    for (const FunctionParameter& p : call.parameters) {
      if (p.operand == FunctionOperand::kOutput) {
        const ValueRange value = functions.RangeOf(function, result++, at.call);
        Count(*operands, at.row, at.column, Saturated(operands->shape.type, value), judgement_, into);
      }
      if (p.operand != FunctionOperand::kNumber) ++operands;
    }
  }

  // What a function makes of a value, or of those of a pair; none where that is not known yet.
  std::optional<ValueRange> Called(const FunctionCall& call, size_t operand, std::span<const ValueRange> values,
                                   const Place& at, Comparison& into, FunctionValues& functions,
                                   size_t function) const {
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

  // Behind the step that joins the values of a pair.
  std::optional<ValueRange> Joined(Passed& passed, std::span<const ValueRange> values, const Place& at,
                                   Comparison& into, FunctionValues& functions) const {
    const EpilogueStep& gate = epilogue_[gate_];
    const size_t own = passed.operands;
    passed.operands += ir::TensorsOf(gate, output_).size();
    if (gate.function) return Called(*gate.function, own, values, at, into, functions, passed.functions++);
    return Rounded(Applied(ir::InfoOf(gate.kind).function, gate.numbers, values[0]) * values[1]);
  }

  ValueRange Applied(ir::Function function, const std::array<double, 2>& numbers, const ValueRange& value) const {
    const ValueRange result = value.Through([&](double v) { return ir::Evaluate(function, numbers, v); });
    return result.Widened(FunctionError(function, problem_, value.Magnitude()));
  }

  std::optional<ValueRange> After(size_t first, size_t end, Passed& passed, ValueRange value, const Place& at,
                                  Comparison& into, FunctionValues& functions) const {
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

  // Totals are added up once: when all functions are known.
  ValueRange After(const EpilogueStep& step, size_t operand, const ValueRange& value, const Place& at, Comparison& into,
                   bool totals) const {
    const ir::StepInfo& info = ir::InfoOf(step.kind);
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
        return Rounded(value * factor).Widened(FunctionError(info.function, problem_, other) * value.Magnitude());
      }
      case ir::StepAction::kStore: {
        const HostTensor& to = operands_.epilogue[operand];
        Count(to, at.row, at.column, Saturated(to.shape.type, value), judgement_, into);
        return value;
      }
      case ir::StepAction::kCut:
        return Applied(output_ == DataType::kBf16 ? ir::Function::kCutBf16 : ir::Function::kCutF16, {}, value);
      case ir::StepAction::kSum:
        if (totals && totals_ != nullptr) totals_->Add(operand, PlaceOfTotal(info.operand, at), value);
        return value;
      case ir::StepAction::kAmax:
        if (totals && totals_ != nullptr) totals_->Raise(operand, PlaceOfTotal(info.operand, at), std::abs(value.at));
        return value;
      case ir::StepAction::kGate:
      case ir::StepAction::kCall:
        break;
    }
    LS_CHECK(false, "unknown action ", static_cast<int>(info.action));
  }

  double Other(const EpilogueStep& step, size_t operand, const Place& at) const {
    const ir::StepOperand of = ir::InfoOf(step.kind).operand;
    if (of == ir::StepOperand::kNone) return step.numbers[0];
    const HostTensor& tensor = operands_.epilogue[operand];
    if (of == ir::StepOperand::kRowVector) return tensor.At(0, at.row_of_product);
    if (of == ir::StepOperand::kColumnVector) return tensor.At(0, at.column);
    if (of == ir::StepOperand::kBlocks) return tensor.At(at.row_of_product / kScaleRun, at.column / kScaleRun);
    return tensor.At(at.row, at.column);
  }

  static int64_t PlaceOfTotal(ir::StepOperand operand, const Place& at) {
    if (operand == ir::StepOperand::kRowTotal) return at.row_of_product;
    return operand == ir::StepOperand::kColumnTotal ? at.column : 0;
  }

  const DataType output_;
  double alpha_;
  const double beta_;
  double last_ = 1;  // the factor of D
  const Epilogue& epilogue_;
  const HostOperands& operands_;
  EpilogueTotals* const totals_;
  const size_t gate_;
  const Problem problem_;
  const double sum_error_;
  const Judgement judgement_;
};

// Sums of kRows x kColumns elements; `a` has kRows rows of k, `b` has k rows of kColumns.
void MultiplyBlock(int64_t k, const float* a, const float* b, double (&sums)[kRows][kColumns]) {
  for (auto& row : sums) std::fill(std::begin(row), std::end(row), 0.0);
  for (int64_t q = 0; q < k; ++q) {
    for (int r = 0; r < kRows; ++r) {
      const double left = a[r * k + q];
      for (int c = 0; c < kColumns; ++c) sums[r][c] += left * static_cast<double>(b[q * kColumns + c]);
    }
  }
}

// Rows [first_row, last_row) of columns [first, first + kColumns) of one product.
struct Piece {
  int64_t batch, first_row, last_row, first;
};

// The root of the sum of squares of `count` numbers, `step` apart. The sum of the magnitudes of products is at most the
// product of both factors' lengths.
double LengthOf(const float* values, int64_t count, int64_t step) {
  double squares = 0;
  for (int64_t q = 0; q < count; ++q) squares += double{values[q * step]} * double{values[q * step]};
  return std::sqrt(squares);
}

template <typename View>
Comparison ComparePiece(const View& view, const Finish& finish, const HostTensor& d, const Piece& piece,
                        FunctionValues& functions) {
  const int64_t columns = std::min<int64_t>(kColumns, view.columns() - piece.first);
  const int64_t depth = view.depth();
  std::vector<float> b(static_cast<size_t>(depth * kColumns)), a(static_cast<size_t>(depth * kRows));
  for (int64_t c = 0; c < columns; ++c) {
    view.Right(piece.batch, finish.ColumnOfB(view, piece.first + c), b.data() + c, kColumns);
  }
  double right[kColumns];
  for (int64_t c = 0; c < columns; ++c) right[c] = LengthOf(b.data() + c, depth, kColumns);
  double sums[kRows][kColumns], magnitudes[kColumns];
  Comparison result;
  for (int64_t row = piece.first_row; row < piece.last_row; row += kRows) {
    const int64_t rows = std::min<int64_t>(kRows, piece.last_row - row);
    for (int64_t r = 0; r < rows; ++r) view.Left(piece.batch, row + r, a.data() + r * depth);
    MultiplyBlock(depth, a.data(), b.data(), sums);
    for (int64_t r = 0; r < rows; ++r) {
      const double left = LengthOf(a.data() + r * depth, depth, 1);
      for (int64_t c = 0; c < columns; ++c) magnitudes[c] = left * right[c];
      for (int64_t c = 0; c < columns; c += finish.joined()) {
        const int64_t j = piece.first + c;
        const int64_t element = ((piece.batch * view.rows() + row + r) * view.columns() + j) / finish.joined();
        finish(view, piece.batch, row + r, j, &sums[r][c], &magnitudes[c], d, result, functions, element);
      }
    }
  }
  return result;
}

Comparison Total(const std::vector<Comparison>& parts, std::string reference) {
  Comparison total;
  for (const Comparison& part : parts) total.Add(part);
  total.reference = std::move(reference);
  return total;
}

template <typename View>
Result<Comparison> CompareView(const View& view, const Finish& finish, const HostTensor& d, FunctionValues functions,
                               const EvaluateFunction& evaluate) {
  // A convolution may have few columns and very many rows, so rows are shared out too.
  constexpr int64_t kRowsOfPiece = 1024;
  std::vector<Piece> pieces;
  for (int64_t batch = 0; batch < view.batches(); ++batch) {
    for (int64_t first = 0; first < view.columns(); first += kColumns) {
      for (int64_t row = 0; row < view.rows(); row += kRowsOfPiece) {
        pieces.push_back({batch, row, std::min(view.rows(), row + kRowsOfPiece), first});
      }
    }
  }
  std::vector<Comparison> parts(pieces.size());
  const auto pass = [&] {
    ParallelFor(static_cast<int64_t>(pieces.size()), [&](int64_t item) {
      parts[static_cast<size_t>(item)] = ComparePiece(view, finish, d, pieces[static_cast<size_t>(item)], functions);
    });
  };
  for (size_t i = 0; i < functions.size(); ++i) {
    pass();
    LS_TRY(functions.EvaluateNext(evaluate));
  }
  pass();
  return Total(parts, "cpu");
}

template <typename View>
Result<Comparison> SampleView(const View& view, const Finish& finish, const HostTensor& d, int64_t samples,
                              uint64_t seed, FunctionValues functions, const EvaluateFunction& evaluate) {
  std::mt19937_64 random(seed);
  const int64_t columns = view.columns() / finish.joined();  // of D
  std::uniform_int_distribution<int64_t> element(0, view.batches() * view.rows() * columns - 1);
  std::vector<int64_t> chosen(static_cast<size_t>(samples));
  for (int64_t& index : chosen) index = element(random);
  std::vector<Comparison> parts(chosen.size());
  const auto compare = [&](int64_t item) {
    const int64_t index = chosen[static_cast<size_t>(item)];
    const int64_t j = index % columns * finish.joined(), i = index / columns % view.rows();
    const int64_t batch = index / columns / view.rows();
    std::vector<float> left(static_cast<size_t>(view.depth())), right(left.size());
    view.Left(batch, i, left.data());
    double sums[2] = {}, magnitudes[2] = {};
    for (int64_t c = 0; c < finish.joined(); ++c) {
      view.Right(batch, finish.ColumnOfB(view, j + c), right.data(), 1);
      for (size_t q = 0; q < left.size(); ++q) {
        const double product = static_cast<double>(left[q]) * static_cast<double>(right[q]);
        sums[c] += product;
        magnitudes[c] += std::abs(product);
      }
    }
    Comparison& part = parts[static_cast<size_t>(item)];
    part = {};
    finish(view, batch, i, j, sums, magnitudes, d, part, functions, item);
  };
  for (size_t i = 0; i < functions.size(); ++i) {
    ParallelFor(samples, compare);
    LS_TRY(functions.EvaluateNext(evaluate));
  }
  ParallelFor(samples, compare);
  return Total(parts, base::Cat("cpu, ", samples, " elements"));
}

GemmView ViewOf(const GemmProblem& problem, const HostOperands& operands) { return {problem, operands}; }
ConvView ViewOf(const ConvProblem& problem, const HostOperands& operands) { return {problem, operands}; }

}  // namespace

std::vector<HostTensor> HostOperands::RandomEpilogue(const Problem& problem, uint64_t seed) {
  std::vector<HostTensor> operands;
  for (const ir::EpilogueTensor& operand : ir::EpilogueTensors(problem)) {
    // Each has a seed of its own: the role of C is not taken by another tensor of the shape.
    const uint64_t own = seed + 1 + operands.size();
    operands.push_back(operand.written || operand.total ? HostTensor::Poisoned(operand.tensor)
                                                        : HostTensor::Random(operand.tensor, OperandRole::kC, own));
    if (operand.total) std::fill(operands.back().bytes.begin(), operands.back().bytes.end(), std::byte{0});
  }
  return operands;
}

HostOperands HostOperands::Random(const Problem& problem, uint64_t seed) {
  const auto random = [&](OperandRole role) {
    return ir::Uses(problem, role) ? HostTensor::Random(Stored(problem, role), role, seed) : HostTensor{};
  };
  HostOperands operands{random(OperandRole::kA),     random(OperandRole::kB),      random(OperandRole::kC),
                        random(OperandRole::kBias),  random(OperandRole::kScaleA), random(OperandRole::kScaleB),
                        random(OperandRole::kScaleD)};
  operands.epilogue = RandomEpilogue(problem, seed);
  return operands;
}

const HostTensor* HostOperands::Of(OperandRole role) const {
  const HostTensor* const tensors[] = {&a, &b, &c, nullptr, &bias, &scale_a, &scale_b, &scale_d};
  static_assert(std::size(tensors) == ir::kRoles);
  return tensors[static_cast<size_t>(role)];
}

Result<Comparison> CompareAll(const Problem& problem, const HostOperands& operands, const HostTensor& d,
                              const EvaluateFunction& evaluate) {
  EpilogueTotals totals(problem);
  LS_ASSIGN(Comparison comparison,
            std::visit(
                [&](const auto& kind) {
                  const auto view = ViewOf(kind, operands);
                  const Finish finish(kind, operands, d.shape.type, &totals);
                  const int64_t elements = view.batches() * view.rows() * view.columns() / finish.joined();
                  return CompareView(view, finish, d, FunctionValues(kind.epilogue, elements), evaluate);
                },
                problem));
  totals.Compare(operands.epilogue, comparison);
  return comparison;
}

Comparison CompareAll(const Problem& problem, const HostOperands& operands, const HostTensor& d) {
  return CompareAll(problem, operands, d, {}).value();
}

Result<Comparison> CompareSample(const Problem& problem, const HostOperands& operands, const HostTensor& d,
                                 int64_t samples, uint64_t seed, const EvaluateFunction& evaluate) {
  return std::visit(
      [&](const auto& kind) {
        return SampleView(ViewOf(kind, operands), Finish(kind, operands, d.shape.type, nullptr), d, samples, seed,
                          FunctionValues(kind.epilogue, samples), evaluate);
      },
      problem);
}

Comparison CompareSample(const Problem& problem, const HostOperands& operands, const HostTensor& d, int64_t samples,
                         uint64_t seed) {
  return CompareSample(problem, operands, d, samples, seed, {}).value();
}

}  // namespace laneshift::measure
