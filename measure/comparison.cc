#include "measure/comparison.h"

#include "base/text.h"

namespace laneshift::measure {

std::optional<std::string> FailureOf(const Comparison& comparison, const ir::StoredTensor& output) {
  if (comparison.not_finite > 0) {
    return base::Cat(
        comparison.not_finite, " of ", comparison.compared,
        " elements are not finite or were never written, first: ", output.PrintIndex(comparison.first_not_finite));
  }
  const double bound = ErrorBound(output.type);
  if (comparison.Accepted(bound)) return std::nullopt;
  return base::Cat("relative error ", comparison.RelativeError(), " is not below ", bound, " for ",
                   DataTypeName(output.type), " output");
}

}  // namespace laneshift::measure
