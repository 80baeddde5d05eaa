// The signature of a compiled function: the words of nvrtc/binding.cuh read back, and its name as its author wrote it.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "laneshift/epilogue_function.h"
#include "laneshift/result.h"

namespace laneshift::nvrtc {

struct Signature {
  bool is_gated = false;  // it takes a laneshift::Pair
  std::vector<FunctionParameter> parameters{};
};
// kInvalidArgument: which part of the signature is not supported, and what would be right.
Result<Signature> SignatureOf(const std::vector<int>& words);

// The functions of a relocatable module as C++ writes them: "Swish(float, float*)"; without those of the binding and of
// CUDA's headers.
std::vector<std::string> FunctionsOf(std::string_view ptx);
// "ns::Swish" of "ns::Swish(float, float*)".
std::string_view NameOfFunction(std::string_view function);

}  // namespace laneshift::nvrtc
