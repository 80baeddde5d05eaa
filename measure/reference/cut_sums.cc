#include "measure/reference/cut_sums.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/integer_math.h"

namespace laneshift::measure {
namespace {

using Columns = double[kCutColumns];

// A part of K: all products of a run, or of all runs where nobody knows which are in one.
struct Stretch {
  int64_t begin, end;
  int64_t runs;
};

// The place of the last bit that is kept of the stretch's products, at most.
void FindUnits(const CutRule& rule, const Stretch& part, const float* a, const float* b, int64_t step, int64_t columns,
               Columns& units) {
  Columns plus = {}, minus = {}, largest = {}, right = {};
  const double least_b = rule.least_b;
  double left = 0;
  for (int64_t q = part.begin; q < part.end; ++q) {
    const double x = a[q];
    if (x == 0) continue;
    const double x_size = std::max(std::abs(x), rule.least_a);
    left = std::max(left, x_size);
    for (int64_t c = 0; c < columns; ++c) {
      const double y = b[q * step + c], product = x * y;
      plus[c] += product > 0 ? product : 0;
      minus[c] += product < 0 ? -product : 0;
      const double y_size = y == 0 ? 0 : std::max(std::abs(y), least_b);
      right[c] = right[c] > y_size ? right[c] : y_size;
      const double size = x_size * y_size;
      largest[c] = largest[c] > size ? largest[c] : size;
    }
  }
  for (int64_t c = 0; c < columns; ++c) {
    double size = std::max(plus[c], minus[c]);
    if (part.runs > 1) size = std::min(size, static_cast<double>(rule.run) * left * right[c]);
    size = std::max(size, largest[c]);
    units[c] = size == 0 ? 0 : std::ldexp(rule.scaled ? size : std::ldexp(1, std::ilogb(size)), -rule.bits);
  }
}

// What is lost of the stretch's products below the unit; with factors the unit has another place for each product, and
// less than one is lost.
template <bool kScaled>
void AddLost(const Stretch& part, const float* a, const float* b, int64_t step, int64_t columns, const Columns& units,
             double* below, double* above) {
  Columns inverses;
  for (int64_t c = 0; c < columns; ++c) inverses[c] = units[c] == 0 ? 0 : 1 / units[c];
  for (int64_t q = part.begin; q < part.end; ++q) {
    const double x = a[q];
    if (x == 0) continue;
    for (int64_t c = 0; c < columns; ++c) {
      const double product = x * static_cast<double>(b[q * step + c]);
      double lost;
      if constexpr (kScaled) {
        lost = std::clamp(product, -units[c], units[c]);
      } else {
        lost = product - units[c] * static_cast<double>(static_cast<int32_t>(product * inverses[c]));
      }
      below[c] += std::max(lost, 0.0);
      above[c] += std::max(-lost, 0.0);
    }
  }
}

}  // namespace

void CutSums(const CutRule& rule, int64_t depth, const float* a, const float* b, int64_t step, int64_t columns,
             double* below, double* above) {
  LS_CHECK(columns <= kCutColumns, columns, " columns at once; there is room for ", kCutColumns);
  std::fill_n(below, columns, 0.0);
  std::fill_n(above, columns, 0.0);
  const int64_t length = rule.consecutive ? rule.run : std::max<int64_t>(depth, 1);
  for (int64_t begin = 0; begin < depth; begin += length) {
    const Stretch part{begin, std::min(depth, begin + length), base::CeilDiv(std::min(length, depth), rule.run)};
    Columns units;
    FindUnits(rule, part, a, b, step, columns, units);
    (rule.scaled ? AddLost<true> : AddLost<false>)(part, a, b, step, columns, units, below, above);
    // Each instruction truncates its result and, but for the first one, cuts the sum so far.
    const int64_t products = part.end - part.begin, segment = std::min(rule.segment, products);
    const int64_t instructions = base::CeilDiv(products, segment) * base::CeilDiv(segment, kCutProducts);
    const auto cuts = static_cast<double>(2 * (instructions + part.runs - 1) - 1);
    for (int64_t c = 0; c < columns; ++c) {
      below[c] += cuts * units[c];
      above[c] += cuts * units[c];
    }
  }
}

}  // namespace laneshift::measure
