#include "emulator/units/tensor_memory.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <random>
#include <set>

namespace laneshift::emulator {
namespace {

uint32_t Tag(int lane, int column) { return static_cast<uint32_t>(lane << 16 | column | 0x40000000); }

void FillTags(TensorMemory& memory) {
  for (int lane = 0; lane < 128; ++lane) {
    for (int column = 0; column < 512; ++column) memory.Write(lane, column, Tag(lane, column));
  }
}

struct Registers {
  explicit Registers(int count) : words(static_cast<size_t>(count) * 32, 0xdead) {
    for (int r = 0; r < count; ++r) rows.push_back(words.data() + r * 32);
    for (uint32_t* row : rows) constant.push_back(row);
  }
  uint32_t At(int reg, int thread) const { return words[static_cast<size_t>(reg * 32 + thread)]; }
  std::vector<uint32_t> words;
  std::vector<uint32_t*> rows;
  std::vector<const uint32_t*> constant;
};

// Which cells the manual's figures give, in the words of the fragment: (row, column) of thread t, register j.
TEST(LaneAccess, CheckValuesOfTheFigures) {
  const auto cell = [](LaneShape s, int t, int r) {
    const TensorAddress a = CellOf(s, t, r, 0);
    return std::pair<int, int>(a.lane, a.column);
  };
  using P = std::pair<int, int>;
  EXPECT_EQ(cell(LaneShape::k16x256b, 5, 0), P(1, 2));
  EXPECT_EQ(cell(LaneShape::k16x256b, 5, 1), P(1, 3));
  EXPECT_EQ(cell(LaneShape::k16x256b, 5, 2), P(9, 2));
  EXPECT_EQ(cell(LaneShape::k16x256b, 5, 3), P(9, 3));
  EXPECT_EQ(cell(LaneShape::k16x128b, 5, 0), P(1, 1));
  EXPECT_EQ(cell(LaneShape::k16x128b, 5, 1), P(9, 1));
  EXPECT_EQ(cell(LaneShape::k16x64b, 5, 0), P(9, 0));
  EXPECT_EQ(cell(LaneShape::k16x64b, 6, 0), P(1, 1));
  EXPECT_EQ(cell(LaneShape::k32x32b, 17, 3), P(17, 3));
}

TEST(LaneAccess, EveryShapeCoversItsRectangleOnce) {
  const struct {
    LaneShape shape;
    int rows, columns, greatest;
  } shapes[] = {{LaneShape::k32x32b, 32, 1, 128},
                {LaneShape::k16x64b, 16, 2, 128},
                {LaneShape::k16x128b, 16, 4, 64},
                {LaneShape::k16x256b, 16, 8, 32}};
  for (const auto& s : shapes) {
    for (int repeat = 1; repeat <= s.greatest; repeat *= 2) {
      std::set<std::pair<int, int>> cells;
      for (int r = 0; r < RegistersOf(s.shape, repeat); ++r) {
        for (int t = 0; t < 32; ++t) {
          const TensorAddress a = CellOf(s.shape, t, r, 0);
          EXPECT_LT(a.lane, s.rows);
          EXPECT_LT(a.column, s.columns * repeat);
          EXPECT_TRUE(cells.insert({a.lane, a.column}).second);
        }
      }
      EXPECT_EQ(static_cast<int>(cells.size()), s.rows * s.columns * repeat);
    }
  }
}

// Which thread and register the manual's figures put in a cell of the rectangle: read off cell by cell, the other way
// round than the unit computes.
std::pair<int, int> HolderOf(LaneShape shape, int row, int column) {
  const int quad = 4 * (row % 8), upper = row / 8;
  switch (shape) {
    case LaneShape::k32x32b:
    case LaneShape::k16x32bx2:
      return {row, column};
    case LaneShape::k16x64b:
      return {quad + column % 2 * 2 + upper, column / 2};
    case LaneShape::k16x128b:
      return {quad + column % 4, column / 4 * 2 + upper};
    case LaneShape::k16x256b:
      return {quad + column % 8 / 2, column / 8 * 4 + upper * 2 + column % 2};
  }
  return {};
}

TEST(LaneAccess, LoadReadsTheTaggedCellsAndStoreIsItsInverse) {
  TensorMemory memory;
  FillTags(memory);
  for (LaneShape shape :
       {LaneShape::k32x32b, LaneShape::k16x64b, LaneShape::k16x128b, LaneShape::k16x256b, LaneShape::k16x32bx2}) {
    for (HalfWords half : {HalfWords::kWhole, HalfWords::kPacked}) {
      for (int warp = 0; warp < 4; ++warp) {
        const auto lane = static_cast<uint16_t>(32 * warp + (shape == LaneShape::k32x32b ? 0 : 16));
        LaneAccess access{shape, 4, half, {lane, 40}, shape == LaneShape::k16x32bx2 ? 100 : 0};
        const auto plan = PlanLaneAccess(access, warp + 4);
        ASSERT_TRUE(plan) << plan.error().message;
        EXPECT_FALSE(plan->foreign_lanes);
        Registers regs(RegistersOf(shape, 4));
        EXPECT_FALSE(LoadLanes(*plan, memory, regs.rows));
        const bool halves = shape == LaneShape::k16x32bx2;
        const int rows = shape == LaneShape::k32x32b ? 32 : 16, width = half == HalfWords::kPacked ? 2 : 1;
        const int columns = RegistersOf(shape, 4) * 32 / rows / (halves ? 2 : 1);
        for (int second = 0; second <= (halves ? 1 : 0); ++second) {
          for (int row = 0; row < rows; ++row) {
            for (int c = 0; c < columns; ++c) {
              const auto [thread, reg] = HolderOf(shape, row, c);
              const int column = 40 + c * width + 100 * second;
              const uint32_t low = Tag(lane + row, column), high = Tag(lane + row, column + 1);
              ASSERT_EQ(regs.At(reg, thread + 16 * second),
                        half == HalfWords::kPacked ? (low & 0xffff) | high << 16 : low);
            }
          }
        }
        TensorMemory copy;
        StoreLanes(*plan, copy, regs.constant);
        Registers again(RegistersOf(shape, 4));
        EXPECT_FALSE(LoadLanes(*plan, copy, again.rows));
        EXPECT_EQ(again.words, regs.words);
        for (const TensorRange& range : plan->ranges) EXPECT_FALSE(copy.FirstUnwritten(range));
      }
    }
  }
}

TEST(LaneAccess, RefusesWhatIsWrong) {
  const auto refused = [](LaneAccess access, int warp) { return !PlanLaneAccess(access, warp).has_value(); };
  EXPECT_TRUE(refused({LaneShape::k16x256b, 64, HalfWords::kWhole, {0, 0}, 0}, 0));
  EXPECT_TRUE(refused({LaneShape::k32x32b, 3, HalfWords::kWhole, {0, 0}, 0}, 0));
  EXPECT_TRUE(refused({LaneShape::k32x32b, 1, HalfWords::kWhole, {16, 0}, 0}, 0));
  EXPECT_TRUE(refused({LaneShape::k16x64b, 1, HalfWords::kWhole, {8, 0}, 0}, 0));
  EXPECT_TRUE(refused({LaneShape::k32x32b, 128, HalfWords::kWhole, {0, 400}, 0}, 0));
  EXPECT_TRUE(refused({LaneShape::k32x32b, 128, HalfWords::kPacked, {0, 300}, 0}, 0));
  EXPECT_TRUE(refused({LaneShape::k16x32bx2, 8, HalfWords::kWhole, {0, 0}, 510}, 0));
  // Another warp's lanes: hardware uses the warp's own, and the checker is informed.
  const auto foreign = PlanLaneAccess({LaneShape::k32x32b, 1, HalfWords::kWhole, {0, 0}, 0}, 2);
  ASSERT_TRUE(foreign);
  EXPECT_TRUE(foreign->foreign_lanes);
  EXPECT_EQ(foreign->first_lane, 64);
}

TEST(TensorMemory, RemembersWhatWasWritten) {
  TensorMemory memory;
  const TensorRange all{0, 128, 60, 80};
  EXPECT_EQ(memory.FirstUnwritten(all), (TensorAddress{0, 60}));
  EXPECT_EQ(memory.Read(3, 77), TensorMemory::kPoison);
  memory.MarkWritten(all);
  EXPECT_FALSE(memory.FirstUnwritten(all));
  EXPECT_FALSE(memory.Written(0, 59));
  EXPECT_FALSE(memory.Written(127, 140));
  memory.Poison({5, 1, 64, 64});
  EXPECT_EQ(memory.FirstUnwritten(all), (TensorAddress{5, 64}));
  memory.MarkWritten({0, 128, 0, 512});
  EXPECT_FALSE(memory.FirstUnwritten({0, 128, 0, 512}));
}

// ---- shift and cp ----

TEST(TensorMemory, ShiftMovesRowsDownInsideGroupsOf32) {
  TensorMemory memory;
  FillTags(memory);
  const auto plan = PlanShift({0, 16});
  ASSERT_TRUE(plan);
  for (int n = 1; n <= 33; ++n) {
    ExecuteShift(*plan, memory);
    for (int lane = 0; lane < 128; ++lane) {
      const int from = lane / 32 * 32 + std::min(lane % 32 + n, 31);
      for (int column = 0; column < 64; ++column) {
        const bool inside = column >= 16 && column < 24;
        ASSERT_EQ(memory.Read(lane, column), Tag(inside ? from : lane, column)) << n;
      }
    }
  }
  EXPECT_FALSE(PlanShift({32, 0}));
  EXPECT_FALSE(PlanShift({1, 0}));
  EXPECT_FALSE(PlanShift({0, 4}));
  EXPECT_FALSE(PlanShift({0, 512}));
}

TEST(TensorMemory, ShiftCarriesTheMarkOfUnwrittenCells) {
  TensorMemory memory;
  memory.MarkWritten({0, 32, 0, 8});
  memory.Poison({9, 1, 0, 8});
  ExecuteShift(*PlanShift({0, 0}), memory);
  EXPECT_FALSE(memory.Written(8, 0));
  EXPECT_TRUE(memory.Written(9, 0));
}

struct SharedFixture {
  SharedFixture() : bytes(64 * 1024) {
    std::mt19937 random(5);
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
  }
  SharedWindow window() { return {bytes, 0x400}; }
  uint8_t At(uint32_t address) const { return bytes[address - 0x400]; }
  std::vector<uint8_t> bytes;
};

// No swizzle, rows of 16 bytes; 8-row groups 256 apart, the second 16 bytes of a row 8192 further.
constexpr uint64_t kPlainSource = 0x0000401002000100;  // start 0x1000, LBO 0x2000, SBO 0x100
uint32_t PlainSource(int row, int byte) {
  return 0x1000 + static_cast<uint32_t>(row % 8 * 16 + row / 8 * 256 + byte / 16 * 8192 + byte % 16);
}

TEST(TensorMemory, CopyPutsRowsIntoTheLanesOfItsShape) {
  SharedFixture shared;
  const struct {
    CopyShape shape;
    int row_bytes;
    int rows;
    std::function<std::vector<int>(int)> lanes;  // of a row
  } cases[] = {
      {CopyShape::k4x256b, 32, 4, [](int row) { return std::vector{31 + 32 * row}; }},
      {CopyShape::k128x256b, 32, 128, [](int row) { return std::vector{row}; }},
      {CopyShape::k128x128b, 16, 128, [](int row) { return std::vector{row}; }},
      // Warps 0 and 2 have the first 32 rows and 1 and 3 the second, or 0 and 1, and 2 and 3.
      {CopyShape::k64x128bWarpx2_02_13, 16, 64,
       [](int row) {
         return std::vector{row, row + 64};
       }},
      {CopyShape::k64x128bWarpx2_01_23, 16, 64,
       [](int row) {
         return std::vector{row / 32 * 64 + row % 32, row / 32 * 64 + row % 32 + 32};
       }},
      {CopyShape::k32x128bWarpx4, 16, 32,
       [](int row) {
         return std::vector{row, row + 32, row + 64, row + 96};
       }},
  };
  for (const auto& c : cases) {
    TensorMemory memory;
    const auto lane = static_cast<uint16_t>(c.shape == CopyShape::k4x256b ? 31 : 0);
    const auto plan = PlanCopy(c.shape, Decompress::kNone, {lane, 24}, kPlainSource, shared.window());
    ASSERT_TRUE(plan) << plan.error().message;
    ExecuteCopy(*plan, {shared.window(), &memory});
    for (int row = 0; row < c.rows; ++row) {
      for (const int to : c.lanes(row)) {
        for (int byte = 0; byte < c.row_bytes; ++byte)
          ASSERT_EQ(memory.Read(to, 24 + byte / 4) >> (byte % 4 * 8) & 255, shared.At(PlainSource(row, byte)));
      }
    }
    // Exactly the announced cells are written.
    std::set<std::pair<int, int>> announced;
    for (const TensorRange& r : plan->touched.tensor_writes) {
      for (int l = r.lane; l < r.lane + r.lanes; ++l) {
        for (int col = r.column; col < r.column + r.columns; ++col) announced.insert({l, col});
      }
    }
    for (int l = 0; l < 128; ++l) {
      for (int col = 0; col < 512; ++col) ASSERT_EQ(memory.Written(l, col), announced.count({l, col}) == 1);
    }
  }
}

TEST(TensorMemory, CopyDecompressesIntoContainers) {
  SharedFixture shared;
  TensorMemory memory;
  ExecuteCopy(*PlanCopy(CopyShape::k128x128b, Decompress::kB4x16P64, {0, 0}, kPlainSource, shared.window()),
              {shared.window(), &memory});
  ExecuteCopy(*PlanCopy(CopyShape::k128x128b, Decompress::kB6x16P32, {0, 4}, kPlainSource, shared.window()),
              {shared.window(), &memory});
  for (int row = 0; row < 128; ++row) {
    unsigned __int128 packed = 0;
    for (int byte = 15; byte >= 0; --byte) packed = packed << 8 | shared.At(PlainSource(row, byte));
    for (int i = 0; i < 16; ++i) {
      EXPECT_EQ(memory.Read(row, i / 4) >> (i % 4 * 8) & 255, static_cast<uint32_t>(packed >> (4 * i) & 15) << 2);
      EXPECT_EQ(memory.Read(row, 4 + i / 4) >> (i % 4 * 8) & 255, static_cast<uint32_t>(packed >> (6 * i) & 63));
    }
  }
}

TEST(TensorMemory, CopyRefusesWhatIsWrong) {
  SharedFixture shared;
  const auto window = shared.window();
  EXPECT_FALSE(PlanCopy(CopyShape::k128x256b, Decompress::kNone, {32, 0}, kPlainSource, window));
  EXPECT_FALSE(PlanCopy(CopyShape::k4x256b, Decompress::kNone, {32, 0}, kPlainSource, window));
  EXPECT_FALSE(PlanCopy(CopyShape::k128x256b, Decompress::kNone, {0, 2}, kPlainSource, window));
  EXPECT_FALSE(PlanCopy(CopyShape::k128x256b, Decompress::kNone, {0, 508}, kPlainSource, window));
  EXPECT_FALSE(PlanCopy(CopyShape::k128x256b, Decompress::kNone, {0, 0}, 0x0000401002003fff, window));
}

// ---- allocation ----

TEST(TensorMemoryAllocator, FirstFitAlignedNonIncreasing) {
  TensorMemoryAllocator a;
  const auto first = a.Allocate(256);
  ASSERT_TRUE(first && *first);
  EXPECT_EQ((*first)->column, 0u);
  EXPECT_EQ((**a.Allocate(128)).column, 256u);
  EXPECT_EQ((**a.Allocate(32)).column, 384u);
  EXPECT_EQ((**a.Allocate(32)).column, 416u);
  EXPECT_FALSE(a.Allocate(64));  // sizes must not grow
  ASSERT_TRUE(a.Release({0, 0}, 256));
  EXPECT_EQ((**a.Allocate(32)).column, 0u);
  EXPECT_TRUE(a.Covers(256, 192));
  EXPECT_FALSE(a.Covers(256, 193));
  EXPECT_FALSE(a.Covers(500, 32));
}

TEST(TensorMemoryAllocator, MisuseIsNamed) {
  TensorMemoryAllocator a;
  EXPECT_NE(a.Allocate(48).error().message.find("32, 64, 128, 256 or 512"), std::string::npos);
  ASSERT_TRUE(a.Allocate(512));
  const auto waiting = a.Allocate(512);
  ASSERT_TRUE(waiting);
  EXPECT_FALSE(*waiting);  // full: the instruction waits
  EXPECT_NE(a.Release({0, 0}, 256).error().message.find("allocated with 512"), std::string::npos);
  EXPECT_FALSE(a.Release({1, 0}, 512));
  ASSERT_TRUE(a.Release({0, 0}, 512));
  EXPECT_NE(a.Release({0, 0}, 512).error().message.find("nothing is allocated"), std::string::npos);
  ASSERT_TRUE(a.Allocate(32));
  ASSERT_TRUE(a.RelinquishPermit());
  EXPECT_NE(a.Allocate(32).error().message.find("relinquish"), std::string::npos);
  ASSERT_EQ(a.live().size(), 1u);  // a leak, if the CTA exits now
}

TEST(TensorMemoryAllocator, PairsGetTheSameColumns) {
  TensorMemoryAllocator even, odd;
  ASSERT_TRUE(odd.Allocate(128));
  const auto pair = TensorMemoryAllocator::AllocatePair(even, odd, 128);
  ASSERT_TRUE(pair && *pair);
  EXPECT_EQ((*pair)->column, 128u);
  EXPECT_TRUE(even.Release({0, 128}, 128));
  EXPECT_TRUE(odd.Release({0, 128}, 128));
}

}  // namespace
}  // namespace laneshift::emulator
