#include "compiler/plan/work_plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <vector>

#include "compiler/compile.h"
#include "compiler/plan/kernel_plan.h"

namespace laneshift::compiler {
namespace {

using Sizes = std::vector<int64_t>;  // rows of each group

WorkPlan WorkOf(const char* problem, const char* schedule, std::span<const int64_t> sizes = {}) {
  return PlanWork(*ParseProblem(problem), ParseSchedule(schedule)->value, sizes);
}
RowDivision DivisionOf(const char* problem, const char* schedule, const char* target = "sm_90a",
                       std::span<const int64_t> sizes = {}) {
  const Schedule chosen = ParseSchedule(schedule)->value;
  const Contraction contraction = ContractionOf(*ParseProblem(problem), chosen);
  return DivideRows(PlanWork(contraction, chosen, sizes), contraction, chosen, target::NamedTarget(target));
}
WorkDivision SharesOf(const char* problem, const char* schedule, int64_t most) {
  return DivideWork(WorkOf(problem, schedule), most);
}

// A cluster is one unit, and extends beyond D where its last CTAs have nothing.
TEST(PlanWork, CountsWholeClusters) {
  const WorkPlan work = WorkOf("gemm m=300 n=200 k=64 batch=3", "tile=64x64 cluster=2x2");
  EXPECT_EQ(work.tile_rows, 6);
  EXPECT_EQ(work.tile_columns, 4);
  EXPECT_EQ(work.Tiles(), 6 * 4 * 3);
  EXPECT_EQ(work.Units(), 3 * 2 * 3);
  EXPECT_EQ(work.Rest(10), 2);
}

// Each matrix of a batch, and each group, has its own tiles; the implicit-GEMM index has positions without an output.
TEST(PlanWork, CountsTilesOfTheKernel) {
  EXPECT_EQ(WorkOf("gemm m=64 n=8 k=64 batch=5", "tile=64x64").Tiles(), 5);
  EXPECT_EQ(WorkOf("conv n=2 h=20 w=10 c=128 k=64 r=1 s=1 groups=2", "reuse=im2col tile=128x32x64").Tiles(), 4 * 2);
  const char* conv = "conv n=1 h=8 w=126 c=64 k=64 r=3 s=3 pad=1";
  EXPECT_EQ(WorkOf(conv, "reuse=im2col tile=128x64x64").tile_rows, 8);
  const WorkPlan stale = WorkOf(conv, "reuse=lane_shift shift=fused tile=128x64x64 d_store=rows");
  EXPECT_EQ(stale.tile_m, 120) << "two of each 32 rows are stale";
  EXPECT_EQ(stale.tile_rows, (8 * 128 + 119) / 120);
}

// Blocks of 64 rows: a group of one tile leaves some out, and one of several tiles of three blocks and more.
TEST(DivideRows, TakesBlocksOfProducts) {
  constexpr const char *kOne = "grouped_gemm groups=6 m=480 n=200 k=64",
                       *kTwo = "grouped_gemm groups=6 m=1536 n=200 k=64";
  const auto step = [](const char* problem, const char* schedule) { return DivisionOf(problem, schedule).step; };
  EXPECT_EQ(step(kOne, "tile=128x64"), 64);
  EXPECT_EQ(step(kOne, "tile=64x64"), 0);
  EXPECT_EQ(step(kTwo, "tile=128x64"), 0);
  EXPECT_EQ(step(kTwo, "tile=128x64 cluster=2x1"), 64);
  EXPECT_EQ(step(kTwo, "tile=192x64"), 64);
  EXPECT_EQ(step("grouped_gemm groups=6 m=9300 n=200 k=64", "tile=192x64"), 0) << "more than eight rows of tiles";
  EXPECT_EQ(step("grouped_gemm groups=6 m=250 n=200 k=64 layout=masked", "tile=256x64"), 64);
  EXPECT_EQ(step("gemm m=80 n=200 k=64", "tile=128x64"), 0);
  EXPECT_EQ(DivisionOf(kOne, "tile=128x64", "sm_100a").step, 0);
  EXPECT_DOUBLE_EQ(DivisionOf(kOne, "tile=256x64").multiplied, 1 - 0.5 * (1 - (80.0 + 32) / 256));
  EXPECT_DOUBLE_EQ(DivisionOf(kOne, "tile=64x64").multiplied, 1);
  EXPECT_DOUBLE_EQ(DivisionOf("grouped_gemm groups=6 m=12 n=200 k=64", "tile=256x64").multiplied,
                   1 - 0.5 * (1 - 64.0 / 256));
}

// Where the rows of D are columns of wgmma, and a group has few rows of tiles.
TEST(DivideRows, TakesColumnsOfProducts) {
  constexpr const char* kGroups = "grouped_gemm groups=6 m=1536 n=200 k=1024";
  const auto step = [](const char* problem, const char* schedule) { return DivisionOf(problem, schedule).step; };
  EXPECT_EQ(step(kGroups, "tile=64x64 rows=n"), 8);
  EXPECT_EQ(step(kGroups, "tile=128x64 rows=n"), 16);
  EXPECT_EQ(step(kGroups, "tile=152x64 rows=n"), 24) << "at most five widths";
  EXPECT_EQ(step(kGroups, "tile=32x64 rows=n"), 0);
  EXPECT_EQ(step("grouped_gemm groups=6 m=1536 n=200 k=1024 a=e4m3", "tile=128x64 rows=n"), 0) << "sums are promoted";
  EXPECT_EQ(step("grouped_gemm groups=6 m=6150 n=200 k=1024", "tile=128x64 rows=n"), 0)
      << "more than eight rows of tiles";
  EXPECT_EQ(step("grouped_gemm groups=6 m=1536 n=200 k=1016", "tile=128x64 rows=n"), 0);
  EXPECT_EQ(step("grouped_gemm groups=6 m=250 n=200 k=1024 layout=masked", "tile=128x64 rows=n"), 16);
  EXPECT_EQ(step("gemm m=80 n=200 k=64", "tile=128x64 rows=n"), 0);
  const WorkPlan work = WorkOf(kGroups, "tile=128x64 rows=n");
  EXPECT_DOUBLE_EQ(work.estimated_rows, 2.5);
  const RowDivision division = DivisionOf(kGroups, "tile=128x64 rows=n");
  EXPECT_DOUBLE_EQ(division.multiplied, (256 / 2.5 + 8) / 128);
  const double deviation = work.tile_deviation;
  EXPECT_EQ(LikelyTiles(work, {}), (std::vector{60 - deviation, 60 + deviation}));
  EXPECT_EQ(LikelyTiles(work, division), (std::vector{60 - 0.7 * deviation, 60 + 0.7 * deviation}));
}

// Each group has its tiles, all of the same rows, so their average is exact. Those of an empty group do not count.
TEST(DivideRows, TakesTheRowsOfKnownGroups) {
  constexpr const char* kColumns = "grouped_gemm groups=6 m=1536 n=200 k=1024";
  const Sizes six = {256, 20, 0, 600, 380, 280};
  const RowDivision columns = DivisionOf(kColumns, "tile=128x64 rows=n", "sm_90a", six);
  // 2 tiles of 128 rows, one of 64 (the narrowest products), 5 of 128, 3 of 128 and 3 of 96.
  EXPECT_DOUBLE_EQ(columns.multiplied, (2 * 128 + 64 + 5 * 128 + 3 * 128 + 3 * 96) / 14.0 / 128);
  EXPECT_EQ(columns.step, 16);
  EXPECT_EQ(columns.step, DivisionOf(kColumns, "tile=128x64 rows=n").step) << "a kernel does not depend on sizes";
  constexpr const char* kBlocks = "grouped_gemm groups=4 m=1536 n=200 k=1024 a=e4m3 d=bf16 scale=block";
  const Sizes four = {250, 60, 0, 1226};
  const RowDivision blocks = DivisionOf(kBlocks, "tile=192x64", "sm_90a", four);
  // 2 tiles of 128 rows, one of 64, and 7 of 192.
  EXPECT_DOUBLE_EQ(blocks.multiplied, 1 - 0.5 * (1 - (2 * 128 + 64 + 7 * 192) / 10.0 / 192));
  EXPECT_EQ(blocks.step, 64);
  EXPECT_EQ(blocks.step, DivisionOf(kBlocks, "tile=192x64").step);
}

// Tiles of both CTAs of a cluster have rows of the group.
TEST(DivideRows, TakesTheRowsOfKnownGroupsInClusters) {
  const Sizes sizes = {300, 200, 0, 12};
  // 4 tiles of 80 rows, as 256 rows are not enough for 300; 2 of 112; 2 of 64, the narrowest products.
  EXPECT_DOUBLE_EQ(
      DivisionOf("grouped_gemm groups=4 m=512 n=200 k=1024", "tile=128x64 rows=n cluster=2x1", "sm_90a", sizes)
          .multiplied,
      (4 * 80 + 2 * 112 + 2 * 64) / 8.0 / 128);
}

// Sizes of groups are unknown: one more row of tiles for each group that can have rows.
TEST(PlanWork, BoundsTheTilesOfGroups) {
  const WorkPlan work = WorkOf("grouped_gemm groups=4 m=300 n=200 k=64", "tile=64x64 d_store=rows");
  EXPECT_EQ(work.batches, 4);
  EXPECT_EQ(work.tile_rows, 2) << "(300 + 4 * 63) / 64 = 8 rows of tiles at most, by estimate the same for each group";
  EXPECT_EQ(work.Tiles(), 8 * 4);
  EXPECT_EQ(work.source, ir::WorkSource::kGroups);
  EXPECT_EQ(WorkOf("grouped_gemm groups=1 m=300 n=200 k=64", "tile=64x64").tile_rows, 5);
  EXPECT_EQ(WorkOf("grouped_gemm groups=64 m=3 n=200 k=64", "tile=64x64").batches, 3) << "three rows, three groups";
  const WorkPlan pairs = WorkOf("grouped_gemm groups=4 m=300 n=200 k=64", "tile=64x64 cluster=2x1");
  EXPECT_EQ(pairs.tile_rows, 2 * 2) << "(300 + 4 * 127) / 128 = 6 rows of units";
  const WorkPlan parts = WorkOf("grouped_gemm groups=4 m=300 n=200 k=900 layout=k", "tile=64x64");
  EXPECT_EQ(parts.Tiles(), 4 * 5 * 4) << "those of a D for each group, whatever its part of K is";
  EXPECT_EQ(parts.source, ir::WorkSource::kPartsOfK);
  const WorkPlan masked = WorkOf("grouped_gemm groups=4 m=300 n=200 k=64 layout=masked", "tile=64x64 cluster=2x1");
  EXPECT_EQ(masked.tile_rows, 3 * 2);
  EXPECT_EQ(masked.batches, 4);
  EXPECT_EQ(masked.source, ir::WorkSource::kMaskedGroups);
  EXPECT_EQ(DivideWork(work, 10).clusters, 10);
  EXPECT_EQ(DivideWork(work, 100).clusters, 32);
}

// Sizes of groups are taken to be 0.7 to 1.3 of the average.
TEST(PlanWork, EstimatesTheTilesOfGroups) {
  const auto rows = [](const char* problem, const char* schedule) { return WorkOf(problem, schedule).estimated_rows; };
  EXPECT_DOUBLE_EQ(rows("grouped_gemm groups=4 m=1024 n=200 k=64", "tile=64x64 d_store=rows"),
                   (0.2 * 3 + 4 + 5 + 0.2 * 6) / 2.4)
      << "sizes of 2.8 to 5.2 tiles";
  EXPECT_DOUBLE_EQ(rows("grouped_gemm groups=4 m=1024 n=200 k=64", "tile=64x64 d_store=rows cluster=2x1"), 2 * 2.5);
  EXPECT_NEAR(rows("grouped_gemm groups=8 m=1024 n=200 k=64", "tile=160x64 rows=n"), 1 + 0.04 / 0.48, 1e-9)
      << "sizes of 0.56 to 1.04 tiles";
  EXPECT_EQ(rows("grouped_gemm groups=64 m=256 n=200 k=64", "tile=64x64 d_store=rows"), 1) << "4 rows each";
  EXPECT_EQ(rows("grouped_gemm groups=1 m=300 n=200 k=64", "tile=64x64 d_store=rows"), 5) << "one group has all rows";
  EXPECT_EQ(rows("grouped_gemm groups=4 m=300 n=200 k=64 layout=masked", "tile=64x64"), 5)
      << "all that there is room for";
  EXPECT_EQ(rows("gemm m=300 n=200 k=64", "tile=64x64"), 5);
  EXPECT_DOUBLE_EQ(WorkOf("grouped_gemm groups=4 m=1024 n=200 k=64", "tile=64x64 d_store=rows").EstimatedTiles(),
                   4.5 * 4 * 4);
}

// How many units groups need beyond what follows from their rows, of which all together are known.
TEST(PlanWork, EstimatesHowFarTheTilesOfGroupsMayDiffer) {
  const WorkPlan groups = WorkOf("grouped_gemm groups=8 m=512 n=200 k=64", "tile=64x64 d_store=rows");
  // A group has 0.7 to 1.3 units of rows: one unit of tiles or two, with a variance of 0.25. They grow with the rows,
  // of variance 0.03, with a covariance of 0.075.
  EXPECT_NEAR(groups.tile_deviation, std::sqrt(8 * (0.25 - 0.075 * 0.075 / 0.03)) * 4, 1e-9);
  EXPECT_EQ(LikelyTiles(groups, {}), (std::vector{48 - groups.tile_deviation, 48 + groups.tile_deviation}));
  const WorkPlan small = WorkOf("grouped_gemm groups=64 m=256 n=200 k=64", "tile=64x64 d_store=rows");
  EXPECT_EQ(LikelyTiles(small, {}), std::vector{64.0 * 4}) << "one row of tiles each, whatever its size is";
  EXPECT_EQ(LikelyTiles(WorkOf("grouped_gemm groups=1 m=300 n=200 k=64", "tile=64x64"), {}), std::vector{5.0 * 4});
  EXPECT_EQ(LikelyTiles(WorkOf("gemm m=300 n=200 k=64", "tile=64x64"), {}), std::vector{5.0 * 4});
}

// Estimates that are given the sizes count tiles; what the kernel depends on is as without them.
TEST(PlanWork, CountsTheTilesOfKnownGroups) {
  constexpr const char* kGroups = "grouped_gemm groups=4 m=300 n=200 k=64";
  const Sizes sizes = {130, 0, 64, 106};
  const WorkPlan work = WorkOf(kGroups, "tile=64x64", sizes), unknown = WorkOf(kGroups, "tile=64x64");
  EXPECT_DOUBLE_EQ(work.EstimatedTiles(), (3 + 0 + 1 + 2) * 4);
  EXPECT_EQ(work.tile_deviation, 0);
  EXPECT_EQ(LikelyTiles(work, {}), std::vector{24.0});
  EXPECT_EQ(work.Tiles(), unknown.Tiles());
  EXPECT_EQ(work.batches, unknown.batches);
  EXPECT_GT(unknown.tile_deviation, 0);
  const WorkPlan clusters = WorkOf(kGroups, "tile=64x64 cluster=2x1", sizes);
  EXPECT_DOUBLE_EQ(clusters.EstimatedTiles(), (2 + 0 + 1 + 1) * 2 * 4) << "units of 128 rows";
  EXPECT_EQ(clusters.tile_deviation, 0);
  Sizes few(64);
  few[10] = 2, few[40] = 1;
  EXPECT_DOUBLE_EQ(WorkOf("grouped_gemm groups=64 m=3 n=200 k=64", "tile=64x64", few).EstimatedTiles(), 2 * 4)
      << "of all 64 groups, not of as many as there are rows";
  const Sizes masked_sizes = {300, 0, 1, 65};
  const WorkPlan masked = WorkOf("grouped_gemm groups=4 m=300 n=200 k=64 layout=masked", "tile=64x64", masked_sizes);
  EXPECT_DOUBLE_EQ(masked.EstimatedTiles(), (5 + 0 + 1 + 2) * 4);
  EXPECT_EQ(masked.tile_deviation, 0);
  EXPECT_EQ(masked.Tiles(), 5 * 4 * 4) << "all that there is room for";
  const Sizes none(4);
  EXPECT_DOUBLE_EQ(WorkOf(kGroups, "tile=64x64", none).EstimatedTiles(), 4) << "a kernel without work has a time, too";
}

TEST(PlanWork, CutsKIntoAtMostItsBlocks) {
  EXPECT_EQ(WorkOf("gemm m=64 n=64 k=1024", "tile=64x64x64 split_k=4").slices, 4);
  EXPECT_EQ(WorkOf("gemm m=64 n=64 k=128", "tile=64x64x64 split_k=4").slices, 2);
  const WorkPlan work = WorkOf("gemm m=640 n=64 k=1024", "tile=64x64x64 split_k=4");
  EXPECT_EQ(work.PartsOn(11), 4);
  EXPECT_EQ(work.PartsOn(10), 1) << "a whole wave is not cut";
}

// The CTAs of a cluster share each tile, whether it is of a whole wave or not.
TEST(PlanWork, SharesTilesInAClusterAlongK) {
  const WorkPlan work = WorkOf("gemm m=640 n=64 k=1024", "tile=64x64x64 cluster_k=4");
  EXPECT_EQ(work.Units(), 10);
  EXPECT_EQ(work.ClusterSize(), 4);
  EXPECT_EQ(work.PartsOn(11), 4);
  EXPECT_EQ(work.PartsOn(10), 4);
  const WorkDivision division = SharesOf("gemm m=640 n=64 k=1024", "tile=64x64x64 cluster_k=4", 8);
  EXPECT_EQ(division.clusters, 8);
  EXPECT_EQ(division.waves, 2);
  EXPECT_EQ(division.partials, 0) << "no sum goes through the workspace";
}

// Clusters are launched whole, at most as many as are resident at one time; where clusters steal work, all of them.
TEST(DivideWork, CountsClusters) {
  EXPECT_EQ(SharesOf("gemm m=300 n=200 k=64", "tile=64x64 cluster=2x2", 100).clusters, 3 * 2);
  EXPECT_EQ(SharesOf("gemm m=4096 n=4096 k=64", "tile=64x64 cluster=2x2", 37).clusters, 37);
  const WorkDivision taken = SharesOf("gemm m=4096 n=4096 k=64", "tile=64x64 cluster=2x2 scheduler=clc", 37);
  EXPECT_EQ(taken.clusters, 32 * 32);
  EXPECT_EQ(taken.resident, 37);
  EXPECT_EQ(taken.waves, (32 * 32 + 36) / 37);
  // With a resident B a cluster has one column of tiles.
  EXPECT_EQ(SharesOf("gemm m=4096 n=296 k=64", "tile=64x64 raster=1 b_keep=1", 37).clusters, 35);
  EXPECT_EQ(SharesOf("gemm m=4096 n=296 k=64", "tile=64x64 raster=1 b_keep=1 cluster=2x1", 37).clusters, 35);
  EXPECT_EQ(SharesOf("gemm m=4096 n=296 k=64", "tile=64x64 raster=1 b_keep=1", 3).clusters, 5);
  EXPECT_EQ(SharesOf("gemm m=4096 n=64 k=64", "tile=64x64 b_keep=1", 37).clusters, 37);
}

// Only an incomplete wave is cut, and its partial accumulators are in the workspace.
TEST(DivideWork, CutsTheLastWave) {
  const WorkDivision division = SharesOf("gemm m=640 n=128 k=1024", "tile=64x64x64 split_k=4", 16);
  EXPECT_EQ(division.clusters, 16);
  EXPECT_EQ(division.cut, 4);
  EXPECT_EQ(division.partials, 4 * 4);
  EXPECT_EQ(SharesOf("gemm m=640 n=128 k=1024", "tile=64x64x64", 16).partials, 0);
  const WorkDivision pairs = SharesOf("gemm m=640 n=128 k=1024", "tile=64x64x64 split_k=4 cluster=2x1", 8);
  EXPECT_EQ(pairs.cut, 2);
  EXPECT_EQ(pairs.partials, 2 * 2 * 4);
}

// The counters of tiles that are cut bound the grid.
TEST(DivideWork, HasNoMoreClustersThanCounters) {
  EXPECT_EQ(SharesOf("gemm m=65536 n=4096 k=64", "tile=64x64", 1000).clusters, ir::WorkspaceLayout::kMostTiles);
  EXPECT_EQ(SharesOf("gemm m=65536 n=4096 k=64", "tile=64x64 cluster=2x1", 1000).clusters,
            ir::WorkspaceLayout::kMostTiles / 2);
}

TEST(GeometryOf, LaunchesWholeClusters) {
  const target::Target& target = target::NamedTarget("sm_100a");
  const Problem problem = *ParseProblem("gemm m=300 n=200 k=64");
  const Schedule schedule = ParseSchedule("tile=64x64x64 cluster=2x2 stages=2 acc=1")->value;
  const auto program = BuildProgram(problem, schedule, target);
  ASSERT_TRUE(program) << program.error().message;
  const LaunchGeometry geometry = GeometryOf(*program, DivideWork(PlanWork(problem, schedule), 100));
  EXPECT_EQ(geometry.grid, 4u * 3 * 2);
  EXPECT_EQ(geometry.cluster, 4u);
  EXPECT_EQ(geometry.threads, static_cast<unsigned>(program->threads));
  EXPECT_EQ(geometry.smem_bytes, static_cast<unsigned>(program->smem_bytes));
}

}  // namespace
}  // namespace laneshift::compiler
