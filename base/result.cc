#include "laneshift/result.h"

#include <array>

namespace laneshift {

std::string_view ErrorCodeName(ErrorCode code) {
  constexpr std::array<std::string_view, 9> kNames = {"invalid argument", "unsupported",  "resource exhausted",
                                                      "not found",        "corrupt",      "driver error",
                                                      "timeout",          "wrong result", "internal error"};
  return kNames.at(static_cast<size_t>(code));
}

Error MakeError(ErrorCode code, std::string message, const char* file, int line) {
  return Error{code, std::move(message), file, line};
}

}  // namespace laneshift
