#include "measure/reference/comparison.h"

#include <algorithm>
#include <cmath>

#include "base/small_float.h"
#include "base/text.h"
#include "ir/element_type.h"
#include "ir/mma.h"
#include "ir/stored_tensor.h"
#include "measure/reference/product_view.h"

namespace laneshift::measure {
namespace {

constexpr int kInstructionProducts = 32;  // of 8-bit operands
// The unit in which an f32 number is truncated.
const double kCutUnit = std::ldexp(1, -23);
// That of an addend of an instruction, of the largest one (docs/numerics.md).
const double kAlignedUnit = std::ldexp(1, -25);

// Rounding to nearest errs by half of the last place at most; for numbers of all sizes by half of that on average.
double RoundingBound(DataType type) {
  if (ir::IsInteger(type)) return 0;
  const auto& format = ir::InfoOf(type).format;
  if (!format) return 1e-5;
  return std::max(2e-3, std::ldexp(1, -1 - base::InfoOf(*format).mantissa_bits));
}

// Each instruction truncates the sum so far, toward zero: half of the last place that it keeps, on average.
double SumBound(const Problem& problem, const target::Target& target) {
  if (target.eight_bit_sum_bits >= 23) return 0;
  const int64_t depth = ViewOf(problem).k;
  const SumPrecision sum = std::visit([](const auto& kind) { return kind.sum; }, problem);
  const int64_t run = sum == SumPrecision::kFast ? depth : std::min(depth, kPromotedRun);
  const auto instructions = static_cast<double>((run + kInstructionProducts - 1) / kInstructionProducts);
  return (1 + instructions) * std::ldexp(1, -1 - target.eight_bit_sum_bits);
}

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

}  // namespace

bool NeedsRanges(const Problem& problem) {
  constexpr int64_t kFewElements = 256;
  const Epilogue& epilogue = ir::EpilogueOf(problem);
  const bool approximates = std::any_of(epilogue.begin(), epilogue.end(), [&](const EpilogueStep& step) {
    return FunctionError(ir::InfoOf(step.kind).function, problem, 1) > 0;
  });
  const bool few = ir::Stored(problem, ir::OperandRole::kD).Elements() <= kFewElements;
  return ir::HasJumps(epilogue) || (approximates && few);
}

bool NeedsHost(const Problem& problem) {
  return NeedsRanges(problem) || std::holds_alternative<GroupedGemmProblem>(problem) ||
         ir::OutputScalingOf(problem) != OutputScaling::kNone;
}

double SumErrorFactor(const Problem& problem) {
  if (ir::IsInteger(ir::Stored(problem, ir::OperandRole::kA).type)) return kCutUnit / 2;  // of the conversion to f32
  const auto depth = static_cast<double>(ViewOf(problem).k);
  // Each product and the sum so far are cut where the largest of them has the last of the bits that are kept.
  const int products = InstructionProducts(problem);
  const double instruction = kCutUnit + (products + 1) * kAlignedUnit;
  double factor = (depth / products + 2) * instruction;
  if (!ir::IsFloat8(ir::Stored(problem, ir::OperandRole::kA).type)) return factor;
  for (const target::Target& target : target::Targets()) {
    // Twice the average that SumBound has.
    factor = std::max(factor, 2 * SumBound(problem, target));
  }
  return factor;
}

double FunctionError(ir::Function function, const Problem& problem, double x) {
  switch (function) {
    case ir::Function::kIdentity:
    case ir::Function::kRelu:
    case ir::Function::kClamp:
    case ir::Function::kRint:
    case ir::Function::kCutBf16:
    case ir::Function::kCutF16:
      return 0;
    case ir::Function::kLeakyRelu:
      return kCutUnit * std::abs(x);
    case ir::Function::kGelu:
    case ir::Function::kGeluTanh:
    case ir::Function::kSilu:
    case ir::Function::kSigmoid:
    case ir::Function::kTanh:
      break;
  }
  // docs/epilogues.md has the formulas and their errors.
  const double size = std::max(1.0, std::abs(x));
  return StoresNarrowly(problem) ? size * std::ldexp(1, -11) : size * 1e-6;
}

double ReductionErrorFactor(double terms) {
  // Errors of single additions are as often up as down: they grow as the root of their number, with a margin of eight
  // standard deviations.
  return 8 * std::sqrt(std::max(1.0, terms)) * std::ldexp(1, -24);
}

double ErrorBound(const Problem& problem, const target::Target& target) {
  double bound = RoundingBound(ir::Stored(problem, ir::OperandRole::kD).type);
  if (ir::IsFloat8(ir::Stored(problem, ir::OperandRole::kA).type)) {
    bound += SumBound(problem, target);
  }
  return bound;
}

std::optional<std::string> FailureOf(const Comparison& comparison, const Problem& problem,
                                     const target::Target& target) {
  const ir::StoredTensor output = ir::Stored(problem, ir::OperandRole::kD);
  if (comparison.not_finite > 0) {
    return base::Cat(
        comparison.not_finite, " of ", comparison.compared,
        " elements are not finite or were never written, first: ", output.PrintIndex(comparison.first_not_finite));
  }
  if (comparison.overwritten > 0) {
    return base::Cat("the kernel wrote ", comparison.overwritten, " rows that belong to no group, first: row ",
                     comparison.first_overwritten);
  }
  if (comparison.outside > 0) {
    return base::Cat(comparison.outside, " of ", comparison.compared,
                     " elements have values that no order of a sum in f32 gives, first: ",
                     output.PrintIndex(comparison.first_outside));
  }
  if (comparison.factors_outside > 0) {
    return base::Cat(comparison.factors_outside,
                     " scale factors of D are none that a sum in f32 gives, or do not pad with zeros, first: byte ",
                     comparison.first_factor);
  }
  const double bound = ErrorBound(problem, target);
  if (!(comparison.reductions_error <= kReductionsSlack * bound)) {
    return base::Cat("relative error ", comparison.reductions_error, " of a reduction of the epilogue is not below ",
                     kReductionsSlack * bound);
  }
  if (comparison.Accepted(bound)) return std::nullopt;
  if (ir::IsInteger(output.type)) {
    return base::Cat("relative error ", comparison.RelativeError(), "; sums of integers must be exact");
  }
  return base::Cat("relative error ", comparison.RelativeError(), " is not below ", bound, " for ",
                   DataTypeName(output.type), " output");
}

}  // namespace laneshift::measure
