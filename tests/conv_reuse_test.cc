// Reuse, counted by the emulator: data shared by the columns of a filter row is loaded once.
#include <gtest/gtest.h>

#include "laneshift/engine.h"
#include "tools/problem_run.h"

namespace laneshift {
namespace {

// One tile with and without reuse: 7 rows of 14 outputs, or of 16 positions. Two blocks of 64 channels.
constexpr const char* kProblem = "conv n=1 h=7 w=14 c=128 k=64 r=3 s=3 pad=1";
constexpr uint64_t kRows = 3, kColumns = 3, kBlocks = 2;
constexpr uint64_t kTileX = 128 * 128, kTileW = 64 * 128;  // bytes of a block
constexpr uint64_t kEdge = 4 * 128;                        // four refreshed rows
constexpr uint64_t kGroups = 4;                            // of 32 bytes in a row of a tile

emulator::Counters CountersOf(const char* target, const std::string& schedule) {
  EngineOptions options;
  options.store_directory = ":memory:";
  options.device = "emulator";
  options.target = target;
  const auto engine = Engine::Open(options);
  EXPECT_TRUE(engine.has_value()) << engine.error().message;
  tools::RunSettings settings;
  settings.check = true;
  settings.constraint = *ParseSchedule("tile=128x64x64 d_store=direct b_load=tma " + schedule);
  const auto outcome = tools::RunProblem(*engine, *ParseProblem(kProblem), settings);
  EXPECT_TRUE(outcome.has_value()) << outcome.error().message;
  if (!outcome) return {};
  EXPECT_TRUE(outcome->verified.value_or(false)) << schedule;
  EXPECT_TRUE(outcome->counters.has_value());
  return outcome->counters.value_or(emulator::Counters{});
}

TEST(ConvReuse, Im2colLoadsTheTileForEveryColumn) {
  const emulator::Counters counters = CountersOf("sm_100a", "reuse=im2col");
  EXPECT_EQ(counters.bytes_global_to_shared, kRows * kBlocks * kColumns * (kTileX + kTileW));
  EXPECT_EQ(counters.tensor_copies, 0u);
}

TEST(ConvReuse, RowOffsetLoadsItOnceForARowWithItsHalo) {
  for (const char* target : {"sm_100a", "sm_90a"}) {
    const emulator::Counters counters = CountersOf(target, "reuse=row_offset border=zeros");
    const uint64_t halo = 8 * 128;  // two rows, in whole groups of a swizzle
    EXPECT_EQ(counters.bytes_global_to_shared, kRows * kBlocks * (kTileX + halo + kColumns * kTileW)) << target;
  }
}

TEST(ConvReuse, LaneShiftCopiesItToTensorMemoryOnceForARow) {
  const emulator::Counters counters = CountersOf("sm_100a", "reuse=lane_shift shift=separate border=zeros");
  const uint64_t chains = kRows * kBlocks, moves = kColumns - 1;
  EXPECT_EQ(counters.tensor_copies, chains * kGroups * (1 + moves));
  EXPECT_EQ(counters.tensor_copy_bytes, chains * (kTileX + moves * kEdge));
  EXPECT_EQ(counters.tensor_shifts, chains * kGroups * moves);
  EXPECT_EQ(counters.bytes_global_to_shared, chains * (kTileX + moves * kEdge + kColumns * kTileW));
}

// The product moves the lanes: no shift, no refreshed rows; four runs of 32 positions make the tile.
TEST(ConvReuse, FusedShiftsNeedNothingButTheCopy) {
  const emulator::Counters counters = CountersOf("sm_100a", "reuse=lane_shift shift=fused");
  const uint64_t chains = kRows * kBlocks;
  EXPECT_EQ(counters.tensor_copies, chains * kGroups);
  EXPECT_EQ(counters.tensor_copy_bytes, chains * kTileX);
  EXPECT_EQ(counters.tensor_shifts, 0u);
  EXPECT_EQ(counters.bytes_global_to_shared, chains * (kTileX + kColumns * kTileW));
}

// Rows of 14 positions, a copy for each of the two chains, one move in all.
TEST(ConvReuse, MaskedBordersCopyTwiceAndMoveOnceLess) {
  const emulator::Counters counters = CountersOf("sm_100a", "reuse=lane_shift border=mask");
  const uint64_t chains = kRows * kBlocks, spare = 8 * 128;
  EXPECT_EQ(counters.tensor_copies, chains * kGroups * 3);
  EXPECT_EQ(counters.tensor_shifts, chains * kGroups);
  EXPECT_EQ(counters.bytes_global_to_shared, chains * (kTileX + spare + kEdge + kColumns * kTileW));
}

}  // namespace
}  // namespace laneshift
