#include "compiler/build/staging.h"

#include <gtest/gtest.h>

namespace laneshift::compiler {
namespace {

constexpr StagedTile kTile = {.type = DataType::kBf16,
                              .fragment = ir::FragmentKind::kMma16x8,
                              .columns = 176,
                              .blocks = 2,
                              .widest = 64,
                              .widest_panel = 256,
                              .warps = 4,
                              .bulk = true};

int Bytes(const StagedTile& tile, const Staging& staging) {
  return staging.layout.Bytes() * staging.copies * tile.warps / staging.sharers;
}

// Rows of D of a copy, in bytes.
int RowBytes(const Staging& staging) { return staging.layout.inner * staging.layout.ElementBytes(); }

TEST(Staging, FastestHasRowsOf128Bytes) {
  for (const DataType type : {DataType::kF32, DataType::kBf16, DataType::kE4m3}) {
    for (const bool transposed : {false, true}) {
      if (transposed && type == DataType::kE4m3) continue;
      StagedTile tile = kTile;
      tile.type = type;
      tile.columns = 160;
      tile.transposed = transposed;
      EXPECT_EQ(RowBytes(StagingsOf(tile).front()), 128) << DataTypeName(type) << transposed;
    }
  }
}

TEST(Staging, NarrowTileIsOnePanel) {
  StagedTile tile = kTile;
  tile.columns = 48;
  const Staging fastest = StagingsOf(tile).front();
  EXPECT_EQ(fastest.panel, 48);
  EXPECT_EQ(fastest.layout.inner, 48);
  EXPECT_EQ(fastest.layout.Span(), 128);
  EXPECT_EQ(fastest.layout.Bytes(), 16 * 128) << "the end of each row is left unused";
}

TEST(Staging, LastNeedsLeast) {
  for (int columns = 16; columns <= 256; columns += 16) {
    for (const bool transposed : {false, true}) {
      StagedTile tile = kTile;
      tile.columns = columns;
      tile.transposed = transposed;
      const std::vector<Staging> stagings = StagingsOf(tile);
      for (const Staging& staging : stagings) {
        EXPECT_GE(Bytes(tile, staging), Bytes(tile, stagings.back())) << columns << transposed;
        EXPECT_LE(staging.copies, 2);
      }
    }
  }
}

TEST(Staging, ThreadsThatStoreNeedOneCopy) {
  for (const bool transposed : {false, true}) {
    StagedTile tile = kTile;
    tile.columns = 128;
    tile.transposed = transposed;
    EXPECT_EQ(StagingsOf(tile).front().copies, 2) << transposed;
    tile.bulk = false;
    for (const Staging& staging : StagingsOf(tile)) EXPECT_EQ(staging.copies, 1) << transposed;
  }
}

TEST(Staging, SubtilesMakeThePanel) {
  Staging staging{.panel = 64, .subtile = 32};
  EXPECT_EQ(staging.SubtilesOf(64, false), (std::vector<int>{32, 32}));
  EXPECT_EQ(staging.SubtilesOf(48, false), (std::vector<int>{32, 16}));
  staging.subtile = 64;
  EXPECT_EQ(staging.SubtilesOf(48, false), (std::vector<int>{48}));
  EXPECT_EQ(staging.SubtilesOf(48, true), (std::vector<int>{32, 16})) << "Tensor Memory is read by powers of two";
}

TEST(Staging, WarpsShareARowOfD) {
  StagedTile tile = kTile;
  tile.transposed = true;
  EXPECT_EQ(StagingsOf(tile).front().sharers, 4);
  tile.type = DataType::kF32;
  EXPECT_EQ(StagingsOf(tile).front().sharers, 2);
  tile.fragment = ir::FragmentKind::kRowPerLane;
  EXPECT_EQ(StagingsOf(tile).front().sharers, 1) << "a warp has 32 columns";
  tile.type = DataType::kF16;
  EXPECT_EQ(StagingsOf(tile).front().sharers, 2);
  tile.fragment = ir::FragmentKind::kMma16x8;
  tile.rows_per_output = 2;
  EXPECT_EQ(StagingsOf(tile).front().sharers, 4) << "no more than a warpgroup, though a row then has 64 bytes";
  tile.bulk = false;
  for (const Staging& staging : StagingsOf(tile)) EXPECT_EQ(staging.sharers, 1);
}

}  // namespace
}  // namespace laneshift::compiler
