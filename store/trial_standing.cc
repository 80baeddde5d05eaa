#include "store/trial_standing.h"

namespace laneshift::store {

bool Counts(const TrialRecord& trial, const Circumstances& asking) {
  if (trial.generator != asking.revision.generator || trial.driver != asking.revision.driver) return false;
  if (trial.verdict == Verdict::kPassed) {
    // Times of before assemblers were recorded are better than none: they are measured again with the finalists.
    return trial.assembler.name.empty() || trial.assembler.name == asking.assembler.name;
  }
  const int64_t age = asking.now - trial.created;
  // A date to come, from a clock that was wrong, must not make a failure last.
  return trial.assembler == asking.assembler && age >= 0 && age < kFailureSeconds;
}

}  // namespace laneshift::store
