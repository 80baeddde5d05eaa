// The functions of runtime/probes/policy_experiments.def: each makes the kernel of one question.
//
// Thread-safety: pure functions.
#pragma once

#include "runtime/probes/policy_experiment.h"

namespace laneshift::runtime {

#define EXPERIMENT(policy, trial, needs) PolicyTrial trial(const target::Target& target);
#define UNSETTLED(policy, why)
#include "runtime/probes/policy_experiments.def"

}  // namespace laneshift::runtime
