// ValueRange: a value of the reference, and the range in which a kernel with sums in f32 may have it
// (docs/numerics.md).
//
// Thread-safety: values.
#pragma once

#include <algorithm>
#include <cmath>

namespace laneshift::measure {

struct ValueRange {
  double at = 0, low = 0, high = 0;

  static ValueRange Around(double value, double error) { return {value, value - error, value + error}; }

  bool Has(double value) const { return low <= value && value <= high; }
  // Extends the range to `value`.
  ValueRange Including(double value) const { return {at, std::min(low, value), std::max(high, value)}; }

  // The range of a function of it: from the least to the greatest at the value and at both ends, which covers the
  // values in between if the function is monotonic there.
  template <typename Function>
  ValueRange Through(const Function& function) const {
    return Hull(function(at), function(low), function(high));
  }
  static ValueRange Hull(double at, double a, double b) { return {at, std::min({at, a, b}), std::max({at, a, b})}; }
  ValueRange operator*(double factor) const { return Hull(at * factor, low * factor, high * factor); }
  ValueRange operator+(double term) const { return {at + term, low + term, high + term}; }
  ValueRange operator*(const ValueRange& other) const {
    const auto [least, greatest] =
        std::minmax({low * other.low, low * other.high, high * other.low, high * other.high});
    return Hull(at * other.at, least, greatest);
  }
  ValueRange Widened(double error) const { return Widened(error, error); }
  ValueRange Widened(double below, double above) const { return {at, low - below, high + above}; }

  // The largest magnitude in it, and how far its ends are from the value.
  double Magnitude() const { return std::max(std::abs(low), std::abs(high)); }
  double Spread() const { return std::max(at - low, high - at); }
  // The nearest value in it to `value`.
  double Nearest(double value) const { return std::clamp(value, low, high); }
};

}  // namespace laneshift::measure
