#include "compiler/plan/work_plan.h"

#include <algorithm>
#include <cmath>

#include "base/integer_math.h"
#include "ir/layout.h"
#include "ir/row_steps.h"

namespace laneshift::compiler {

namespace {

constexpr double kMaskedPart = 0.75;  // of the rows of a masked group that count, in estimates
// Part of the deviation of the number of tiles that counts where more tiles have fewer rows each; fitted to
// bench/measured/h200_divided.txt.
constexpr double kTilesOfFewerRows = 0.7;
// Time, of that of a block of rows, that a tile takes less without it: the other warpgroups take as long as with it.
// Fitted to bench/measured/h200_blocks.txt.
constexpr double kSavedByBlock = 0.5;
// Sizes of groups are taken to be spread evenly around the average, by this part of it to both sides, like those that
// DeepGEMM's tests draw. Fitted to bench/measured/h200_groups.txt, together with the two cases of the timing model.
constexpr double kSizeSpread = 0.3;

// How many units of rows a group needs. `variance`: where the rows of all groups together are known, so that only the
// part counts that does not follow from a group's rows (linear regression).
struct UnitsOfGroup {
  double mean = 0, variance = 0;
};
// `average`: rows of a group, in units. One group has all rows.
UnitsOfGroup EstimateUnits(double average, int64_t groups) {
  if (groups == 1) return {.mean = std::ceil(average)};
  const double least = (1 - kSizeSpread) * average, most = (1 + kSizeSpread) * average, range = most - least;
  if (const double fewest = std::floor(least) + 1; fewest >= most) return {.mean = fewest};  // whatever the size is
  double mean = 0, square = 0, product = 0;  // of the units and of their product with the rows
  for (double units = std::floor(least) + 1; units < most + 1; ++units) {
    const double from = std::max(units - 1, least), to = std::min(units, most);
    mean += (to - from) / range * units;
    square += (to - from) / range * units * units;
    product += (to - from) / range * units * (from + to) / 2;
  }
  const double covariance = product - mean * average, of_rows = range * range / 12;
  return {.mean = mean, .variance = std::max(0.0, square - mean * mean - covariance * covariance / of_rows)};
}

// Of all groups; one where all are empty, so that a time can be estimated.
int64_t CountUnits(std::span<const int64_t> sizes, int64_t unit_rows) {
  int64_t units = 0;
  for (const int64_t rows : sizes) units += base::CeilDiv(rows, unit_rows);
  return std::max<int64_t>(units, 1);
}

// Rows of tiles that divide those of their group in steps, on average; `least` of them are multiplied in any case.
double RowsOfTiles(const WorkPlan& work, int step, int least) {
  // The last step is half filled, on average.
  if (work.sizes.empty())
    return std::clamp<double>(work.group_rows / work.estimated_rows + step / 2.0, least, work.tile_m);
  int64_t all = 0, rows_of_all = 0;
  for (const int64_t rows : work.sizes) {
    const int64_t tiles = base::CeilDiv(rows, int64_t{work.tile_m} * work.cluster_m) * work.cluster_m;
    if (tiles == 0) continue;
    all += tiles;
    rows_of_all +=
        tiles * std::clamp<int64_t>(base::CeilDiv(base::CeilDiv(rows, step), tiles) * step, least, work.tile_m);
  }
  return all == 0 ? least : static_cast<double>(rows_of_all) / static_cast<double>(all);
}

constexpr double kFewTiles = 8;  // rows of tiles of a group; many leave little to save by dividing rows

// Columns of products: in short ones threads take too long to store the rows of a panel that is not full. Next to sums
// that are promoted ptxas makes the MMAs of several loops wait for each other (advisory C7511).
bool DividesColumns(const Contraction& contraction, const Schedule& schedule, double tiles) {
  constexpr int64_t kLeastDepth = 1024;
  constexpr int kLeastRows = 64, kPromotedBits = 8;
  return tiles <= kFewTiles && contraction.Depth() >= kLeastDepth && schedule.tile_m >= kLeastRows &&
         contraction.OperandBits() > kPromotedBits;
}

// Blocks of rows: of two in a tile one is left out only if the group has no other tile.
bool DividesBlocks(int blocks, double tiles) {
  constexpr double kMostlyOne = 1.25;
  return blocks > 1 && tiles <= (blocks > 2 ? kFewTiles : kMostlyOne);
}

}  // namespace

WorkPlan PlanWork(const Contraction& contraction, const Schedule& schedule, std::span<const int64_t> sizes) {
  const auto tiles_of = [](int64_t extent, int64_t tile, int64_t cluster) {
    return base::CeilDiv(extent, tile * cluster) * cluster;
  };
  const int tile_rows = contraction.geometry.TileRows(schedule);
  WorkPlan plan{.rows = contraction.m,
                .columns = contraction.n,
                .tile_m = tile_rows,
                .tile_n = schedule.tile_n,
                .tile_rows = tiles_of(contraction.m, tile_rows, schedule.cluster_m),
                .tile_columns = tiles_of(contraction.n, schedule.tile_n, schedule.cluster_n),
                .batches = contraction.batch,
                .cluster_m = schedule.cluster_m,
                .cluster_n = schedule.cluster_n,
                .cluster_k = schedule.cluster_k,
                .raster = schedule.raster,
                .cuts_k = schedule.split_k > 1};
  plan.estimated_rows = static_cast<double>(plan.tile_rows);
  if (contraction.grouped) {
    // Each group may have one incomplete row of tiles; those without rows have none.
    const int64_t unit_rows = int64_t{tile_rows} * schedule.cluster_m;
    const int64_t groups = std::min(contraction.batch, contraction.m);
    const bool masked = contraction.group_rows > 0;
    const int64_t units = masked ? contraction.batch * base::CeilDiv(contraction.group_rows, unit_rows)
                                 : (contraction.m + groups * (unit_rows - 1)) / unit_rows;
    plan.rows = masked ? contraction.group_rows : base::CeilDiv(contraction.m, groups);
    plan.tile_rows = base::CeilDiv(units, groups) * schedule.cluster_m;
    plan.batches = groups;
    plan.source = masked ? ir::WorkSource::kMaskedGroups : ir::WorkSource::kGroups;
    plan.estimated_rows = static_cast<double>(plan.tile_rows);
    const auto of_group = [&](int64_t all) { return static_cast<double>(all) / static_cast<double>(groups); };
    plan.group_rows = masked ? kMaskedPart * static_cast<double>(contraction.group_rows) : of_group(contraction.m);
    if (!sizes.empty()) {
      plan.sizes = sizes;
      plan.estimated_rows = of_group(CountUnits(sizes, unit_rows)) * schedule.cluster_m;
    } else if (!masked) {
      const UnitsOfGroup estimate = EstimateUnits(plan.group_rows / static_cast<double>(unit_rows), groups);
      plan.estimated_rows = std::min(estimate.mean, std::max(1.0, of_group(units))) * schedule.cluster_m;
      plan.tile_deviation = std::sqrt(estimate.variance * static_cast<double>(groups)) * schedule.cluster_m *
                            static_cast<double>(plan.tile_columns);
    }
  }
  if (contraction.parts_of_k) plan.source = ir::WorkSource::kPartsOfK;
  if (schedule.scheduler == Scheduler::kClc) plan.source = ir::WorkSource::kLaunchControl;
  if (plan.cuts_k) plan.slices = std::min<int64_t>(schedule.split_k, contraction.Iterations(schedule));
  // A resident B belongs to one column of tiles: with waves of whole rows, a CTA returns to its own column.
  if (schedule.b_keep > 0) plan.column_step = plan.tile_columns;
  return plan;
}

WorkPlan PlanWork(const Problem& problem, const Schedule& schedule, std::span<const int64_t> sizes) {
  return PlanWork(ContractionOf(problem, schedule), schedule, sizes);
}

RowDivision DivideRows(const WorkPlan& work, const Contraction& contraction, const Schedule& schedule,
                       const target::Target& target) {
  if (!work.ContinuesGroups() || target.mma.AccumulatesInTensorMemory()) return {};
  const int tile = work.tile_m;
  const int least = ir::LeastRows(tile, schedule.rows == RowSide::kN);
  const double tiles = work.group_rows / (tile * work.cluster_m);
  // `saved`: time, of that of products which are left out.
  const auto divided = [&](int step, double saved) {
    const double part = RowsOfTiles(work, step, least) / tile;
    return RowDivision{.step = step, .multiplied = 1 - saved * (1 - part), .deviation = kTilesOfFewerRows};
  };
  if (schedule.rows == RowSide::kM)
    return DividesBlocks(tile / ir::kRowBlock, tiles) ? divided(ir::kRowBlock, kSavedByBlock) : RowDivision{};
  if (!DividesColumns(contraction, schedule, tiles)) return {};
  return divided(ir::RowStep(tile), 1);
}

std::vector<double> LikelyTiles(const WorkPlan& work, const RowDivision& division) {
  const double tiles = work.EstimatedTiles();
  if (work.tile_deviation == 0) return {tiles};
  const double deviation = division.deviation * work.tile_deviation;
  return {std::max(1.0, tiles - deviation), std::min(tiles + deviation, static_cast<double>(work.Tiles()))};
}

WorkDivision DivideWork(const WorkPlan& plan, int64_t most) {
  const int64_t units = plan.Units();
  WorkDivision division{.clusters = units};
  if (plan.source != ir::WorkSource::kLaunchControl) {
    // The workspace has counters for this many tiles that are cut.
    const int64_t counted = int64_t{ir::WorkspaceLayout::kMostTiles} / plan.TilesOfUnit();
    division.clusters = std::min({units * plan.slices, most, counted});
    if (plan.column_step > 1)
      division.clusters = std::max(plan.column_step, division.clusters / plan.column_step * plan.column_step);
  }
  division.resident = std::min(division.clusters, most);
  division.waves = base::CeilDiv(units, division.resident);
  division.cut = plan.cuts_k ? units % division.clusters : 0;
  division.partials = division.cut * plan.TilesOfUnit() * plan.slices;
  return division;
}

}  // namespace laneshift::compiler
