#include "emulator/units/sparse_metadata.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

namespace laneshift::emulator {
namespace {

TEST(SparseMetadata, HandWorkedPositions) {
  const auto at = [](Tcgen05Kind kind, DataPathLayout layout, int base, int row, int group, int chunk) {
    const MetadataPosition p = PositionOf(kind, 0, {0, 10}, layout, base, row, group, chunk);
    return std::tuple<int, int, int>(p.cell.lane, p.cell.column - 10, p.bit);
  };
  using T = std::tuple<int, int, int>;
  EXPECT_EQ(at(Tcgen05Kind::kF16, DataPathLayout::kD, 0, 9, 0, 5), T(9, 0, 20));    // k 20
  EXPECT_EQ(at(Tcgen05Kind::kF16, DataPathLayout::kD, 0, 35, 0, 1), T(35, 0, 4));   // k 4
  EXPECT_EQ(at(Tcgen05Kind::kTf32, DataPathLayout::kD, 0, 9, 0, 5), T(9, 0, 20));   // k 10
  EXPECT_EQ(at(Tcgen05Kind::kI8, DataPathLayout::kD, 0, 77, 0, 9), T(77, 1, 4));    // k 36
  EXPECT_EQ(at(Tcgen05Kind::kMxf4, DataPathLayout::kD, 0, 77, 0, 9), T(77, 1, 4));  // k 72
  EXPECT_EQ(at(Tcgen05Kind::kI8, DataPathLayout::kF, 16, 17, 0, 0), T(49, 0, 0));   // half the lanes, from 16
  EXPECT_EQ(at(Tcgen05Kind::kF16, DataPathLayout::kE, 0, 20, 1, 0), T(84, 0, 0));   // the second copy
}

TEST(SparseMetadata, ExpansionPutsElementsWhereTheCodesSay) {
  const uint32_t stored[] = {1, 2, 3, 4};
  uint32_t dense[8];
  const uint8_t codes[] = {0x9, 0xc};
  ASSERT_TRUE(ExpandRow(Tcgen05Kind::kF16, codes, stored, dense));
  EXPECT_EQ(std::vector<uint32_t>(dense, dense + 8), (std::vector<uint32_t>{0, 1, 2, 0, 3, 0, 0, 4}));
  const uint8_t pairs[] = {0xe};
  ASSERT_TRUE(ExpandRow(Tcgen05Kind::kMxf4, pairs, stored, dense));
  EXPECT_EQ(std::vector<uint32_t>(dense, dense + 8), (std::vector<uint32_t>{0, 0, 0, 0, 1, 2, 3, 4}));
  const uint8_t single[] = {0xe, 0x4};
  ASSERT_TRUE(ExpandRow(Tcgen05Kind::kTf32, single, stored, dense));
  EXPECT_EQ(std::vector<uint32_t>(dense, dense + 4), (std::vector<uint32_t>{0, 1, 2, 0}));
  const uint8_t bad[] = {0x5};
  EXPECT_FALSE(ExpandRow(Tcgen05Kind::kI8, bad, stored, dense));
  // A chunk that keeps nothing needs no code: compressors leave 0 there.
  const uint32_t nothing[] = {0, 0};
  std::fill_n(dense, 4, 9u);
  const uint8_t empty[] = {0x0};
  ASSERT_TRUE(ExpandRow(Tcgen05Kind::kI8, empty, nothing, dense));
  EXPECT_EQ(std::count(dense, dense + 4, 0u), 4);
  ASSERT_TRUE(ExpandRow(Tcgen05Kind::kTf32, empty, nothing, dense));
}

}  // namespace
}  // namespace laneshift::emulator
