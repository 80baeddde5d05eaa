#include "compiler/conv_geometry.h"

#include <algorithm>

#include "compiler/conv_reach.h"

namespace laneshift::compiler {
namespace {

constexpr int64_t kLongestKnownFilter = 512;  // elements; its loads are unrolled

void PlanReuse(const ConvProblem& problem, ConvGeometry& geometry) {
  const int64_t stride = problem.stride[kWidth];
  const auto distance = [&](int64_t s) { return s * problem.dilation[kWidth]; };
  for (int64_t first = 0; first < problem.filter[kWidth]; ++first) {
    const auto same_phase = [&](int64_t s) { return (distance(s) - distance(first)) % stride == 0; };
    bool known = false;
    for (int64_t s = 0; s < first; ++s) known = known || same_phase(s);
    if (known) continue;
    const int phase = static_cast<int>(geometry.phases.size());
    geometry.phases.push_back(static_cast<int>(distance(first)));
    for (int64_t s = first; s < problem.filter[kWidth]; ++s) {
      if (!same_phase(s)) continue;
      const int row = static_cast<int>((distance(s) - distance(first)) / stride);
      geometry.columns.push_back({static_cast<int>(s), phase, row});
      geometry.halo = std::max(geometry.halo, row);
    }
  }
}

}  // namespace

ConvGeometry GeometryOf(const ConvProblem& problem, const Schedule& schedule) {
  ConvGeometry geometry;
  geometry.planes = problem.input[kDepth] != 1 || problem.filter[kDepth] != 1 || problem.pad_before[kDepth] != 0 ||
                    problem.pad_after[kDepth] != 0;
  geometry.output = problem.Output();
  geometry.channels = problem.c / problem.groups;
  geometry.filters = problem.k / problem.groups;
  geometry.taps = problem.filter[kDepth] * problem.filter[kHeight] * problem.filter[kWidth];
  if (schedule.reuse != Reuse::kIm2col) PlanReuse(problem, geometry);
  geometry.walk_q = geometry.output[kWidth] + geometry.halo;
  geometry.positions = problem.n * geometry.output[kDepth] * geometry.output[kHeight] * geometry.walk_q;
  geometry.run = schedule.a_load == LoadPath::kCopy ? geometry.channels * geometry.taps : geometry.channels;
  geometry.known_filter = schedule.a_load == LoadPath::kCopy && GatherWidth(problem) == 1 && !geometry.planes &&
                          problem.groups == 1 && geometry.filters <= schedule.tile_n &&
                          geometry.run <= kLongestKnownFilter;
  return geometry;
}

}  // namespace laneshift::compiler
