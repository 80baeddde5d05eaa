// JsonLine: JSON as this program prints it, on one line.
//
// What a message quotes may be any bytes, a file's name for one. JSON is UTF-8: what is not is replaced by U+FFFD,
// where the library would throw.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace laneshift::tools {

template <typename Json>
std::string JsonLine(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace laneshift::tools
