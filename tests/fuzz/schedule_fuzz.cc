// Any text as a schedule: refused in one line, or a constraint that a schedule keeps which reads back from its own
// text.
#include "laneshift/schedule.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace laneshift;
  const auto constraint = ParseSchedule(fuzz::TextOf(data, size));
  if (!constraint) {
    fuzz::DemandReason(constraint.error());
    return 0;
  }
  const Schedule schedule = constraint->Apply({});
  fuzz::Demand(constraint->Admits(schedule), "a constraint does not admit what it was applied to");
  const std::string text = PrintSchedule(schedule);
  const auto again = ParseSchedule(text);
  fuzz::Demand(again && again->value == schedule, "'" + text + "' reads back as another schedule");
  return 0;
}
