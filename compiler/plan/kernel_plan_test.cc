#include "compiler/plan/kernel_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "compiler/plan/reductions.h"

namespace laneshift::compiler {
namespace {

using Purposes = std::vector<LaunchPurpose>;
constexpr auto kCounters = static_cast<size_t>(ir::WorkspaceLayout::kCounterBytes);

struct Planned {
  Problem problem;
  Schedule schedule;
  KernelPlan plan;

  Purposes purposes() const {
    Purposes purposes;
    for (const PlannedLaunch& launch : plan.launches) purposes.push_back(launch.purpose);
    return purposes;
  }
  const PlannedLaunch& Product() const {
    return *std::find_if(plan.launches.begin(), plan.launches.end(),
                         [](const auto& launch) { return launch.purpose == LaunchPurpose::kMain; });
  }
};

Planned PlanOf(const char* problem, const char* schedule, const GridLimits& limits = {.sm_count = 10},
               const char* target = "sm_90a") {
  Planned planned{*ParseProblem(problem), ParseSchedule(schedule)->value, {}};
  auto plan = PlanKernels(planned.problem, planned.schedule, target::NamedTarget(target), limits);
  EXPECT_TRUE(plan) << problem << ": " << plan.error().message;
  if (plan) planned.plan = std::move(*plan);
  return planned;
}

std::optional<size_t> PlaceOf(const PlannedLaunch& launch, ir::Binding binding) {
  for (const BoundParam& bound : launch.params) {
    if (bound.param.binding == binding) return bound.in_workspace;
  }
  ADD_FAILURE() << "no parameter " << ir::PrintBinding(binding);
  return {};
}

TEST(PlanWorkspace, PutsRegionsAfterTheCounters) {
  PlanWorkspace workspace;
  EXPECT_EQ(workspace.Bytes(), 0u);
  EXPECT_EQ(workspace.Add(WorkspaceUse::kPackedCopy, 100), kCounters);
  EXPECT_EQ(workspace.Add(WorkspaceUse::kPartialRows, 7), kCounters + 128);
  EXPECT_EQ(workspace.Add(WorkspaceUse::kPartialRows, 9), kCounters + 256);
  EXPECT_EQ(workspace.Bytes(), kCounters + 256 + 9);
  EXPECT_EQ(workspace.BytesFor(WorkspaceUse::kPartialRows), 128u + 9);
  EXPECT_EQ(workspace.BytesFor(WorkspaceUse::kSplitK), 0u);

  PlanWorkspace shared;
  EXPECT_EQ(shared.Add(WorkspaceUse::kSplitK, kCounters + 200), 0u);
  EXPECT_EQ(shared.Add(WorkspaceUse::kPackedCopy, 1), kCounters + 256);
}

TEST(PlanKernels, IsOneKernelWhereThatIsEnough) {
  const Planned planned = PlanOf("gemm m=64 n=64 k=64", "tile=64x64x64 acc=1");
  EXPECT_EQ(planned.purposes(), Purposes{LaunchPurpose::kMain});
  EXPECT_EQ(planned.plan.workspace.Bytes(), 0u);
  EXPECT_EQ(planned.Product().program.stage, ir::Stage::kLowered);
}

// The copies are where the main kernel reads; the kernel locates the second one after the first.
TEST(PlanKernels, PacksBeforeTheProduct) {
  const Planned planned =
      PlanOf("gemm m=100 n=60 k=65 batch=3 b_major=n", "tile=64x64x64 acc=1 a_load=pack b_load=pack d_store=rows");
  ASSERT_EQ(planned.purposes(), (Purposes{LaunchPurpose::kPack, LaunchPurpose::kMain}));
  const size_t b_begin = kCounters + size_t{3} * 100 * 128 * 2;
  EXPECT_EQ(PlaceOf(planned.plan.launches[0], ir::Binding::kWorkspace), kCounters);
  EXPECT_EQ(PlaceOf(planned.plan.launches[0], ir::Binding::kBaseA), std::nullopt) << "the caller's";
  EXPECT_EQ(PlaceOf(planned.Product(), ir::Binding::kMapA), kCounters);
  EXPECT_EQ(PlaceOf(planned.Product(), ir::Binding::kMapB), b_begin);
  EXPECT_EQ(planned.plan.workspace.Bytes(), b_begin + size_t{3} * 65 * 64 * 2);

  const Planned only_b =
      PlanOf("gemm m=100 n=60 k=65 b_major=n lda=72", "tile=64x64x64 acc=1 b_load=pack d_store=rows");
  EXPECT_EQ(PlaceOf(only_b.plan.launches[0], ir::Binding::kWorkspace), kCounters);
  EXPECT_EQ(PlaceOf(only_b.Product(), ir::Binding::kMapB), kCounters);
}

// Whatever the schedule; the blocks of B follow those of A.
TEST(PlanKernels, ReordersScaleFactors) {
  const Problem problem = *ParseProblem("gemm m=130 n=60 k=208 a=e4m3 d=f32 batch=2 scale=mx scale_layout=linear");
  const Schedule schedule = ParseSchedule("tile=128x128x128 stages=3 acc=1")->value;
  const auto plan = PlanKernels(problem, schedule, target::NamedTarget("sm_100a"), {.sm_count = 8});
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  ASSERT_EQ(plan->launches.size(), 2u);
  const PlannedLaunch &pack = plan->launches[0], &product = plan->launches[1];
  EXPECT_EQ(pack.purpose, LaunchPurpose::kPack);
  EXPECT_EQ(pack.geometry.grid, 2u * 2 * 1);
  constexpr size_t kOfA = size_t{2} * 2 * 2 * 512, kOfB = size_t{2} * 1 * 2 * 512;
  EXPECT_EQ(PlaceOf(pack, ir::Binding::kWorkspace), kCounters);
  EXPECT_EQ(PlaceOf(pack, ir::Binding::kBaseScaleA), std::nullopt) << "the caller's";
  EXPECT_EQ(PlaceOf(product, ir::Binding::kMapScaleA), kCounters);
  EXPECT_EQ(PlaceOf(product, ir::Binding::kMapScaleB), kCounters + kOfA);
  EXPECT_EQ(PlaceOf(product, ir::Binding::kMapA), std::nullopt) << "the caller's";
  EXPECT_EQ(plan->workspace.Bytes(), kCounters + kOfA + kOfB);
  const int64_t rows = 2 * (130 + 60) * 7;
  EXPECT_EQ(MovesOf(problem, schedule, product.program).before,
            (MoveWork{1, rows + static_cast<int64_t>(kOfA + kOfB)}));
}

// Factors of columns from two halves are interleaved as the columns are; those of A stay where they are, and CUDA cores
// read both there.
TEST(PlanKernels, InterleavesScaleFactorsOfHalves) {
  const Problem problem = *ParseProblem("gemm m=4 n=256 k=1024 a=e2m1 scale=nv epilogue=swiglu:halves");
  const auto planned = [&](const char* schedule) {
    return PlanKernels(problem, ParseSchedule(schedule)->value, target::NamedTarget("sm_100a"), {.sm_count = 8});
  };
  const auto plan = planned("tile=8x128x256 rows=n");
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  ASSERT_EQ(plan->launches.size(), 2u);
  const PlannedLaunch &pack = plan->launches[0], &product = plan->launches[1];
  constexpr size_t kOfB = size_t{2} * 16 * 512;
  EXPECT_EQ(PlaceOf(pack, ir::Binding::kBaseScaleB), std::nullopt) << "the caller's";
  EXPECT_EQ(PlaceOf(product, ir::Binding::kMapScaleA), std::nullopt) << "the caller's";
  EXPECT_EQ(PlaceOf(product, ir::Binding::kMapScaleB), kCounters);
  EXPECT_EQ(plan->workspace.Bytes(), kCounters + kOfB);
  const auto direct = planned(
      "tile=4x16x2048 math=1 stages=2 acc=1 raster=1 a_load=copy b_load=copy d_store=direct reuse=direct rows=n");
  ASSERT_TRUE(direct.has_value()) << direct.error().message;
  EXPECT_EQ(direct->launches.size(), 1u);
}

TEST(PlanKernels, ReducesAfterTheProduct) {
  const Planned few = PlanOf("gemm m=300 n=200 k=72 numerics=deterministic epilogue=sum_n", "tile=64x64x64 acc=1");
  ASSERT_EQ(few.purposes(), (Purposes{LaunchPurpose::kMain, LaunchPurpose::kReduce}));
  EXPECT_EQ(PlaceOf(few.Product(), ir::EpilogueBase(0)), kCounters);
  EXPECT_EQ(PlaceOf(few.plan.launches[1], ir::BaseOfPartialRows(0)), kCounters);
  EXPECT_EQ(PlaceOf(few.plan.launches[1], ir::EpilogueBase(0)), std::nullopt) << "the caller's";
  EXPECT_EQ(few.plan.workspace.BytesFor(WorkspaceUse::kPartialRows), 19u * 200 * 4);

  const Planned many = PlanOf("gemm m=40000 n=40 k=72 numerics=deterministic epilogue=sum_n", "tile=64x64x64 acc=1");
  ASSERT_EQ(many.purposes(), (Purposes{LaunchPurpose::kMain, LaunchPurpose::kFold, LaunchPurpose::kReduce}));
  EXPECT_EQ(PlaceOf(many.plan.launches[1], ir::EpilogueBase(0)),
            PlaceOf(many.plan.launches[2], ir::BaseOfPartialRows(0)));
}

// Split-K's region is sized for the tiles that the clusters which run at one time leave over.
TEST(PlanKernels, AsksTheDeviceHowManyClustersRun) {
  const char *problem = "gemm m=640 n=128 k=1024", *schedule = "tile=64x64x64 acc=1 split_k=4";
  const Planned by_sms = PlanOf(problem, schedule, {.sm_count = 16});
  EXPECT_EQ(by_sms.Product().geometry.grid, 16u);
  EXPECT_EQ(by_sms.plan.workspace.Bytes(), kCounters + 4u * 4 * 64 * 64 * 4);
  int asked = 0;
  const Planned by_device =
      PlanOf(problem, schedule,
             {.sm_count = 16, .resident_clusters = [&](const ir::Program&) { return Result<int>(++asked * 19); }});
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(by_device.Product().geometry.grid, 19u);
  EXPECT_EQ(by_device.plan.workspace.Bytes(), kCounters + 1u * 4 * 64 * 64 * 4);
  const auto refused = PlanKernels(by_sms.problem, by_sms.schedule, target::NamedTarget("sm_90a"),
                                   {.resident_clusters = [](const ir::Program&) {
                                     return Result<int>(MakeError(ErrorCode::kDriver, "no such kernel"));
                                   }});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "no such kernel");
}

TEST(MovesOf, CountsWhatThePlansKernelsMove) {
  const Planned packs =
      PlanOf("gemm m=100 n=60 k=65 batch=3", "tile=64x64x64 acc=1 a_load=pack b_load=pack d_store=rows");
  const PlanMoves packed = MovesOf(packs.problem, packs.schedule, packs.Product().program);
  EXPECT_EQ(packed.before, (MoveWork{1, 2 * 3 * (100 + 60) * 65 * 2}));
  EXPECT_EQ(packed.after, MoveWork{});
  EXPECT_EQ(LeastMovesOf(packs.problem, packs.schedule).before, packed.before);

  const Planned sums = PlanOf("gemm m=40000 n=40 k=72 numerics=deterministic epilogue=sum_n", "tile=64x64x64 acc=1");
  const PlanMoves moves = MovesOf(sums.problem, sums.schedule, sums.Product().program);
  EXPECT_EQ(moves.before, MoveWork{});
  // 2500 partial rows become 10, which both kernels move.
  EXPECT_EQ(moves.after, (MoveWork{2, (2500 + 10 + 10) * 40 * 4}));
  EXPECT_EQ(LeastMovesOf(sums.problem, sums.schedule).after, (MoveWork{1, 0}));
}

// One program for all phases, each with its own filter, sizes and place in x.
TEST(PlanKernels, LaunchesAGradientForEachPhase) {
  const Planned planned = PlanOf("conv_dgrad n=2 h=9 w=11 c=64 k=64 r=3 s=3 pad=1 stride=2 beta=1 epilogue=residual",
                                 "tile=64x64x64 stages=4 acc=1 reuse=im2col b_load=pack");
  ASSERT_EQ(planned.plan.launches.size(), 8u);
  std::set<size_t> copies;
  std::set<int64_t> places;
  for (size_t i = 0; i < planned.plan.launches.size(); i += 2) {
    const PlannedLaunch &pack = planned.plan.launches[i], &product = planned.plan.launches[i + 1];
    EXPECT_EQ(pack.purpose, LaunchPurpose::kPack);
    EXPECT_EQ(product.purpose, LaunchPurpose::kMain);
    EXPECT_EQ(product.repeats, i > 0);
    EXPECT_EQ(KernelKey(product.program), KernelKey(planned.Product().program));
    EXPECT_EQ(PlaceOf(pack, ir::Binding::kWorkspace), PlaceOf(product, ir::Binding::kMapB));
    copies.insert(*PlaceOf(product, ir::Binding::kMapB));
    const auto offset = [&](ir::Binding binding) {
      for (const BoundParam& bound : product.params) {
        if (bound.param.binding == binding) return bound.offset;
      }
      ADD_FAILURE() << ir::PrintBinding(binding);
      return int64_t{-1};
    };
    EXPECT_EQ(offset(ir::Binding::kMapD), offset(ir::Binding::kBaseC));
    EXPECT_EQ(offset(ir::Binding::kMapD), offset(ir::EpilogueBase(0)));
    places.insert(offset(ir::Binding::kMapD));
  }
  EXPECT_EQ(copies.size(), 4u);
  EXPECT_EQ(places, (std::set<int64_t>{0, 128, 11 * 128, 12 * 128}));
}

// Phases that share neither partial sums nor packed filters run at the same time.
TEST(PlanKernels, LaunchesOfPhasesOverlap) {
  const char* const strided = "conv_dgrad n=2 h=9 w=11 c=64 k=64 r=3 s=3 pad=1 stride=2";
  const auto overlaps = [](const char* problem, const char* schedule) {
    std::vector<bool> listed;
    for (const PlannedLaunch& launch : PlanOf(problem, schedule).plan.launches) listed.push_back(launch.overlaps);
    return listed;
  };
  EXPECT_EQ(overlaps(strided, "tile=64x64x64 stages=4 acc=1 reuse=im2col"),
            (std::vector<bool>{false, true, true, true}));
  EXPECT_EQ(overlaps(strided, "tile=64x64x64 stages=4 acc=1 reuse=im2col split_k=2"), std::vector<bool>(4, false));
  EXPECT_EQ(overlaps(strided, "tile=64x64x64 stages=4 acc=1 reuse=im2col b_load=pack"), std::vector<bool>(8, false));
  EXPECT_EQ(overlaps("conv_dgrad n=2 h=9 w=11 c=64 k=64 r=3 s=3 pad=1", "tile=64x64x64 stages=4 acc=1 reuse=im2col"),
            std::vector<bool>(1, false));
}

// Down to its key.
TEST(PlanKernels, TakesTheForwardKernelForAGradientOfX) {
  const std::string extents = " n=2 h=9 w=11 c=64 k=64 r=3 s=3 pad=1";
  for (const std::string mode : {"reuse=im2col", "reuse=row_offset d_store=rows", "reuse=im2col b_keep=9"}) {
    const std::string schedule = "tile=64x64x64 stages=4 acc=1 " + mode;
    const Planned forward = PlanOf(("conv" + extents).c_str(), schedule.c_str());
    const Planned dgrad = PlanOf(("conv_dgrad" + extents).c_str(), (schedule + " b_load=pack").c_str());
    ASSERT_EQ(dgrad.purposes(), (Purposes{LaunchPurpose::kPack, LaunchPurpose::kMain}));
    EXPECT_EQ(KernelKey(dgrad.Product().program), KernelKey(forward.Product().program)) << mode;
  }
}

// Pixels of y and of x have different numbers of rows: a kernel for each.
TEST(PlanKernels, PacksThePixelsOfEachOperand) {
  const Planned planned = PlanOf("conv_wgrad n=2 h=9 w=11 c=12 k=7 r=3 s=3",
                                 "tile=64x16x64 stages=4 acc=1 a_load=pack b_load=pack d_store=direct");
  ASSERT_EQ(planned.purposes(), (Purposes{LaunchPurpose::kPack, LaunchPurpose::kPack, LaunchPurpose::kMain}));
  EXPECT_EQ(PlaceOf(planned.plan.launches[0], ir::Binding::kWorkspace), PlaceOf(planned.Product(), ir::Binding::kMapA));
  EXPECT_EQ(PlaceOf(planned.plan.launches[1], ir::Binding::kWorkspace), PlaceOf(planned.Product(), ir::Binding::kMapB));
  EXPECT_EQ(planned.plan.workspace.BytesFor(WorkspaceUse::kPackedCopy), 128u * (2 * 7 * 9 + 2 * 9 * 11));
}

// Of few channels: a row of nine taps of five channels, padded to 48 columns, for each position.
TEST(PlanKernels, PacksPixelsAsRowsOfTaps) {
  const char *problem = "conv_wgrad n=2 h=11 w=13 c=5 k=64 r=3 s=3 dilation=2",
             *schedule = "tile=64x48x64 stages=4 acc=1 b_load=pack d_store=direct";
  const Planned planned = PlanOf(problem, schedule);
  ASSERT_EQ(planned.purposes(), (Purposes{LaunchPurpose::kPack, LaunchPurpose::kMain}));
  const PlannedLaunch& pack = planned.plan.launches[0];
  constexpr size_t kPositions = 2 * 7 * 9, kCopy = kPositions * 48 * 2;
  EXPECT_EQ(pack.geometry.grid, 1u) << "of 128 positions";
  EXPECT_EQ(PlaceOf(pack, ir::Binding::kWorkspace), kCounters);
  EXPECT_EQ(PlaceOf(pack, ir::Binding::kBaseB), std::nullopt) << "the caller's";
  EXPECT_EQ(PlaceOf(planned.Product(), ir::Binding::kMapB), kCounters);
  EXPECT_EQ(planned.plan.workspace.Bytes(), kCounters + kCopy);
  EXPECT_EQ(planned.Product().geometry.grid, 1u) << "one product for all taps";
  const PlanMoves moves = MovesOf(planned.problem, planned.schedule, planned.Product().program);
  EXPECT_EQ(moves.before, (MoveWork{1, 2 * 11 * 13 * 5 * 2 + static_cast<int64_t>(kCopy)}));
}

TEST(PlanKernels, PacksPixelsAsLinesAndAddsSlicesApart) {
  const char *problem = "conv_wgrad n=2 h=16 w=16 c=3 k=64 r=7 s=7 pad=3 stride=2",
             *schedule = "tile=64x256x64 stages=4 acc=1 b_load=pack d_store=direct split_k=7";
  const Planned planned = PlanOf(problem, schedule);
  using enum LaunchPurpose;
  ASSERT_EQ(planned.purposes(), (Purposes{kPack, kMain, kReduce}));
  const PlannedLaunch &pack = planned.plan.launches[0], &sums = planned.plan.launches[2];
  constexpr int64_t kLines = 2 * 11, kLine = (7 * 16 + 64) * 2;  // bytes
  EXPECT_EQ(pack.geometry.grid, kLines);
  EXPECT_EQ(planned.Product().geometry.grid, 2u) << "one tile of two blocks of K";
  EXPECT_EQ(sums.geometry.grid, planned.Product().geometry.grid);
  EXPECT_TRUE(planned.Product().overlaps && sums.overlaps);
  const PlanMoves moves = MovesOf(planned.problem, planned.schedule, planned.Product().program);
  EXPECT_EQ(moves.before, (MoveWork{1, 2 * 16 * 16 * 3 * 2 + kLines * kLine}));
  EXPECT_EQ(moves.after, (MoveWork{0, 2 * 64 * 256 * 4, 1}));
}

// As many as six are added by the CTA that ends last.
TEST(PlanKernels, AddsFewSlicesInTheMainKernel) {
  const char* problem = "conv_wgrad n=8 h=14 w=14 c=128 k=128 r=3 s=3 pad=1";
  EXPECT_EQ(PlanOf(problem, "tile=128x128x64 stages=4 acc=1 split_k=6").purposes(), Purposes{LaunchPurpose::kMain});
  EXPECT_EQ(PlanOf(problem, "tile=128x128x64 stages=4 acc=1 split_k=7").purposes(),
            (Purposes{LaunchPurpose::kMain, LaunchPurpose::kReduce}));
}

}  // namespace
}  // namespace laneshift::compiler
