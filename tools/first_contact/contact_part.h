// ContactPart: one part of `doctor --first-contact`, in a separate process, because a fault of a kernel takes the
// process's context with it. It prints one JSON object per line as it learns something.
//
// Thread-safety: none; it is called once in a process.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "laneshift/engine.h"

namespace laneshift::tools {

// Called with each object.
using ContactLine = std::function<void(const nlohmann::ordered_json&)>;

// `part`:
//   device        one object: name, target, sms, driver, tensor_memory, emulated
//   policy:NAME   one object: policy, open, assumed, answer, detail
//   words         for each recorded word: name, recorded, here
//   sweep:SEED:N  for each of N kernels that the seed draws: kernel, verified, failures
// kInvalidArgument: another one. kUnsupported: the device's target has nothing of this.
Status RunContactPart(const Engine& engine, const std::string& part, const ContactLine& line);

}  // namespace laneshift::tools
