#include "autotune/shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "autotune/ranking.h"
#include "autotune/space.h"

namespace laneshift::autotune {
namespace {

// As many slots as fit, up to eight, and up to 16 in 160 KB, or in all of shared memory where they are filled before
// the previous kernel has ended; a ring of filters takes no more than eight of them from the activations.
TEST(DeepenShape, FillsSharedMemory) {
  const auto deepened = [](const char* problem, const char* shape) {
    const auto deep =
        DeepenShape(*ParseProblem(problem), ParseSchedule(shape)->value, {}, target::NamedTarget("sm_90a"));
    return deep.has_value() ? deep->schedule : Schedule{.stages = 0, .filter_stages = 0};
  };
  constexpr const char* kNarrow = "gemm m=16 n=8192 k=8192";
  EXPECT_EQ(deepened(kNarrow, "tile=16x64x64 stages=2 acc=1 rows=n").stages, 16);  // of 10 KB
  EXPECT_EQ(deepened(kNarrow, "tile=16x64x128 stages=2 acc=1 rows=n").stages, 8);  // of 20 KB
  EXPECT_EQ(deepened("gemm m=16 n=8192 k=8192 constant=b", "tile=16x64x128 stages=2 acc=1 rows=n early=b").stages, 11);
  const Schedule reuse = deepened("conv n=32 h=56 w=56 c=64 k=64 r=3 s=3 pad=1",
                                  "tile=128x64x64 stages=3 acc=1 math=2 d_store=rows reuse=row_offset filter_stages=2");
  EXPECT_EQ(reuse.filter_stages, 8);
  EXPECT_GT(reuse.stages, 3);
}

// Of promoted sums in registers, with either operand along the rows of wgmma; of tall groups in taller bands.
TEST(ScheduleSpace, ThreeWarpgroupsAreAnAxisWhereSumsArePromoted) {
  const auto three = [](const char* target, const char* problem) {
    std::vector<Schedule> seen;
    for (const Schedule& s : EnumerateSchedules(*ParseProblem(problem), {}, target::NamedTarget(target)).schedules) {
      if (s.math_warpgroups == 3) seen.push_back(s);
    }
    return seen;
  };
  const std::vector<Schedule> dense = three("sm_90a", "gemm m=4096 n=4096 k=4096 a=e4m3");
  const auto along_n = [](const Schedule& s) { return s.rows == RowSide::kN; };
  EXPECT_TRUE(std::any_of(dense.begin(), dense.end(), along_n));
  EXPECT_FALSE(std::all_of(dense.begin(), dense.end(), along_n));
  EXPECT_TRUE(three("sm_90a", "gemm m=4096 n=4096 k=4096 a=e4m3 sum=fast").empty());
  EXPECT_TRUE(three("sm_90a", "gemm m=4096 n=4096 k=4096").empty());
  EXPECT_TRUE(three("sm_100a", "gemm m=4096 n=4096 k=4096 a=e4m3 scale=block").empty());
  EXPECT_TRUE(three("sm_90a", "conv n=8 h=28 w=28 c=64 k=64 r=3 s=3 pad=1 x=e4m3").empty());
  const std::vector<Schedule> groups = three("sm_90a", "grouped_gemm groups=4 m=32768 n=4096 k=4096 a=e4m3");
  ASSERT_FALSE(groups.empty());
  for (const Schedule& s : groups) EXPECT_EQ(s.raster, 16) << PrintSchedule(s);
}

TEST(ScheduleSpace, PairsOfCtasAreAnAxisWhereThereAreAny) {
  const auto pairs = [](const char* target, const char* problem) {
    std::set<Scheduler> seen;
    for (const Schedule& s : EnumerateSchedules(*ParseProblem(problem), {}, target::NamedTarget(target)).schedules) {
      if (s.ctas == 2) seen.insert(s.scheduler);
    }
    return seen;
  };
  EXPECT_EQ(pairs("sm_100a", "gemm m=8192 n=8192 k=8192"), (std::set{Scheduler::kStatic, Scheduler::kClc}));
  EXPECT_EQ(pairs("sm_100a", "gemm m=256 n=512 k=8192"), std::set{Scheduler::kStatic}) << "one round: nothing to take";
  EXPECT_TRUE(pairs("sm_100a", "gemm m=128 n=8192 k=8192").empty()) << "the second CTA would have no rows";
  EXPECT_TRUE(pairs("sm_90a", "gemm m=8192 n=8192 k=8192").empty());
}

// Where a pair has less than two tiles inside, it is not offered, but had who asks for it.
TEST(ScheduleSpace, PairsThatAreAskedForAreFound) {
  const target::Target& target = target::NamedTarget("sm_100a");
  const Problem problem = *ParseProblem("gemm m=40 n=136 k=200");
  const auto asked = ChooseSchedule(problem, *ParseSchedule("ctas=2"), target, target.default_sm_count);
  ASSERT_TRUE(asked.has_value()) << asked.error().message;
  EXPECT_EQ(asked->ctas, 2);
  EXPECT_EQ(ChooseSchedule(problem, {}, target, target.default_sm_count)->ctas, 1);
}

// B is resident if it is small and CTAs have several tiles: all of its blocks, in tiles without columns to spare.
TEST(ScheduleSpace, SmallOperandsMayBeResident) {
  const target::Target& target = target::NamedTarget("sm_90a");
  const auto resident = [&](const char* problem, size_t& all) {
    std::vector<Schedule> seen;
    const ScheduleSpace space = EnumerateSchedules(*ParseProblem(problem), {}, target);
    for (const Schedule& s : space.schedules) {
      if (s.b_keep > 0) seen.push_back(s);
    }
    all = space.schedules.size();
    return seen;
  };
  size_t all = 0;
  const std::vector<Schedule> few = resident("conv n=32 h=56 w=56 c=256 k=64 r=1 s=1", all);
  ASSERT_GT(few.size(), 10u);
  EXPECT_LT(few.size() * 5, all);
  for (const Schedule& s : few) {
    EXPECT_EQ(s.b_keep, 256 / s.tile_k) << PrintSchedule(s);
    EXPECT_EQ(s.tile_n, 64) << PrintSchedule(s);
  }
  const std::vector<Schedule> several = resident("conv n=32 h=28 w=28 c=128 k=512 r=1 s=1", all);
  ASSERT_GT(several.size(), 10u);
  EXPECT_LT(several.size() * 5, all);
  for (const Schedule& s : several) EXPECT_EQ(s.raster, 1) << PrintSchedule(s);
  EXPECT_TRUE(resident("conv n=32 h=28 w=28 c=512 k=512 r=3 s=3 pad=1", all).empty()) << "4.5 MB";
  EXPECT_TRUE(resident("conv n=1 h=14 w=14 c=256 k=64 r=1 s=1", all).empty()) << "a tile each";
  EXPECT_TRUE(resident("gemm m=65536 n=64 k=256 batch=2", all).empty()) << "two matrices";
}

TEST(ScheduleSpace, ThreadsMayStoreWholeLinesOfFewRounds) {
  const auto stored_by = [](const char* problem, StorePath path, const char* constraint = "") {
    const ScheduleSpace space =
        EnumerateSchedules(*ParseProblem(problem), *ParseSchedule(constraint), target::NamedTarget("sm_90a"));
    return std::count_if(space.schedules.begin(), space.schedules.end(), [&](const Schedule& s) {
      const bool lines = s.tile_n % 64 == 0 && s.rows == RowSide::kM;
      EXPECT_TRUE(lines || s.d_store != StorePath::kRows) << PrintSchedule(s);
      return s.d_store == path;
    });
  };
  const char* few = "gemm m=64 n=7168 k=2048 a=e4m3 b=e4m3 d=bf16 scale=block";
  EXPECT_GT(stored_by(few, StorePath::kRows), 10);
  EXPECT_GT(stored_by(few, StorePath::kTma), stored_by(few, StorePath::kRows));
  EXPECT_EQ(stored_by(few, StorePath::kRows, "d_store=tma"), 0);
  EXPECT_EQ(stored_by("gemm m=32768 n=8192 k=1024", StorePath::kRows), 0) << "many rounds";
}

TEST(ScheduleSpace, TilesMayBeTakenWhereThereAreSeveralRounds) {
  const auto seen = [](const char* target, const char* problem) {
    std::set<Scheduler> schedulers;
    for (const Schedule& s : EnumerateSchedules(*ParseProblem(problem), {}, target::NamedTarget(target)).schedules) {
      if (s.ctas == 1 && s.split_k == 1) schedulers.insert(s.scheduler);
      EXPECT_TRUE(s.split_k == 1 || s.scheduler == Scheduler::kStatic) << PrintSchedule(s);
    }
    return schedulers;
  };
  EXPECT_EQ(seen("sm_100a", "gemm m=8192 n=8192 k=8192"), (std::set{Scheduler::kStatic, Scheduler::kClc}));
  EXPECT_EQ(seen("sm_100a", "gemm m=64 n=1024 k=8192"), std::set{Scheduler::kStatic}) << "one round: nothing to take";
  EXPECT_EQ(seen("sm_90a", "gemm m=8192 n=8192 k=8192"), std::set{Scheduler::kStatic});
}

}  // namespace
}  // namespace laneshift::autotune
