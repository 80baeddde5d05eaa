#include "measure/comparison.h"

#include <algorithm>
#include <cmath>

#include "base/small_float.h"
#include "base/text.h"
#include "ir/element_type.h"
#include "ir/stored_tensor.h"

namespace laneshift::measure {
namespace {

constexpr int kInstructionProducts = 32;  // of 8-bit operands

// Products that make one element of D.
int64_t DepthOf(const GemmProblem& p) { return p.k; }
int64_t DepthOf(const ConvProblem& p) {
  return p.filter[kDepth] * p.filter[kHeight] * p.filter[kWidth] * (p.c / p.groups);
}

// Rounding to nearest errs by half of the last place at most; for numbers of all sizes by half of that on average.
double RoundingBound(DataType type) {
  const auto& format = ir::InfoOf(type).format;
  if (!format) return 1e-5;
  return std::max(2e-3, std::ldexp(1, -1 - base::InfoOf(*format).mantissa_bits));
}

// Each instruction cuts the sum so far, toward zero: half of the last place that it keeps, on average.
template <typename Kind>
double SumBound(const Kind& problem, const target::Target& target) {
  if (target.eight_bit_sum_bits >= 23) return 0;
  const int64_t run = problem.sum == SumPrecision::kFast ? DepthOf(problem) : std::min(DepthOf(problem), kPromotedRun);
  const auto instructions = static_cast<double>((run + kInstructionProducts - 1) / kInstructionProducts);
  return (1 + instructions) * std::ldexp(1, -1 - target.eight_bit_sum_bits);
}

}  // namespace

double ErrorBound(const Problem& problem, const target::Target& target) {
  double bound = RoundingBound(ir::Stored(problem, ir::OperandRole::kD).type);
  if (ir::IsEightBit(ir::Stored(problem, ir::OperandRole::kA).type)) {
    bound += std::visit([&](const auto& kind) { return SumBound(kind, target); }, problem);
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
  const double bound = ErrorBound(problem, target);
  if (!(comparison.totals_error < kTotalsSlack * bound)) {
    return base::Cat("relative error ", comparison.totals_error, " of a total of the epilogue is not below ",
                     kTotalsSlack * bound);
  }
  if (comparison.Accepted(bound)) return std::nullopt;
  return base::Cat("relative error ", comparison.RelativeError(), " is not below ", bound, " for ",
                   DataTypeName(output.type), " output");
}

}  // namespace laneshift::measure
