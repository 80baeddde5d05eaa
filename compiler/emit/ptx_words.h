// Words of PTX that several files of the emitter spell: address spaces, and lists of operands of inline assembly.
//
// Thread-safety: constants and pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/text.h"

namespace laneshift::compiler {

constexpr unsigned kSharedSpace = 3, kTensorSpace = 6, kClusterSpace = 7;

// "$first, $first+1, …".
inline std::string AsmOperands(int first, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += base::Cat(i == 0 ? "$" : ", $", first + i);
  return text;
}

// "constraint,constraint,…".
inline std::string AsmConstraints(std::string_view constraint, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += base::Cat(i == 0 ? "" : ",", constraint);
  return text;
}

}  // namespace laneshift::compiler
