// The traffic of kernels, against counts made by hand.
#include "compiler/plan/traffic.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"
#include "compiler/compile.h"

namespace laneshift::compiler {
namespace {

KernelTraffic TrafficOf(std::string_view problem, std::string_view schedule, std::string_view target_name,
                        int sm_count = 148) {
  const target::Target& target = target::NamedTarget(target_name);
  const Problem parsed = *ParseProblem(problem);
  const Schedule decided = ParseSchedule(schedule)->value;
  const auto program = BuildProgram(parsed, decided, target);
  EXPECT_TRUE(program.has_value()) << (program ? "" : program.error().message);
  return program ? CountTraffic(parsed, decided, *program, target, sm_count) : KernelTraffic{};
}

// Rows of 126 pixels: 8 tiles in every mode. One block of 64 channels (128 bytes) at each of 3 x 3 taps; one MMA of a
// tile is 4 instructions of 32 bytes of K, each of 32 clocks.
constexpr const char* kConv = "conv n=1 h=8 w=126 c=64 k=64 r=3 s=3 pad=1 x=bf16 w=bf16 y=bf16";
constexpr int64_t kTiles = 8, kTaps = 9, kFilterTile = 64 * 128, kMmas = 4;

TEST(Traffic, Im2colLoadsTheTileForEveryTap) {
  const KernelTraffic traffic = TrafficOf(kConv, "tile=128x64x64 reuse=im2col", "sm_100a");
  Traffic tile;
  tile.bulk_bytes = kTaps * (128 * 128 + kFilterTile);
  tile.mma_instructions = kTaps * kMmas;
  tile.mma_shared_bytes = kTaps * kMmas * 32 * (128 + 64);
  tile.mma_clocks = kTaps * kMmas * 32;
  EXPECT_EQ(traffic.busiest, tile);
  EXPECT_EQ(traffic.all, tile * kTiles);
}

TEST(Traffic, RowOffsetLoadsATileAndItsHaloForEveryFilterRow) {
  const KernelTraffic traffic = TrafficOf(kConv, "tile=128x64x64 reuse=row_offset d_store=rows", "sm_100a");
  Traffic tile;
  tile.bulk_bytes = 3 * 136 * 128 + kTaps * kFilterTile;  // 128 positions and 2 more, in whole groups of 8
  tile.mma_instructions = kTaps * kMmas;
  tile.mma_shared_bytes = kTaps * kMmas * 32 * (128 + 64);
  tile.mma_clocks = kTaps * kMmas * 32;
  EXPECT_EQ(traffic.all, tile * kTiles);
}

TEST(Traffic, LaneShiftCopiesOnceForEveryFilterRow) {
  const KernelTraffic traffic = TrafficOf(kConv, "tile=128x64x64 reuse=lane_shift d_store=rows", "sm_100a");
  Traffic tile;
  tile.bulk_bytes = 3 * (128 * 128 + 2 * 4 * 128) + kTaps * kFilterTile;  // two shifts, four rows refreshed at each
  tile.mma_instructions = kTaps * kMmas;
  tile.mma_shared_bytes = kTaps * kMmas * 32 * 64;
  tile.tensor_copies = 3 * 4;
  tile.tensor_shifts = tile.tensor_refreshes = 3 * 2 * 4;
  tile.tensor_copy_bytes = 3 * 4 * 128 * 32 + 3 * 2 * 4 * 4 * 32;
  tile.mma_clocks = kTaps * kMmas * 32;
  EXPECT_EQ(traffic.all, tile * kTiles);
}

// Blocks of K of 256, in two parts of two instructions each, which copy half of the scale factors each. Those of 128
// rows are four blocks of 512 bytes, and 192 columns have parts of two times as many. Each of four warps that store
// reads all.
TEST(Traffic, PartsOfABlockOfKAreCountedOnce) {
  constexpr const char* kScaled = "gemm m=128 n=192 k=1024 a=e2m1 d=f32 scale=nv";
  constexpr int64_t kBlocks = 4, kOfRows = 4, kOfColumns = 8, kBytes = 512;
  Traffic tile;
  tile.bulk_bytes = kBlocks * (128 * (128 + 192) + (kOfRows + kOfColumns) * kBytes);
  tile.mma_instructions = kBlocks * kMmas;
  tile.mma_shared_bytes = kBlocks * kMmas * 32 * (128 + 192);
  tile.mma_clocks = kBlocks * kMmas * 96;
  tile.tensor_copies = kBlocks * (kOfRows + kOfColumns);
  tile.tensor_copy_bytes = tile.tensor_copies * kBytes;
  EXPECT_EQ(TrafficOf(kScaled, "tile=128x192x256 stages=3", "sm_100a").all, tile);
  tile.tensor_copies = kBlocks * kOfColumns;
  tile.tensor_copy_bytes = tile.tensor_copies * kBytes + kBlocks * 4 * kOfRows * kBytes;
  EXPECT_EQ(TrafficOf(kScaled, "tile=128x192x256 stages=3 scale_warps=rows", "sm_100a").all, tile);
}

// Where an instruction moves only the addressed group of lanes, a shift takes four.
TEST(Traffic, AShiftCountsAsManyInstructionsAsItIsIssuedBy) {
  target::Target addressed = target::NamedTarget("sm_100a");
  addressed.tensor_facts.shift_scope = target::ShiftScope::kAddressed;
  const Problem problem = *ParseProblem(kConv);
  const Schedule schedule = ParseSchedule("tile=128x64x64 reuse=lane_shift d_store=rows")->value;
  const auto program = BuildProgram(problem, schedule, addressed);
  ASSERT_TRUE(program) << program.error().message;
  const KernelTraffic each = CountTraffic(problem, schedule, *program, addressed, 148);
  const KernelTraffic whole = TrafficOf(kConv, "tile=128x64x64 reuse=lane_shift d_store=rows", "sm_100a");
  EXPECT_EQ(each.all.tensor_shifts, 4 * whole.all.tensor_shifts);
}

TEST(Traffic, DilationShiftsBetweenIdleProducts) {
  const KernelTraffic traffic =
      TrafficOf("conv n=1 h=1 w=100 c=64 k=64 r=1 s=3 pad=0,2 dilation=1,2 x=bf16 w=bf16 y=bf16",
                "tile=128x64x64 reuse=lane_shift d_store=rows", "sm_100a");
  EXPECT_EQ(traffic.all.tensor_copies, 4);
  EXPECT_EQ(traffic.all.tensor_shifts, 4 * 4);  // two lanes from column to column
  EXPECT_EQ(traffic.all.tensor_refreshes, 4 * 4);
  EXPECT_EQ(traffic.all.idle_mmas, 2 * kMmas);
  EXPECT_EQ(traffic.all.mma_instructions, (3 + 2) * kMmas);
}

// Two tiles; 147 taps and channels are three blocks. The filter is resident in shared memory, loaded once a CTA.
TEST(Traffic, GatherKeepsAKnownFilter) {
  constexpr const char* kStem = "conv n=1 h=32 w=32 c=3 k=64 r=7 s=7 pad=3 stride=2 x=bf16 w=bf16 y=bf16";
  constexpr const char* kSchedule = "tile=128x64x64 reuse=im2col a_load=copy b_load=copy";
  const KernelTraffic spread = TrafficOf(kStem, kSchedule, "sm_100a");
  EXPECT_EQ(spread.all.thread_bytes, 2 * 3 * (128 * 128 + kFilterTile));
  EXPECT_EQ(spread.all.bulk_bytes, 0);
  EXPECT_EQ(spread.all.mma_instructions, 2 * 3 * kMmas);
  const KernelTraffic single = TrafficOf(kStem, kSchedule, "sm_100a", 1);
  EXPECT_EQ(single.all.thread_bytes, 2 * 3 * 128 * 128 + 3 * kFilterTile);
  EXPECT_EQ(single.busiest, single.all);
}

// B is loaded once a CTA, for any number of tiles; A for each tile.
TEST(Traffic, AResidentOperandIsLoadedOnce) {
  constexpr int64_t kTileOfA = 128 * 128, kTileOfB = 64 * 128;  // bytes
  const auto brought = [](const char* problem, const char* schedule, int sm_count) {
    return TrafficOf(problem, schedule, "sm_90a", sm_count).all.bulk_bytes;
  };
  constexpr const char* kProblem = "gemm m=1024 n=64 k=192";
  EXPECT_EQ(brought(kProblem, "tile=128x64x64 acc=1 math=2", 2), 8 * 3 * (kTileOfA + kTileOfB));
  EXPECT_EQ(brought(kProblem, "tile=128x64x64 acc=1 math=2 b_keep=3", 2), 8 * 3 * kTileOfA + 2 * 3 * kTileOfB);
  EXPECT_EQ(brought(kProblem, "tile=128x64x64 acc=1 math=2 b_keep=5", 1), 8 * 3 * kTileOfA + 3 * kTileOfB);
  // Of three columns of tiles each CTA has one.
  EXPECT_EQ(brought("gemm m=1024 n=192 k=192", "tile=128x64x64 acc=1 math=2 raster=1 b_keep=3", 7),
            3 * 8 * 3 * kTileOfA + 6 * 3 * kTileOfB);
  const KernelTraffic conv = TrafficOf("conv n=2 h=32 w=32 c=64 k=64 r=3 s=3 pad=1 x=bf16 w=bf16 y=bf16",
                                       "tile=128x64x64 acc=1 math=2 reuse=im2col b_keep=9", "sm_90a", 4);
  EXPECT_EQ(conv.all.bulk_bytes, 16 * 9 * kTileOfA + 4 * 9 * kTileOfB);
}

TEST(Traffic, WarpgroupsReadTheirOwnRows) {
  const KernelTraffic traffic = TrafficOf("gemm m=256 n=128 k=128", "tile=128x64x64 acc=1 math=2", "sm_90a", 3);
  Traffic tile;
  tile.bulk_bytes = 2 * (128 + 64) * 128;
  tile.mma_instructions = 2 * 4 * 2;
  tile.mma_shared_bytes = tile.mma_instructions * 32 * (64 + 64);
  tile.mma_clocks = tile.mma_instructions * 32;
  EXPECT_EQ(traffic.all, tile * 4);
  EXPECT_EQ(traffic.busiest, tile * 2);  // four tiles on three SMs
}

// A grid with a cluster for each tile still runs on only as many SMs as there are.
TEST(Traffic, TilesThatAreTakenOverCountForThoseThatTakeThem) {
  constexpr int kFew = 4;
  for (const char* schedule : {"tile=128x64x64 reuse=im2col", "tile=128x64x64 reuse=im2col cluster=2x1"}) {
    const KernelTraffic dealt = TrafficOf(kConv, schedule, "sm_100a", kFew);
    const KernelTraffic taken = TrafficOf(kConv, base::Cat(schedule, " scheduler=clc"), "sm_100a", kFew);
    EXPECT_EQ(taken.busiest, dealt.busiest) << schedule;
    EXPECT_EQ(taken.all, dealt.all) << schedule;
    // Clocks are those of the tiles that an SM takes, and not of the one for which its CTA was launched.
    const Problem problem = *CompleteProblem(*ParseProblem(kConv));
    const WorkPlan work = PlanWork(problem, ParseSchedule(base::Cat(schedule, " scheduler=clc"))->value);
    const TrafficBound bound = BoundOf(taken.busiest), all = BoundOf(taken.all);
    const double rounds = static_cast<double>(work.Tiles()) / kFew;
    ASSERT_GT(rounds, 1) << schedule;
    EXPECT_DOUBLE_EQ(bound.mma, all.mma / static_cast<double>(work.Tiles()) * std::ceil(rounds)) << schedule;
    EXPECT_DOUBLE_EQ(bound.fill, all.fill / static_cast<double>(work.Tiles()) * std::ceil(rounds)) << schedule;
  }
}

TEST(TrafficBound, IsTheSlowestPart) {
  const TrafficBound reads = BoundOf({.bulk_bytes = 49 * 10, .mma_shared_bytes = 128 * 20, .mma_clocks = 15});
  EXPECT_EQ(reads.fill, 10);
  EXPECT_EQ(reads.shared_reads, 20);
  EXPECT_EQ(reads.Clocks(), 20);
  EXPECT_EQ(reads.By(), "shared_reads");
  EXPECT_EQ(BoundOf({.thread_bytes = 490, .mma_clocks = 10}).By(), "mma");
  EXPECT_EQ(BoundOf({.bulk_bytes = 490, .tensor_copy_bytes = 128}).By(), "fill");
}

// The issue interval that was measured for M=128, N=64: 48 clocks with A in shared memory, 32 with A in Tensor Memory.
TEST(TrafficBound, GivesTheMeasuredIssueIntervals) {
  const Traffic shared = TrafficOf(kConv, "tile=128x64x64 reuse=im2col", "sm_100a").all;
  const auto intervals = static_cast<double>(shared.mma_instructions);
  EXPECT_EQ(BoundOf({.mma_shared_bytes = shared.mma_shared_bytes}).Clocks() / intervals, 48);
  EXPECT_EQ(static_cast<double>(shared.mma_clocks) / intervals, 32);
}

}  // namespace
}  // namespace laneshift::compiler
