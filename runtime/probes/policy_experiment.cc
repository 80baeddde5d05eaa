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
#define EXPERIMENT(policy, trial) {#policy, trial},
#define UNSETTLED(policy, why) {#policy, nullptr, why},
#include "runtime/probes/policy_experiments.def"
  };
}

Result<PolicyAnswer> AskDevice(const ProbeDevice& on, const PolicyExperiment& experiment) {
  if (!on.target.Has(target::Feature::kTensorMemory)) {
    return MakeError(ErrorCode::kUnsupported,
                     Cat(experiment.policy, " is a question about Tensor Memory, which ", on.target.name, " has not"));
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
