#include "compiler/contraction/pixel_windows.h"

#include <gtest/gtest.h>

#include <string>

#include "compiler/contraction/contraction.h"
#include "laneshift/problem.h"

namespace laneshift::compiler {
namespace {

// Without the steps of the epilogue, which are the problem's.
Contraction Packed(const std::string& text, int tile_n, int tile_k) {
  Schedule schedule{.tile_m = 64, .tile_n = tile_n, .tile_k = tile_k};
  schedule.b_load = LoadPath::kPack;
  const auto problem = ParseProblem(text);
  EXPECT_TRUE(problem.has_value()) << text;
  return ContractionOf(*problem, schedule);
}

TEST(PixelWindows, OfTheStemAreFourLinesOfJoinedRows) {
  const Contraction stem = Packed("conv_wgrad n=32 h=224 w=224 c=3 k=64 r=7 s=7 pad=3 stride=2", 256, 128);
  ASSERT_EQ(stem.taps, FilterTaps::kWindows);
  EXPECT_EQ(stem.windows, (PixelWindows{.elements = 64,
                                        .rows = 2,
                                        .channels = 4,
                                        .lines = 4,
                                        .spans = 1,
                                        .block_rows = 16,
                                        .block_columns = 8,
                                        .image_lines = 115,
                                        .line_bytes = (111 * 16 + 64) * 2}));
  EXPECT_EQ(stem.n, 256);
  EXPECT_EQ(stem.run, 32 * 112 * 112);
  EXPECT_EQ(LinesOf(stem.geometry, stem.windows), 32 * 115);
}

TEST(PixelWindows, OfLongFiltersAreSeveralInALine) {
  const Contraction wgrad = Packed("conv_wgrad n=4 h=227 w=227 c=3 k=96 r=11 s=11 stride=4", 192, 64);
  EXPECT_EQ(wgrad.windows.rows, 4);
  EXPECT_EQ(wgrad.windows.channels, 3);  // 4 rows of 3 elements at stride 4 are 96 bytes
  EXPECT_EQ(wgrad.windows.lines, 3);
  EXPECT_EQ(wgrad.windows.spans, 3);  // 11 pixels of 12 elements
  EXPECT_EQ(wgrad.n, 3 * 3 * 64);
}

TEST(PixelWindows, AreRoundedUpToTiles) {
  EXPECT_EQ(Packed("conv_wgrad n=4 h=30 w=30 c=3 k=64 r=3 s=3 pad=1", 128, 64).windows.lines, 4);
  EXPECT_EQ(Packed("conv_wgrad n=4 h=30 w=30 c=3 k=64 r=3 s=3 pad=1", 192, 64).windows.lines, 3);
}

// Positions below the image would be pixels in one operand and zeros in the other one.
TEST(PixelWindows, RowsOfABlockDivideThoseOfTheOutput) {
  for (const int rows : {1, 2, 6, 9, 16, 40}) {
    const std::string text = "conv_wgrad n=1 h=" + std::to_string(rows) + " w=13 c=3 k=64 r=3 s=3 pad=1";
    const Contraction wgrad = Packed(text, 64, 64);
    const PixelWindows& windows = wgrad.windows;
    EXPECT_EQ(rows % windows.block_rows, 0) << text;
    EXPECT_EQ(windows.block_rows * windows.block_columns, 64) << text;
    EXPECT_EQ(windows.block_columns % 8, 0) << text;
    EXPECT_EQ(wgrad.run % 64, 0) << text;
  }
}

TEST(PixelWindows, AreNotThoseOfAnotherSchedule) {
  const auto problem = ParseProblem("conv_wgrad n=4 h=30 w=30 c=3 k=64 r=3 s=3 pad=1");
  Schedule schedule{.tile_m = 64, .tile_n = 64, .tile_k = 64};
  schedule.b_load = LoadPath::kPack;
  const Contraction packed = ContractionOf(*problem, schedule);
  EXPECT_EQ(packed.windows.elements, 64);
  schedule.b_load = LoadPath::kTma;
  EXPECT_EQ(packed.Under(*problem, schedule).windows, PixelWindows{});
}

TEST(PixelWindows, NeedFewChannelsWithoutDilation) {
  for (const char* other : {
           "conv_wgrad n=2 h=9 w=11 c=3 k=24 r=3 s=3 dilation=2",
           "conv_wgrad n=2 h=9 w=11 c=8 k=24 r=3 s=3",
           "conv_wgrad n=2 h=9 w=11 c=4 k=24 r=3 s=3 groups=2",
           "conv_wgrad n=2 h=9 w=11 c=3 k=24 r=1 s=1",
       })
    EXPECT_NE(Packed(other, 64, 64).taps, FilterTaps::kWindows) << other;
}

}  // namespace
}  // namespace laneshift::compiler
