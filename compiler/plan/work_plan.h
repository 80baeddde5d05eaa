// WorkPlan: the work of the main kernel as the host sees it: how many units, where they come from, in which order,
// and how many of them are cut along K. It mirrors the loop that a kernel runs (compiler/build/tile_loop.h): the
// launch, the search space, its bounds, the traffic and the timing model all use its counts.
//
// A tile is what one CTA computes at once, or the CTAs of a cluster that share it; a unit is the work of a cluster: a
// tile of each of its CTAs, adjacent in D, or one of all. A cluster may extend beyond D, and its CTAs outside compute
// all the same. A tile of an incomplete wave may be cut along K into slices, which are separate units.
//
// Thread-safety: values and pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "compiler/contraction/contraction.h"
#include "ir/op.h"
#include "laneshift/problem.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::compiler {

struct WorkPlan {
  int64_t rows = 0, columns = 0;  // of D, of one batch
  int tile_m = 0, tile_n = 0;     // of these, those of a tile
  // Tiles along m and n, those outside of D included; of groups of rows, all that their sizes can make.
  int64_t tile_rows = 0, tile_columns = 0;
  int64_t batches = 1;               // matrices, or groups of a convolution; the slowest index
  int cluster_m = 1, cluster_n = 1;  // tiles of a unit
  int cluster_k = 1;                 // CTAs that share each of them
  int raster = 1;                    // tile rows of a band; bands go column after column
  ir::WorkSource source = ir::WorkSource::kStatic;
  bool cuts_k = false;      // tiles of an incomplete wave are cut along K
  int64_t slices = 1;       // of K, for each tile that is cut
  int64_t column_step = 1;  // the number of clusters is a multiple of it, so that each has one column of tiles

  // Tiles along m of one matrix as estimates take them: of groups of rows, whose sizes only the device knows, an
  // average.
  double estimated_rows = 0;
  double tile_deviation = 0;         // standard deviation of all tiles, where only the device knows how many there are
  double group_rows = 0;             // of a group, on average, where only the device knows them
  std::span<const int64_t> sizes{};  // of groups, where estimates know them: the caller's
  // Bulk copies of A go on with rows of the next group where one ends.
  bool ContinuesGroups() const { return source == ir::WorkSource::kGroups || source == ir::WorkSource::kMaskedGroups; }
  int64_t Tiles() const { return tile_rows * tile_columns * batches; }
  double EstimatedTiles() const {
    return estimated_rows * static_cast<double>(tile_columns) * static_cast<double>(batches);
  }
  int TilesOfUnit() const { return cluster_m * cluster_n; }
  int64_t Units() const { return Tiles() / TilesOfUnit(); }  // with all tiles whole
  int ClusterSize() const { return TilesOfUnit() * cluster_k; }
  // Tiles of the incomplete wave, with this many CTAs.
  int64_t Rest(int64_t ctas) const { return Tiles() % ctas; }
  // Parts of each tile that CTAs have, as estimates take it: tiles of full waves count as whole, unless a cluster
  // shares them.
  int64_t PartsOn(int64_t ctas) const { return cluster_k * (Tiles() < ctas ? slices : 1); }
};

// REQUIRES: `contraction` is of this schedule. `sizes`, if any, are the rows of each group: for estimates, which take
// an average otherwise. The kernel does not depend on them. They outlive the plan.
WorkPlan PlanWork(const Contraction& contraction, const Schedule& schedule, std::span<const int64_t> sizes = {});
// REQUIRES: `problem` is complete.
WorkPlan PlanWork(const Problem& problem, const Schedule& schedule, std::span<const int64_t> sizes = {});

// Rows of a group of few rows of tiles are divided evenly among these, and no others are multiplied (ADR 0082, 0083).
struct RowDivision {
  int step = 0;  // tiles have multiples of so many rows; 0: they are full, and all of their rows are multiplied
  // For estimates: the time of a tile's products, of that of a full tile, and the part of the deviation of the number
  // of tiles that counts.
  double multiplied = 1, deviation = 1;
};
// REQUIRES: `work` is that of the contraction and the schedule.
RowDivision DivideRows(const WorkPlan& work, const Contraction& contraction, const Schedule& schedule,
                       const target::Target& target);
// Numbers of tiles that estimates take as equally likely: a deviation below the average and above it. It counts in part
// where rows are divided: more tiles have fewer rows each.
std::vector<double> LikelyTiles(const WorkPlan& work, const RowDivision& division);

// The work as a grid divides it.
struct WorkDivision {
  int64_t clusters = 1;  // of the grid
  int64_t resident = 1;  // of these, resident at one time
  int64_t waves = 1;     // whole units of the cluster that has most, cut ones counted as whole
  int64_t cut = 0;       // units of the incomplete wave, cut along K
  int64_t partials = 0;  // accumulators that the workspace holds for these
};
// `most`: clusters that are resident at one time.
WorkDivision DivideWork(const WorkPlan& plan, int64_t most);

}  // namespace laneshift::compiler
