// Statistics of timing samples: the median, and a confidence interval of the true median.
//
// Only order statistics, so that one interrupted call, or a clock that switches between two levels, has no effect.
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
