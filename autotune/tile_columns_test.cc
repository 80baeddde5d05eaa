#include "autotune/tile_columns.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace laneshift::autotune {
namespace {

bool Has(const std::vector<int>& columns, int wanted) {
  return std::find(columns.begin(), columns.end(), wanted) != columns.end();
}

TEST(TileColumns, FillWavesOfSms) {
  // 12 tiles along n; 11 along m are 132, each of 143 columns or more.
  const TileColumns output{.m = 1568, .n = 1536, .sms = 132};
  EXPECT_TRUE(Has(output.Of(RowSide::kN, 128), 144));
  // Two tiles along n, 64 along m.
  EXPECT_TRUE(Has((TileColumns{.m = 4608, .n = 256, .sms = 132}.Of(RowSide::kN, 128)), 72));
  // Along n in steps of 16: 4 tiles along m, 33 along n of 137 columns or more.
  const TileColumns wide{.m = 512, .n = 4500, .sms = 132};
  EXPECT_TRUE(Has(wide.Of(RowSide::kM, 128), 144));
  EXPECT_FALSE(Has(wide.Of(RowSide::kM, 128), 137));
}

TEST(TileColumns, AMatrixOfABatchIsATileMore) {
  EXPECT_TRUE(Has((TileColumns{.m = 4608, .n = 256, .batch = 1, .sms = 132}.Of(RowSide::kN, 128)), 72));
  EXPECT_FALSE(Has((TileColumns{.m = 4608, .n = 256, .batch = 4, .sms = 132}.Of(RowSide::kN, 128)), 72));
}

TEST(TileColumns, WavesAreUnknownWhereTheDeviceKnowsSizes) {
  const TileColumns counted{.m = 1568, .n = 1536, .sms = 132};
  TileColumns unknown = counted;
  unknown.counted = false;
  EXPECT_TRUE(Has(counted.Of(RowSide::kN, 128), 144));
  EXPECT_FALSE(Has(unknown.Of(RowSide::kN, 128), 144));
}

TEST(TileColumns, OneTileWithAllOfMIsEnough) {
  const std::vector<int> columns = TileColumns{.m = 20, .n = 4096, .sms = 132}.Of(RowSide::kN, 64);
  EXPECT_TRUE(Has(columns, 24));
  EXPECT_TRUE(std::all_of(columns.begin(), columns.end(), [](int each) { return each < 40; }));
}

TEST(TileColumns, PingPongBeginsAtTwoWaves) {
  const TileColumns output{.m = 25088, .n = 256, .sms = 132};
  EXPECT_TRUE(Has(output.OfPingpong(RowSide::kN, 128), 192));
  EXPECT_FALSE(Has(output.OfPingpong(RowSide::kN, 128), 384));
}

}  // namespace
}  // namespace laneshift::autotune
