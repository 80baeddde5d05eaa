// What samples of a time say: the median, and where the true median lies.
//
// Order statistics alone, so that one interrupted call, or a clock that steps between two levels, moves nothing.
// Thread-safety: pure functions.
#pragma once

#include <vector>

#include "store/records.h"

namespace laneshift::autotune {

// The median and an interval that holds the true median with a probability of about 95 %.
struct Estimate {
  double median = 0, low = 0, high = 0;
};

// All zero without samples; with fewer than six the interval is all that was seen.
Estimate EstimateOf(std::vector<double> times);
Estimate EstimateOf(const std::vector<store::Sample>& samples);

}  // namespace laneshift::autotune
