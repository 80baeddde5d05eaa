#include "compiler/conv_geometry.h"

#include <algorithm>

namespace laneshift::compiler {
namespace {

void PlanReuse(const ConvProblem& problem, ConvGeometry& geometry) {
  const int64_t stride = problem.stride[kWidth];
  for (int64_t s = 0; s < problem.filter[kWidth]; ++s) {
    const int64_t distance = s * problem.dilation[kWidth];
    const int phase = static_cast<int>(distance % stride);
    const auto found = std::find(geometry.phases.begin(), geometry.phases.end(), phase);
    const auto index = static_cast<int>(found - geometry.phases.begin());
    if (found == geometry.phases.end()) geometry.phases.push_back(phase);
    geometry.columns.push_back({index, static_cast<int>(distance / stride)});
    geometry.halo = std::max(geometry.halo, geometry.columns.back().row);
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
  return geometry;
}

}  // namespace laneshift::compiler
