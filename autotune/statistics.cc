#include "autotune/statistics.h"

#include <algorithm>
#include <cmath>

namespace laneshift::autotune {

Estimate EstimateOf(std::vector<double> times) {
  if (times.empty()) return {};
  std::sort(times.begin(), times.end());
  const auto count = static_cast<double>(times.size());
  // How many of n samples fall below the median is binomial: mean n/2, deviation sqrt(n)/2.
  const double reach = 1.96 * std::sqrt(count) / 2;
  const auto last = static_cast<double>(times.size() - 1);
  const auto at = [&](double index) { return times[static_cast<size_t>(std::clamp(index, 0.0, last))]; };
  return {.median = times[times.size() / 2],
          .low = at(std::floor(count / 2 - reach)),
          .high = at(std::ceil(count / 2 + reach))};
}

Estimate EstimateOf(const std::vector<store::Sample>& samples) {
  std::vector<double> times;
  times.reserve(samples.size());
  for (const store::Sample& sample : samples) times.push_back(sample.time_us);
  return EstimateOf(std::move(times));
}

}  // namespace laneshift::autotune
