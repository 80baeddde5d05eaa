// Any text as a problem: refused in one line, or a problem whose text form reads back as the same one.
#include "laneshift/problem.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace laneshift;
  const auto problem = ParseProblem(fuzz::TextOf(data, size));
  if (!problem) {
    fuzz::DemandReason(problem.error());
    return 0;
  }
  const std::string text = PrintProblem(*problem);
  const auto again = ParseProblem(text);
  fuzz::Demand(again.has_value(), "'" + text + "' is refused");
  fuzz::Demand(*again == *problem, "'" + text + "' reads back as another problem");
  fuzz::Demand(ProblemFlops(*problem) > 0 && ProblemBytes(*problem) > 0, "'" + text + "' has no work");
  return 0;
}
