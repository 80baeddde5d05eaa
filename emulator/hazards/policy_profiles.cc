#include "emulator/hazards/policy_profiles.h"

#include "base/text.h"

namespace laneshift::emulator {

const std::vector<ManualAnswer>& ManualAnswers() {
  static const auto* answers = new std::vector<ManualAnswer>{
#define MANUAL_ANSWER(field, answer, why) {#field, answer, why},
#include "emulator/hazards/policy_profiles.def"
  };
  return *answers;
}

Status SetPolicyProfile(Policies& policies, std::string_view name) {
  if (name != "hardware" && name != "manual")
    return MakeError(ErrorCode::kInvalidArgument, base::Cat("no profile is called '", name, "': hardware or manual"));
  policies = {};
  if (name == "hardware") return Ok();
  for (const ManualAnswer& manual : ManualAnswers())
    LS_TRY(SetPolicy(policies, base::Cat(manual.policy, "=", manual.answer)));
  return Ok();
}

}  // namespace laneshift::emulator
