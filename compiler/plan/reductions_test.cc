#include "compiler/plan/reductions.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace laneshift::compiler {
namespace {

struct Lines {
  int64_t length, lines;
  bool operator==(const Lines&) const = default;
  friend void PrintTo(const Lines& lines, std::ostream* out) { *out << lines.lines << " lines of " << lines.length; }
};

std::vector<Lines> LinesOf(const char* target_name, const std::string& text, const char* schedule) {
  const target::Target& target = target::NamedTarget(target_name);
  const Problem problem = *ParseProblem(text + " numerics=deterministic");
  const Schedule decided = ParseSchedule(schedule)->value;
  const auto program = BuildProgram(problem, decided, target);
  EXPECT_TRUE(program) << program.error().message;
  std::vector<Lines> lines;
  PlanWorkspace workspace;
  for (const OrderedReduction& reduction : ReductionsOf(problem, decided, *program, workspace))
    lines.push_back({reduction.length, reduction.lines});
  return lines;
}

using Expected = std::vector<Lines>;

// Warps hold 16 rows of an accumulator of 64, and 32 of one of 128.
TEST(ReductionsOf, CountsFragmentsAlongTheRowsOfAnAccumulator) {
  const char* sums = "gemm m=300 n=200 k=72 epilogue=sum_n";
  EXPECT_EQ(LinesOf("sm_90a", sums, "tile=64x64x64 acc=1"), (Expected{{200, 19}}));
  EXPECT_EQ(LinesOf("sm_90a", sums, "tile=128x64x64 acc=1 math=2"), (Expected{{200, 19}}));
  EXPECT_EQ(LinesOf("sm_100a", sums, "tile=64x64x64"), (Expected{{200, 19}}));
  EXPECT_EQ(LinesOf("sm_100a", sums, "tile=128x64x64"), (Expected{{200, 10}}));
  // Rows along n: of rows.
  EXPECT_EQ(LinesOf("sm_100a", "gemm m=300 n=200 k=72 epilogue=sum_m", "tile=64x128x64 rows=n"), (Expected{{300, 7}}));
}

// A panel has 64 columns of bf16, or 32 of f32; the last one of a tile may have fewer, which are read in powers of two.
TEST(ReductionsOf, CountsPiecesOfTilesAlongItsColumns) {
  const char* sums = "gemm m=300 n=200 k=72 epilogue=sum_m";
  EXPECT_EQ(LinesOf("sm_100a", sums, "tile=64x64x64"), (Expected{{300, 4}}));
  EXPECT_EQ(LinesOf("sm_100a", sums, "tile=64x128x64"), (Expected{{300, 4}}));
  EXPECT_EQ(LinesOf("sm_100a", "gemm m=300 n=200 k=72 d=f32 epilogue=sum_m", "tile=64x128x64"), (Expected{{300, 8}}));
  EXPECT_EQ(LinesOf("sm_100a", sums, "tile=64x112x64"), (Expected{{300, 2 * (1 + 2)}}));
}

TEST(ReductionsOf, KnowsPairsBatchesAndGroups) {
  EXPECT_EQ(LinesOf("sm_100a", "gemm m=300 n=208 k=72 epilogue=sum_n+swiglu+sum_n+sum_m", "tile=128x64x64"),
            (Expected{{208, 10}, {104, 10}, {300, 2 * 4}}))
      << "with this many reductions half a panel is processed at once";
  EXPECT_EQ(LinesOf("sm_100a", "gemm m=300 n=200 k=72 batch=3 epilogue=amax+sum_n", "tile=128x64x64"),
            (Expected{{200, 30}}));
  EXPECT_EQ(LinesOf("sm_100a", "conv n=2 h=20 w=10 c=128 k=64 r=1 s=1 groups=2 epilogue=sum_k",
                    "reuse=im2col tile=128x32x64 filter_stages=2"),
            (Expected{{64, 13}}));
}

// Of each 32 rows of a tile two are stale, and the index has positions outside of the output.
TEST(ReductionsOf, CountsPositionsOfLiveRows) {
  const auto lines = LinesOf("sm_100a", "conv n=2 h=20 w=21 c=64 k=64 r=3 s=3 pad=1 epilogue=sum_k",
                             "reuse=lane_shift shift=fused tile=128x64x64 stages=3 filter_stages=3 d_store=rows");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].length, 64);
  EXPECT_EQ(lines[0].lines, (2 * 20 * 23 + 29) / 30);
}

TEST(ReductionsOf, IsNothingWhereTheOrderIsFree) {
  const target::Target& target = target::NamedTarget("sm_100a");
  const Problem problem = *ParseProblem("gemm m=300 n=200 k=72 epilogue=sum_n");
  const Schedule schedule = ParseSchedule("tile=64x64x64")->value;
  PlanWorkspace workspace;
  EXPECT_TRUE(ReductionsOf(problem, schedule, *BuildProgram(problem, schedule, target), workspace).empty());
  EXPECT_EQ(workspace.Bytes(), 0u);
  const Problem amax = *ParseProblem("gemm m=300 n=200 k=72 numerics=deterministic epilogue=amax_n");
  EXPECT_FALSE(OrdersReductions(amax));
}

OrderedReduction ReductionOf(int64_t length, int64_t lines, size_t begin = 0) {
  return {.base = ir::EpilogueBase(2), .length = length, .lines = lines, .begin = begin};
}
std::vector<ReductionPass> Passes(const std::vector<OrderedReduction>& reductions) {
  PlanWorkspace workspace;
  return PassesOf(reductions, workspace);
}

TEST(PassesOf, FoldsManyPartialRowsFirst) {
  EXPECT_TRUE(Passes({}).empty());
  EXPECT_EQ(Passes({ReductionOf(9, 1024)}).size(), 1u);
  PlanWorkspace workspace;
  std::vector<OrderedReduction> reductions = {ReductionOf(9, 1025), ReductionOf(20, 3)};
  for (OrderedReduction& reduction : reductions)
    reduction.begin = workspace.Add(WorkspaceUse::kPartialRows, static_cast<size_t>(reduction.Bytes()));
  const size_t end = workspace.Bytes();
  const std::vector<ReductionPass> passes = PassesOf(reductions, workspace);
  ASSERT_EQ(passes.size(), 2u);
  EXPECT_EQ(passes[0].from, std::vector{reductions[0]});
  // Rows of 16 elements; the result of the first kernel comes after both, aligned to a memory line.
  const OrderedReduction folded = ReductionOf(9, 5, (end + 127) / 128 * 128);
  EXPECT_EQ(passes[0].to, std::vector{folded});
  EXPECT_EQ(passes[1].fold, 0);
  EXPECT_EQ(passes[1].from, (std::vector{folded, reductions[1]}));
  EXPECT_EQ(workspace.Bytes(), folded.begin + 5 * 16 * 4);
}

TEST(BindReduction, PassesPartialRowsAndTheCallersResults) {
  const std::vector<ReductionPass> passes = Passes({ReductionOf(9, 2000, 128)});
  for (const ReductionPass& pass : passes) {
    const auto program = BuildReduction(pass, target::NamedTarget("sm_90a"));
    ASSERT_TRUE(program) << program.error().message;
    const std::vector<BoundParam> bound = BindReduction(pass, *program);
    ASSERT_EQ(bound.size(), 4u);
    EXPECT_EQ(bound[0].in_workspace, pass.from[0].begin);
    EXPECT_EQ(bound[1].in_workspace.has_value(), pass.fold > 0);
    EXPECT_EQ(bound[1].argument, ir::EpilogueBase(2));
    EXPECT_EQ(bound[2].number, 9);
    EXPECT_EQ(bound[3].number, pass.fold > 0 ? 2000 : 8);
  }
}

TEST(ReductionLaunch, HasACtaForEach32Columns) {
  const target::Target& target = target::NamedTarget("sm_90a");
  const auto grid = [&](const ReductionPass& pass) {
    return ReductionLaunch(pass, *BuildReduction(pass, target), 10).grid;
  };
  EXPECT_EQ(grid(Passes({ReductionOf(33, 5), ReductionOf(1, 5)})[0]), 3u);
  EXPECT_EQ(grid(Passes({ReductionOf(33, 1025)})[0]), 2u * 5);
  EXPECT_EQ(grid(Passes({ReductionOf(1 << 20, 5)})[0]), 640u);
}

// BLESS=1 rewrites it.
TEST(BuildReduction, IsTheGoldenProgram) {
  const std::vector<ReductionPass> passes = Passes({ReductionOf(9, 2000), ReductionOf(9, 5)});
  const std::string text = ir::PrintProgram(*BuildReduction(passes[1], target::NamedTarget("sm_90a")));
  const std::string path = std::string(LANESHIFT_SOURCE_DIR) + "/tests/golden/ir/reductions_sm_90a_lowered.tir";
  if (std::getenv("BLESS") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  EXPECT_EQ(text, std::string((std::istreambuf_iterator<char>(file)), {})) << path;
}

}  // namespace
}  // namespace laneshift::compiler
