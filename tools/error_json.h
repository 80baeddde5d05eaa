// A failure as programs read it: {"code": "invalid argument", "message": "...", "exit_code": 2}.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/exit_code.h"

namespace laneshift::tools {

inline nlohmann::ordered_json ErrorJson(const Error& error) {
  return {{"code", ErrorCodeName(error.code)},
          {"message", error.message},
          {"exit_code", static_cast<int>(ExitCodeOf(error.code))}};
}

}  // namespace laneshift::tools
