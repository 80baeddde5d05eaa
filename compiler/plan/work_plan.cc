#include "compiler/plan/work_plan.h"

#include <algorithm>

#include "base/integer_math.h"
#include "compiler/contraction/bindings.h"
#include "compiler/contraction/conv_geometry.h"
#include "ir/layout.h"

namespace laneshift::compiler {
namespace {

// A problem as one product of matrices, as far as work depends on it.
struct WorkExtents {
  int64_t rows = 0, columns = 0, batches = 1;
  int tile_rows = 0;  // of D
};

WorkPlan PlanOver(const WorkExtents& extents, const Schedule& schedule) {
  const auto tiles_of = [](int64_t extent, int64_t tile, int64_t cluster) {
    return base::CeilDiv(extent, tile * cluster) * cluster;
  };
  WorkPlan plan{.rows = extents.rows,
                .columns = extents.columns,
                .tile_m = extents.tile_rows,
                .tile_n = schedule.tile_n,
                .tile_rows = tiles_of(extents.rows, extents.tile_rows, schedule.cluster_m),
                .tile_columns = tiles_of(extents.columns, schedule.tile_n, schedule.cluster_n),
                .batches = extents.batches,
                .cluster_m = schedule.cluster_m,
                .cluster_n = schedule.cluster_n,
                .raster = schedule.raster,
                .cuts_k = schedule.split_k > 1};
  if (schedule.scheduler == Scheduler::kClc) plan.source = ir::WorkSource::kLaunchControl;
  // A B that stays is of one column of tiles: in waves of whole rows, a CTA comes back to its own.
  if (schedule.b_keep > 0) plan.column_step = plan.tile_columns;
  return plan;
}

template <typename Kind>
int64_t SlicesOf(const Kind& problem, const Schedule& schedule) {
  return schedule.split_k == 1 ? 1 : std::min<int64_t>(schedule.split_k, KBlocksOf(problem, schedule));
}

}  // namespace

WorkPlan PlanWork(const Problem& problem, const Schedule& schedule) {
  return std::visit([&](const auto& kind) { return PlanWork(kind, schedule); }, problem);
}

WorkPlan PlanWork(const GemmProblem& problem, const Schedule& schedule) {
  WorkPlan plan = PlanOver(
      {.rows = problem.m, .columns = problem.n, .batches = problem.batch, .tile_rows = schedule.tile_m}, schedule);
  plan.slices = SlicesOf(problem, schedule);
  return plan;
}

WorkPlan PlanWork(const ConvProblem& problem, const Schedule& schedule) {
  const ConvGeometry geometry = GeometryOf(problem, schedule);
  WorkPlan plan = PlanOver({.rows = geometry.positions,
                            .columns = geometry.filters,
                            .batches = problem.groups,
                            .tile_rows = geometry.lost > 0 ? geometry.TileRows(schedule) : schedule.tile_m},
                           schedule);
  plan.slices = SlicesOf(problem, schedule);
  return plan;
}

WorkShares DivideWork(const WorkPlan& plan, int64_t most) {
  const int64_t units = plan.Units();
  WorkShares shares{.clusters = units};
  if (plan.source == ir::WorkSource::kStatic) {
    // The workspace has counters for so many tiles that are cut.
    const int64_t counted = int64_t{ir::WorkspaceLayout::kMostTiles} / plan.ClusterSize();
    shares.clusters = std::min({units * plan.slices, most, counted});
    if (plan.column_step > 1)
      shares.clusters = std::max(plan.column_step, shares.clusters / plan.column_step * plan.column_step);
  }
  shares.resident = std::min(shares.clusters, most);
  shares.waves = base::CeilDiv(units, shares.resident);
  shares.cut = plan.cuts_k ? units % shares.clusters : 0;
  shares.partials = shares.cut * plan.ClusterSize() * plan.slices;
  return shares;
}

}  // namespace laneshift::compiler
