// Integer divisions that round up.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

namespace laneshift::base {

// How many units it takes to cover `extent`. REQUIRES: extent >= 0, unit > 0.
constexpr int64_t CeilDiv(int64_t extent, int64_t unit) { return (extent + unit - 1) / unit; }

// `extent` rounded up to a multiple of `unit`. REQUIRES: as CeilDiv.
constexpr int64_t RoundUp(int64_t extent, int64_t unit) { return CeilDiv(extent, unit) * unit; }

}  // namespace laneshift::base
