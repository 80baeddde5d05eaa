// Layouts against formulations that share nothing with them: the image that a TMA box leaves, row by row, and the
// canonical formulas of the matrix descriptors (PTX ISA 9.0, "Canonical layouts" and "Matrix descriptor").
#include "ir/layout.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

namespace laneshift::ir {
namespace {

std::vector<SharedLayout> SmallTiles() {
  std::vector<SharedLayout> tiles;
  for (const DataType type : {DataType::kBf16, DataType::kF32}) {
    for (const Swizzle swizzle : {Swizzle::k32, Swizzle::k64, Swizzle::k128}) {
      for (const Axis inner_axis : {Axis::kK, Axis::kM}) {
        for (const int outer : {8, 16, 24, 64}) {
          for (const int columns : {1, 2, 3, 4}) {
            SharedLayout tile{.type = type, .swizzle = swizzle};
            tile.inner_axis = inner_axis;
            tile.outer_axis = inner_axis == Axis::kK ? Axis::kM : Axis::kK;
            tile.outer = outer;
            tile.inner = columns * SpanBytes(swizzle) / tile.ElementBytes();
            tiles.push_back(tile);
          }
        }
      }
    }
  }
  return tiles;
}

// A box is written row after row, each one span; the 16-byte chunk c of row r goes to the place of chunk c ^ r, where r
// counts 128-byte lines modulo the chunks of a span.
int ChunkPlace(Swizzle swizzle, int row, int chunk) {
  switch (swizzle) {
    case Swizzle::kNone:
      return chunk;
    case Swizzle::k32:
      return chunk ^ (row / 4 % 2);
    case Swizzle::k64:
      return chunk ^ (row / 2 % 4);
    case Swizzle::k128:
      return chunk ^ (row % 8);
  }
  return -1;
}

// PTX ISA, "Packing formats of elements in shared memory": 16 elements in 16 bytes, 8 or 12 of which carry data.
TEST(SharedLayout, NarrowElementsArePadded) {
  for (const DataType type : {DataType::kE2m1, DataType::kE3m2, DataType::kE2m3}) {
    const SharedLayout tile{.type = type, .outer = 16, .inner = 256, .padded = true};
    const SharedLayout bytes{.type = DataType::kE4m3, .outer = 16, .inner = 256};
    EXPECT_EQ(tile.Bytes(), bytes.Bytes());
    EXPECT_EQ(tile.Columns(), 2);
    EXPECT_EQ(tile.ColumnElements(), 128) << "the box of a tensor map";
    EXPECT_EQ(tile.Offset(3, 160), bytes.Offset(3, 160));
    EXPECT_EQ(tile.CopiedBytes(), 16 * 256 * DataTypeBits(type) / 8) << "without padding";
    EXPECT_EQ(bytes.CopiedBytes(), bytes.Bytes());
  }
}

TEST(SharedLayout, IsTheImageOfOneTmaBoxPerColumn) {
  std::vector<SharedLayout> tiles = SmallTiles();
  tiles.push_back({.outer_axis = Axis::kM, .inner_axis = Axis::kN, .outer = 32, .inner = 8, .swizzle = Swizzle::kNone});
  for (const SharedLayout& tile : tiles) {
    std::vector<bool> written(static_cast<size_t>(tile.Bytes()));
    int box_start = 0;
    const int box_elements = SpanBytes(tile.swizzle) / tile.ElementBytes();
    for (int first = 0; first < tile.inner; first += box_elements) {
      for (int row = 0; row < tile.outer; ++row) {
        for (int i = 0; i < box_elements; ++i) {
          const int byte = i * tile.ElementBytes();
          const int expected =
              box_start + row * SpanBytes(tile.swizzle) + 16 * ChunkPlace(tile.swizzle, row, byte / 16) + byte % 16;
          const int linear = tile.Offset(row, first + i);
          const int place = linear ^ (((linear >> 7) & tile.SwizzleMask()) << 4);
          ASSERT_EQ(place, expected) << "row " << row << ", element " << first + i;
          ASSERT_FALSE(written[static_cast<size_t>(place)]) << "two elements at byte " << place;
          written[static_cast<size_t>(place)] = true;
        }
      }
      box_start += tile.outer * SpanBytes(tile.swizzle);
    }
    ASSERT_EQ(box_start, tile.Bytes());
  }
}

TEST(SharedLayout, ColumnsOverlapInOneBox) {
  const SharedLayout tile{.outer_axis = Axis::kK, .inner_axis = Axis::kN, .outer = 64, .inner = 256, .step = 16};
  EXPECT_EQ(tile.Columns(), 4);
  EXPECT_EQ(tile.Boxes(), 1);
  EXPECT_EQ(tile.AllRows(), 64 + 3 * 16);
  EXPECT_EQ(tile.Bytes(), tile.AllRows() * 128);
  EXPECT_EQ(tile.CopiedBytes(), tile.Bytes());
  EXPECT_EQ(BoxBytes(tile, tile), tile.Bytes());
  EXPECT_EQ(tile.Offset(16, 64), tile.Offset(32, 0)) << "row 16 of the second column is row 32 of the first one";
  EXPECT_EQ(DescriptorStrides(tile).leading, 16 * 128);
  EXPECT_EQ(DescriptorStrides(tile).stride, 8 * 128);
}

// The address that the tensor core reads for element (mn, k) of an instruction whose descriptor starts at `start`.
int DescriptorAddress(bool k_major, int start, MatrixStrides strides, int span, int element_bytes, int mn, int k) {
  if (k_major) return start + mn / 8 * strides.stride + mn % 8 * span + k * element_bytes;
  const int byte = mn * element_bytes;
  return start + byte / span * strides.leading + byte % span + k / 8 * strides.stride + k % 8 * span;
}

TEST(SharedLayout, IsWhatTheDescriptorsRead) {
  int instructions = 0;
  for (const SharedLayout& tile : SmallTiles()) {
    if (tile.type != DataType::kBf16) continue;  // MN-major needs 16-bit elements
    const int k_extent = tile.Extent(Axis::kK), mn_extent = tile.Extent(Axis::kM);
    constexpr int kStep = 16;  // 32 bytes of K
    for (int k0 = 0; k0 + kStep <= k_extent; k0 += kStep) {
      ++instructions;
      for (int mn = 0; mn < mn_extent; ++mn) {
        for (int k = 0; k < kStep; ++k) {
          const int read = DescriptorAddress(tile.KMajor(), tile.OffsetAlong(Axis::kK, k0), DescriptorStrides(tile),
                                             SpanBytes(tile.swizzle), 2, mn, k);
          const int stored = tile.KMajor() ? tile.Offset(mn, k0 + k) : tile.Offset(k0 + k, mn);
          ASSERT_EQ(read, stored) << "mn " << mn << ", k " << k0 + k;
        }
      }
    }
  }
  EXPECT_GT(instructions, 100);
}

// A warpgroup's rows begin `rows` into the tile: the descriptor moves by OffsetAlong(kM, rows), here by whole groups of
// 8 rows (K-major) or whole spans (MN-major), and reads on with the same strides.
TEST(SharedLayout, DescriptorsStartAtLaterRows) {
  for (const SharedLayout& tile : SmallTiles()) {
    if (tile.type != DataType::kBf16) continue;
    const int step = tile.KMajor() ? 8 : tile.ColumnElements();
    for (int first = 0; first < tile.Extent(Axis::kM); first += step) {
      for (int mn = first; mn < tile.Extent(Axis::kM); ++mn) {
        const int read = DescriptorAddress(tile.KMajor(), tile.OffsetAlong(Axis::kM, first), DescriptorStrides(tile),
                                           SpanBytes(tile.swizzle), 2, mn - first, 3);
        ASSERT_EQ(read, tile.KMajor() ? tile.Offset(mn, 3) : tile.Offset(3, mn));
      }
    }
  }
}

TEST(SharedLayout, ColumnsAndStagesBeginASwizzlePattern) {
  for (const SharedLayout& tile : SmallTiles()) {
    for (int column = 0; column < tile.Columns(); ++column) {
      EXPECT_EQ(tile.Offset(0, column * tile.ColumnElements()), column * tile.ColumnBytes());
      EXPECT_EQ(tile.ColumnBytes() % tile.Alignment(), 0);
    }
    EXPECT_EQ(tile.Columns() * tile.ColumnBytes(), tile.Bytes());
    // The XOR uses only address bits below the alignment.
    EXPECT_LE((tile.SwizzleMask() << 7) | 127, tile.Alignment() - 1);
  }
}

TEST(SharedLayout, WidestSwizzleDividesTheRow) {
  EXPECT_EQ(WidestSwizzle(32), Swizzle::k32);
  EXPECT_EQ(WidestSwizzle(96), Swizzle::k32);
  EXPECT_EQ(WidestSwizzle(64), Swizzle::k64);
  EXPECT_EQ(WidestSwizzle(192), Swizzle::k64);
  EXPECT_EQ(WidestSwizzle(128), Swizzle::k128);
  EXPECT_EQ(WidestSwizzle(384), Swizzle::k128);
  EXPECT_EQ(WidestSwizzle(48), Swizzle::kNone);
  EXPECT_DEATH(WidestSwizzle(40), "multiple of 16 bytes");
}

// Lane and register of an element, the inverse of FragmentLayout's formulas, as the PTX ISA draws them.
std::pair<int, int> Holder(FragmentKind kind, int row, int column) {
  const int pair = column % 8 / 2;
  switch (kind) {
    case FragmentKind::kRowPerLane:
      return {row, column};
    case FragmentKind::kMma16x8:
      return {row % 8 * 4 + pair, column / 8 * 4 + row / 8 * 2 + column % 2};
    case FragmentKind::kMma16x8Gated:
      return {row % 8 * 4 + pair % 2 * 2 + pair / 2, column / 8 * 4 + row / 8 * 2 + column % 2};
    case FragmentKind::kRowPerTwoLanes:
      return {row * 2 + column % 2, column / 2};
    case FragmentKind::kMma8x8:
      return {row % 4 * 8 + row / 4 * 4 + pair, column / 8 * 2 + column % 2};
    case FragmentKind::kRuns4:
      return {row / 4 * 8 + column % 64 / 8, column / 64 * 32 + row % 4 * 8 + column % 8};
    case FragmentKind::kRuns8:
      return {row / 8 * 8 + column % 64 / 8, column / 64 * 64 + row % 8 * 8 + column % 8};
  }
  ADD_FAILURE();
  return {};
}

constexpr FragmentKind kKinds[] = {FragmentKind::kRowPerLane,     FragmentKind::kMma16x8, FragmentKind::kMma16x8Gated,
                                   FragmentKind::kRowPerTwoLanes, FragmentKind::kMma8x8,  FragmentKind::kRuns4,
                                   FragmentKind::kRuns8};

// Of a pair of rows, or columns, one of the lanes that held it holds the result: no element goes elsewhere but by an
// exchange with one other lane.
TEST(FragmentLayout, CombinesNeighbours) {
  for (const FragmentKind kind : {FragmentKind::kRowPerLane, FragmentKind::kMma16x8}) {
    const FragmentLayout pairs{.kind = kind, .columns = 16};
    const FragmentLayout rows = pairs.GatedRows(), columns = pairs.GatedColumns();
    EXPECT_EQ(rows.Rows(), pairs.Rows() / 2);
    EXPECT_EQ(rows.columns, 16);
    EXPECT_EQ(columns.Rows(), pairs.Rows());
    EXPECT_EQ(columns.columns, 8);
    for (int column = 0; column < 16; ++column) {
      for (int row = 0; row < pairs.Rows(); row += 2) {
        const int lane = Holder(rows.kind, row / 2, column).first;
        EXPECT_TRUE(lane == Holder(kind, row, column).first || lane == Holder(kind, row + 1, column).first);
      }
    }
  }
  EXPECT_DEATH(FragmentLayout({.kind = FragmentKind::kMma8x8, .columns = 8}).GatedRows(), "combined once");
}

TEST(FragmentLayout, HoldsEveryElementOnce) {
  for (const FragmentKind kind : kKinds) {
    for (const int columns : {8, 16, 64, 128, 256}) {
      const FragmentLayout fragment{.kind = kind, .columns = columns};
      if (columns % fragment.Facts().step != 0) continue;
      std::set<std::pair<int, int>> held;
      for (int lane = 0; lane < 32; ++lane) {
        for (int j = 0; j < fragment.Registers(); ++j) {
          const int row = fragment.LaneRow(lane) + fragment.RowOf(j);
          const int column = fragment.LaneColumn(lane) + fragment.ColumnOf(j);
          ASSERT_EQ(Holder(kind, row, column), std::make_pair(lane, j)) << "row " << row << ", column " << column;
          ASSERT_TRUE(row >= 0 && row < fragment.Rows() && column >= 0 && column < columns);
          held.insert({row, column});
        }
      }
      EXPECT_EQ(held.size(), static_cast<size_t>(fragment.Rows() * columns));
    }
  }
}

TEST(FragmentLayout, RunsAreAdjacentColumnsOfOneRow) {
  for (const FragmentKind kind : kKinds) {
    const FragmentLayout fragment{.kind = kind, .columns = 64};
    for (int j = 0; j < fragment.Registers(); ++j) {
      const int first = j / fragment.Run() * fragment.Run();
      EXPECT_EQ(fragment.RowOf(j), fragment.RowOf(first));
      EXPECT_EQ(fragment.ColumnOf(j), fragment.ColumnOf(first) + j - first);
    }
  }
}

TEST(FragmentLayout, FollowsTheRowsOfFourWarps) {
  EXPECT_EQ(AccumulatorFragment(128), FragmentKind::kRowPerLane);
  EXPECT_EQ(AccumulatorFragment(64), FragmentKind::kMma16x8);
  EXPECT_DEATH(AccumulatorFragment(96), "64 or 128 rows");
}

}  // namespace
}  // namespace laneshift::ir
