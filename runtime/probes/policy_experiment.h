// PolicyExperiment: asks a device one of the questions that the emulator's policies answer by assumption
// (emulator/units/policies.def): a kernel, and the words that each answer leaves.
//
// Thread-safety: none; the device is used exclusively.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "laneshift/result.h"
#include "runtime/probes/rate_probe.h"

namespace laneshift::runtime {

// A word that says nothing about the answer.
inline constexpr uint32_t kAnyWord = 0xdeadbeef;

// An answer, and what it leaves in `out`: the words of all CTAs.
struct PolicyPrediction {
  std::string_view answer;
  std::vector<uint32_t> words;
};
struct PolicyTrial {
  RateProbe kernel;  // it runs once, with one iteration; RateProbe::expected is not used
  std::vector<PolicyPrediction> predictions{};
  std::string_view fault{};  // the answer of which a fault of the kernel is the sign; empty: none
};

// What an experiment's instructions are not on every target.
enum class TrialNeeds : uint8_t { kTensorMemory, kMovesLanes, kIntegers, kScalesSparse };
bool Has(const target::Target& target, TrialNeeds needs);

// A row of runtime/probes/policy_experiments.def.
struct PolicyExperiment {
  std::string_view policy;
  PolicyTrial (*trial)(const target::Target&);  // null: no kernel can tell
  TrialNeeds needs = TrialNeeds::kTensorMemory;
  std::string_view unsettled{};  // then: why
};
std::vector<PolicyExperiment> PolicyExperiments();

// What the device answered.
struct PolicyAnswer {
  std::string answer;  // of the policy's answers, or another prediction's; "other": no prediction fits, or "fault"
  std::string detail;  // of "other" and "fault": what was seen
};
// kUnsupported: the target does not have the experiment's instructions. A fault of the kernel is an answer;
// the context is useless afterwards.
Result<PolicyAnswer> AskDevice(const ProbeDevice& on, const PolicyExperiment& experiment);

}  // namespace laneshift::runtime
