// Integer divisions that round up.
//
// Thread-safety: pure functions.
#pragma once

#include <type_traits>

namespace laneshift::base {

// How many units it takes to cover `extent`. REQUIRES: extent >= 0, unit > 0.
template <typename Integer>
constexpr Integer CeilDiv(Integer extent, std::type_identity_t<Integer> unit) {
  return (extent + unit - 1) / unit;
}

// `extent` rounded up to a multiple of `unit`. REQUIRES: as CeilDiv.
template <typename Integer>
constexpr Integer RoundUp(Integer extent, std::type_identity_t<Integer> unit) {
  return CeilDiv(extent, unit) * unit;
}

}  // namespace laneshift::base
