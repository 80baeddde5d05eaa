// LS_CHECK(condition, "invariant, with values: ", value, …): aborts in every build if laneshift itself is wrong.
//
// Never for input: failures caused by a caller, file, driver or schedule are a Result (laneshift/result.h). A check
// without a message does not compile.
#pragma once

#include <string>

#include "base/text.h"

namespace laneshift::base {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition, const std::string& message);
}  // namespace laneshift::base

#define LS_CHECK(condition, first, ...)                                                         \
  do {                                                                                          \
    if (!(condition)) [[unlikely]] {                                                            \
      ::laneshift::base::CheckFailed(__FILE__, __LINE__, #condition,                            \
                                     ::laneshift::base::Cat(first __VA_OPT__(, ) __VA_ARGS__)); \
    }                                                                                           \
  } while (false)
