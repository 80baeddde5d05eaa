// Profiles: answers to all questions of policies.def at once. "hardware" has what devices do and known kernels rely on,
// the default answers; "manual" has only what the manual promises (policy_profiles.def says where and why).
#pragma once

#include <string_view>
#include <vector>

#include "emulator/units/policies.h"

namespace laneshift::emulator {

struct ManualAnswer {
  std::string_view policy, answer, why;
};
const std::vector<ManualAnswer>& ManualAnswers();
// Overwrites all answers; a SetPolicy after it wins. The Error lists the profiles.
Status SetPolicyProfile(Policies& policies, std::string_view name);

}  // namespace laneshift::emulator
