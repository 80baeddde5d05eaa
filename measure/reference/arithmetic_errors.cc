#include "measure/reference/arithmetic_errors.h"

#include <algorithm>
#include <cmath>

#include "base/small_float.h"
#include "ir/element_type.h"
#include "ir/mma.h"
#include "ir/stored_tensor.h"
#include "measure/reference/host_tensor.h"
#include "measure/reference/product_view.h"

namespace laneshift::measure {
namespace {

// An instruction truncates its sum to f32: up to one last place.
constexpr double kTruncation = 0x1p-23;
// It cuts each addend at 25 fraction bits of the largest one.
constexpr double kAlignedCut = 0x1p-25;

// tanh.approx.f32: its maximum relative error (PTX ISA, tanh).
constexpr double kTanhError = 0x1p-11;
// By ex2.approx.ftz.f32 (relative error 2^-22) and rcp.approx.ftz.f32 (one ulp, 2^-23) the longest formula, that of
// gelu, errs by less than 16 unit roundoffs of max(1, |x|).
constexpr double kExp2FormulaError = 16 * kUnitRoundoff;
// x (tanh(polynomial) + 1) / 2 instead of gelu: the distance of the two functions.
constexpr double kGeluFit = 2.9e-5;

// Products that one instruction adds before its sum is truncated to f32: at most those of 16-bit operands.
int InstructionProducts(const Problem& problem) {
  return std::min(16, ir::MmaDepth(ir::Stored(problem, ir::OperandRole::kA).type));
}

// Whether everything that the problem stores has 16 bits or fewer: then functions are the hardware's approximations.
bool StoresNarrowly(const Problem& problem) {
  const DataType output = ir::Stored(problem, ir::OperandRole::kD).type;
  if (ir::BitsOf(output) > 16) return false;
  for (const ir::EpilogueTensor& operand : ir::EpilogueTensors(problem)) {
    if (operand.written && DataTypeBytes(operand.tensor.type) > 2) return false;
  }
  return true;
}

SumPrecision SumOf(const Problem& problem) {
  return std::visit([](const auto& kind) { return kind.sum; }, problem);
}
Scaling ScalingOf(const Problem& problem) {
  return std::visit([](const auto& kind) { return kind.scale; }, problem);
}

// Whether the tensor core gets e4m3 and e5m2 products without scale factors of blocks.
bool AddsFloat8(const Problem& problem) {
  return ir::IsFloat8(ir::Stored(problem, ir::OperandRole::kA).type) && !ir::BlockScalingOf(ScalingOf(problem));
}

// Products in one accumulator, and how many instructions add them.
int64_t RunOf(const Problem& problem, int64_t depth) {
  return SumOf(problem) == SumPrecision::kFast ? depth : std::min(depth, kPromotedRun);
}

// Of sums that keep `bits`: each instruction's truncation loses half of a last place on average, always toward zero;
// the cut of a product half of one, up as often as down, so that those of a run add up like the root of their number.
double CutSumError(const Problem& problem, int bits) {
  const auto run = static_cast<double>(RunOf(problem, ViewOf(problem).k));
  const double instructions = std::ceil(run / static_cast<double>(kCutProducts));
  return std::ldexp(instructions, -1 - bits) + std::ldexp(std::sqrt(run), -2 - bits);
}

// Whether it is computed by an exponential; the others are single operations.
bool IsApproximated(ir::Function function) {
  switch (function) {
    case ir::Function::kIdentity:
    case ir::Function::kRelu:
    case ir::Function::kClamp:
    case ir::Function::kRint:
    case ir::Function::kCutBf16:
    case ir::Function::kCutF16:
    case ir::Function::kLeakyRelu:
      return false;
    case ir::Function::kGelu:
    case ir::Function::kGeluTanh:
    case ir::Function::kSilu:
    case ir::Function::kSigmoid:
    case ir::Function::kTanh:
      return true;
  }
  __builtin_unreachable();
}

// What the error of tanh.approx becomes in an approximated function of a value of this size.
double TanhFormulaError(ir::Function function, double size) {
  switch (function) {
    case ir::Function::kGelu:
      return size / 2 * kTanhError + kGeluFit;
    case ir::Function::kGeluTanh:
    case ir::Function::kSilu:
      return size / 2 * kTanhError;
    case ir::Function::kSigmoid:
      return kTanhError / 2;
    default:
      return kTanhError;
  }
}

// The part of one step. The functions are about half of their argument, or of 1: errors of the formulas by ex2.approx
// count twice, and those by tanh.approx, half of 2^-11 of the same, once.
ValueErrors ErrorsOf(const EpilogueStep& step, const Problem& problem) {
  const ir::StepInfo& info = ir::InfoOf(step.kind);
  const bool derivative = info.action == ir::StepAction::kDerivative;
  const bool call =
      info.action == ir::StepAction::kCall;  // compiled once inside of a kernel and once for the reference
  if (!call && (derivative ? DerivativeError(info.function, 1) : FunctionError(info.function, problem, 1)) == 0)
    return {.relative = kUnitRoundoff};
  ValueErrors errors{.relative = 2 * kExp2FormulaError, .absolute = derivative || call ? 0 : kExp2FormulaError};
  if (!derivative && !call && StoresNarrowly(problem)) {
    errors.relative += kTanhError;
    if (info.function == ir::Function::kGelu) errors.absolute += kGeluFit;
  }
  return errors;
}

}  // namespace

double HalfPlace(DataType type, double value) {
  if (ir::IsInteger(type)) return 0;
  const auto& format = ir::InfoOf(type).format;
  const int bits = format ? base::InfoOf(*format).mantissa_bits : 23;
  const double normal = std::ldexp(std::abs(value), -1 - bits);
  // Below the least normal number the last place is constant.
  std::byte rounded[4];
  StoreElement(rounded, type, 0, static_cast<float>(value));
  return std::max(normal, std::abs(ElementAt(rounded, type, 0) - value));
}

double LeastNormal(DataType type) {
  if (ir::IsInteger(type)) return 0;
  const auto& format = ir::InfoOf(type).format;
  return format ? std::ldexp(1, 1 - base::InfoOf(*format).bias) : 0x1p-126;
}

double SumErrorFactor(const Problem& problem) {
  if (ir::IsInteger(ir::Stored(problem, ir::OperandRole::kA).type)) return kUnitRoundoff;  // of the conversion to f32
  const auto depth = static_cast<double>(ViewOf(problem).k);
  // Each product and the sum so far are cut where the largest of them has the last of the bits that are kept.
  const int products = InstructionProducts(problem);
  return (depth / products + 2) * (kTruncation + (products + 1) * kAlignedCut);
}

double AverageCutFactor(const Problem& problem) {
  double factor = 0;
  for (const target::Target& target : target::Targets()) {
    if (AddsFloat8(problem) && target.eight_bit_sum_bits < 23)
      factor = std::max(factor, 2 * CutSumError(problem, target.eight_bit_sum_bits));
  }
  return factor;
}

std::optional<CutRule> CutRuleOf(const Problem& problem) {
  if (!AddsFloat8(problem)) return std::nullopt;
  int bits = 23;
  for (const target::Target& target : target::Targets()) bits = std::min(bits, target.eight_bit_sum_bits);
  if (bits == 23) return std::nullopt;
  const auto least = [&](ir::OperandRole role) { return LeastNormal(ir::Stored(problem, role).type); };
  const ProductView view = ViewOf(problem);
  const bool scaled = view.scale_run != 0;
  const auto* grouped = std::get_if<GroupedGemmProblem>(&problem);
  const bool parts = grouped != nullptr && grouped->DividesK();
  // Convolutions go through taps and channels, and parts of K begin, wherever their schedules say.
  const bool rows = view.kind == ProductView::kMatrices || (view.kind == ProductView::kGroups && !parts);
  return CutRule{.bits = bits,
                 .run = RunOf(problem, view.k),
                 .consecutive = rows && view.sparse_group == 0,
                 .segment = view.run,
                 .scaled = scaled,
                 .least_a = scaled ? 0 : least(ir::OperandRole::kA),
                 .least_b = scaled ? 0 : least(ir::OperandRole::kB)};
}

double FunctionError(ir::Function function, const Problem& problem, double x) {
  const double size = std::abs(x);
  if (function == ir::Function::kLeakyRelu) return kUnitRoundoff * size;
  if (!IsApproximated(function)) return 0;
  return kExp2FormulaError * std::max(1.0, size) + (StoresNarrowly(problem) ? TanhFormulaError(function, size) : 0);
}

double DerivativeError(ir::Function function, double x) {
  return IsApproximated(function) ? kExp2FormulaError * std::max(1.0, std::abs(x)) : 0;
}

double ReductionErrorFactor(double terms) {
  // Errors of single additions are as often up as down: they grow as the root of their number, with a margin of eight
  // standard deviations.
  return 8 * std::sqrt(std::max(1.0, terms)) * kUnitRoundoff;
}

ValueErrors ValueErrorsOf(const Problem& problem, const target::Target& target) {
  const DataType output = ir::Stored(problem, ir::OperandRole::kD).type;
  if (ir::IsInteger(output)) return {};
  // alpha, the bias, beta C, and the factor of D.
  ValueErrors errors{.relative = SumErrorFactor(problem) + 4 * kUnitRoundoff};
  if (AddsFloat8(problem) && target.eight_bit_sum_bits < 23)
    errors.relative += CutSumError(problem, target.eight_bit_sum_bits);
  for (const EpilogueStep& step : ir::EpilogueOf(problem)) {
    const ValueErrors own = ErrorsOf(step, problem);
    errors.relative += own.relative;
    errors.absolute += own.absolute;
    // A value that is off by a part of a last place crosses a number of the type with that probability, and jumps by
    // the whole place.
    if (ir::InfoOf(step.kind).action == ir::StepAction::kCut)
      errors.relative += std::sqrt(std::ldexp(errors.relative, output == DataType::kBf16 ? -7 : -10));
  }
  return errors;
}

double LargestValueError(const Problem& problem) {
  double largest = 0;
  for (const target::Target& target : target::Targets())
    largest = std::max(largest, 2 * ValueErrorsOf(problem, target).relative);
  return largest;
}

}  // namespace laneshift::measure
