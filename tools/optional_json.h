// Values that may be missing, as JSON: the value or null.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

namespace laneshift::tools {

template <typename T, typename Json = nlohmann::ordered_json>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace laneshift::tools
