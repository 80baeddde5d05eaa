#include "measure/reference/comparison.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "ir/element_type.h"
#include "ir/stored_tensor.h"

namespace laneshift::measure {

namespace {

// All of fewer sums may be close to zero by chance: what rounding of their products leaves is then large in their norm,
// and only the range of each says what is right.
constexpr int64_t kFewSums = 16;

bool HasFewSums(const Problem& problem) { return ir::Stored(problem, ir::OperandRole::kD).Elements() < kFewSums; }

}  // namespace

bool NeedsRanges(const Problem& problem) {
  // The mean square of so many independent errors is its expectation within 9 % (one standard deviation). Of fewer
  // values that are cut, one that jumps by a last place may be most of it.
  constexpr int64_t kFewElements = 256;
  const Epilogue& epilogue = ir::EpilogueOf(problem);
  const bool varies = std::any_of(epilogue.begin(), epilogue.end(), [&](const EpilogueStep& step) {
    const ir::StepInfo& info = ir::InfoOf(step.kind);
    return info.action == ir::StepAction::kCut || FunctionError(info.function, problem, 1) > 0;
  });
  const bool few = ir::Stored(problem, ir::OperandRole::kD).Elements() <= kFewElements;
  return ir::HasJumps(epilogue) || (varies && few);
}

bool NeedsHost(const Problem& problem) {
  return NeedsRanges(problem) || HasFewSums(problem) || std::holds_alternative<GroupedGemmProblem>(problem) ||
         ir::OutputScalingOf(problem) != OutputScaling::kNone;
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
  const ValueErrors errors = ValueErrorsOf(problem, target);
  if (!(comparison.reductions_error <= 2 * errors.relative)) {
    return base::Cat("relative error ", comparison.reductions_error, " of a reduction of the epilogue is above ",
                     2 * errors.relative);
  }
  if (comparison.Accepted(errors)) return std::nullopt;
  if (HasFewSums(problem) && comparison.ranged == comparison.compared) return std::nullopt;
  if (ir::IsInteger(output.type)) {
    return base::Cat("relative error ", comparison.RelativeError(), "; sums of integers must be exact");
  }
  return base::Cat("relative error ", comparison.RelativeError(), " is above ",
                   comparison.Allowed(errors) / std::sqrt(comparison.reference_squares), " for ",
                   DataTypeName(output.type), " output");
}

}  // namespace laneshift::measure
