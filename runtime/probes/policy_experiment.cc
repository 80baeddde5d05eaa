#include "runtime/probes/policy_experiment.h"

#include "base/text.h"
#include "runtime/probes/policy_trials.h"
#include "runtime/probes/rate_run.h"

namespace laneshift::runtime {
namespace {

using base::Cat;

// The index of the first word that differs; the number of words: none.
size_t FirstDifference(const std::vector<uint32_t>& words, const std::vector<uint32_t>& predicted) {
  size_t i = 0;
  while (i < predicted.size() && (predicted[i] == kAnyWord || (i < words.size() && words[i] == predicted[i]))) ++i;
  return i;
}

}  // namespace

std::vector<PolicyExperiment> PolicyExperiments() {
  return {
#define EXPERIMENT(policy, trial, needs) {#policy, trial, TrialNeeds::needs},
#define UNSETTLED(policy, why) {#policy, nullptr, TrialNeeds::kTensorMemory, why},
#include "runtime/probes/policy_experiments.def"
  };
}

bool Has(const target::Target& target, TrialNeeds needs) {
  if (!target.Has(target::Feature::kTensorMemory)) return false;
  switch (needs) {
    case TrialNeeds::kTensorMemory:
      return true;
    case TrialNeeds::kMovesLanes:
      return target.mma.moves_lanes;
    case TrialNeeds::kIntegers:
      return target.mma.integers;
    case TrialNeeds::kScalesSparse:
      return target.mma.ScalesBlocks() && !target.family;
  }
  return false;
}

Result<PolicyAnswer> AskDevice(const ProbeDevice& on, const PolicyExperiment& experiment) {
  if (!Has(on.target, experiment.needs)) {
    return MakeError(ErrorCode::kUnsupported,
                     Cat(experiment.policy, " is a question about instructions that ", on.target.name, " has not"));
  }
  const PolicyTrial trial = experiment.trial(on.target);
  LS_ASSIGN(const ProbeWords ran, RunOnce(on, trial.kernel, 1));
  if (!ran.fault.empty()) return PolicyAnswer{std::string(trial.fault.empty() ? "fault" : trial.fault), ran.fault};
  std::string seen;
  for (const PolicyPrediction& prediction : trial.predictions) {
    const size_t at = FirstDifference(ran.out, prediction.words);
    if (at == prediction.words.size()) return PolicyAnswer{std::string(prediction.answer), {}};
    seen += Cat(seen.empty() ? "" : "; ", "not ", prediction.answer, ": word ", at, " is ", ran.out[at], ", not ",
                prediction.words[at]);
  }
  return PolicyAnswer{"other", seen};
}

}  // namespace laneshift::runtime
