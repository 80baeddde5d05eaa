#include "autotune/box_sizes.h"

#include <algorithm>
#include <numeric>

#include "base/integer_math.h"

namespace laneshift::autotune {

std::set<int> BoxSizes(const compiler::ConvGeometry& geometry, int64_t runs) {
  constexpr int64_t kMostParts = 6, kMostOutputs = 1024;
  const int64_t columns = compiler::ColumnsOfBox(geometry), lines = geometry.output[kHeight];
  const int64_t unit = std::lcm(columns, runs * geometry.direct_run) / columns;
  std::set<int> sizes;
  const auto add = [&](int64_t height) {
    if (height * columns <= kMostOutputs) sizes.insert(static_cast<int>(height * columns));
  };
  for (int64_t parts = 1; parts <= kMostParts; ++parts) {
    add(base::RoundUp(base::CeilDiv(lines, parts), unit));
    add(std::min(parts * unit, base::RoundUp(lines, unit)));
  }
  return sizes;
}

}  // namespace laneshift::autotune
