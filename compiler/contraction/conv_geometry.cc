#include "compiler/contraction/conv_geometry.h"

#include <algorithm>

#include "compiler/legality/conv_reach.h"
#include "ir/program.h"

namespace laneshift::compiler {
namespace {

constexpr int64_t kLongestKnownFilter = 512;  // elements; its loads are unrolled

// A walk for each remainder of a column's distance by the stride.
void PlanPhases(const ConvProblem& problem, ConvGeometry& geometry) {
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
      geometry.columns.push_back({.s = static_cast<int>(s), .phase = phase, .row = row, .chain = phase});
      geometry.halo = std::max(geometry.halo, row);
    }
  }
}

// From the centre to the right, then from the left to the centre. REQUIRES: the filter has a centre.
void PlanMasked(const ConvProblem& problem, ConvGeometry& geometry) {
  const int64_t columns = problem.filter[kWidth];
  const int64_t centre = CentreColumn(problem);
  geometry.phases = {0};
  geometry.halo = static_cast<int>((columns - 1) * problem.dilation[kWidth]);
  for (int64_t i = 0; i < columns; ++i) {
    const int64_t s = (centre + i) % columns;
    const int64_t row = s * problem.dilation[kWidth];
    geometry.columns.push_back({.s = static_cast<int>(s),
                                .row = static_cast<int>(row),
                                .chain = s < centre ? 1 : 0,
                                .beside = static_cast<int>(row - problem.pad_before[kWidth])});
  }
}

}  // namespace

std::vector<ConvGeometry::Column> ConvGeometry::ColumnsOf(int chain) const {
  std::vector<Column> of_chain;
  for (const Column& column : columns) {
    if (column.chain == chain) of_chain.push_back(column);
  }
  return of_chain;
}

int ConvGeometry::TileRows(const Schedule& schedule) const { return schedule.tile_m - lost * ir::kRefreshedRows; }

int64_t CentreColumn(const ConvProblem& problem) {
  const int64_t pad = problem.pad_before[kWidth];
  const bool same = problem.stride[kWidth] == 1 && problem.Output()[kWidth] == problem.input[kWidth];
  return same && pad % problem.dilation[kWidth] == 0 ? pad / problem.dilation[kWidth] : -1;
}

ConvGeometry GeometryOf(const ConvProblem& problem, const Schedule& schedule) {
  ConvGeometry geometry;
  geometry.planes = problem.input[kDepth] != 1 || problem.filter[kDepth] != 1 || problem.pad_before[kDepth] != 0 ||
                    problem.pad_after[kDepth] != 0;
  geometry.output = problem.Output();
  geometry.channels = problem.c / problem.groups;
  geometry.filters = problem.k / problem.groups;
  geometry.taps = problem.filter[kDepth] * problem.filter[kHeight] * problem.filter[kWidth];
  const bool reuses = schedule.reuse != Reuse::kIm2col;
  const bool masks = reuses && schedule.border == Border::kMask && CentreColumn(problem) >= 0;
  geometry.masks_border = masks;
  if (masks) {
    PlanMasked(problem, geometry);
  } else if (reuses) {
    PlanPhases(problem, geometry);
  }
  geometry.walk_q = geometry.output[kWidth] + (masks ? 0 : geometry.halo);
  if (schedule.reuse == Reuse::kLaneShift && schedule.shift == ShiftForm::kFused) {
    for (int chain = 0; chain < geometry.Chains(); ++chain) {
      const std::vector<ConvGeometry::Column> columns = geometry.ColumnsOf(chain);
      geometry.lost = std::max(geometry.lost, columns.back().row - columns.front().row);
    }
  }
  geometry.positions = problem.n * geometry.output[kDepth] * geometry.output[kHeight] * geometry.walk_q;
  geometry.run = schedule.a_load == LoadPath::kCopy ? geometry.channels * geometry.taps : geometry.channels;
  geometry.known_filter = schedule.a_load == LoadPath::kCopy && GatherWidth(problem) == 1 && problem.groups == 1 &&
                          geometry.filters <= schedule.tile_n && geometry.run <= kLongestKnownFilter;
  return geometry;
}

}  // namespace laneshift::compiler
