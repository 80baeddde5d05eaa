// Source text that every user's function is compiled with.
//
// Thread-safety: constants.
#pragma once

#include <string_view>

namespace laneshift::nvrtc {

// laneshift/function_operands.h, as it is installed.
extern const std::string_view kFunctionOperands;
// nvrtc/binding.cuh.
extern const std::string_view kBinding;

}  // namespace laneshift::nvrtc
