// Text from elsewhere (a driver, a worker, the SQL of a damaged file) in one line.
//
// Thread-safety: pure function.
#pragma once

#include <string>
#include <string_view>

namespace laneshift::store {

// The text with a '?' for every byte that is no UTF-8 or is a control character.
std::string OneLine(std::string_view text);

}  // namespace laneshift::store
