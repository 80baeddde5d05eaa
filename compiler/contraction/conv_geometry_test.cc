#include "compiler/contraction/conv_geometry.h"

#include <gtest/gtest.h>

#include <random>

#include "compiler/contraction/bindings.h"
#include "compiler/contraction/im2col_box.h"
#include "compiler/legality/tma_addressable.h"

namespace laneshift::compiler {
namespace {

ConvProblem Conv(const std::string& text) {
  const auto problem = ParseProblem("conv " + text);
  EXPECT_TRUE(problem.has_value()) << text << ": " << problem.error().message;
  return std::get<ConvProblem>(*problem);
}

ConvGeometry GeometryUnder(const ConvProblem& conv, const Schedule& schedule) {
  const Problem problem = conv;
  return ContractionOf(problem, schedule).geometry;
}
ConvGeometry GeometryWith(const ConvProblem& problem, Reuse reuse) {
  Schedule schedule;
  schedule.reuse = reuse;
  return GeometryUnder(problem, schedule);
}
int64_t CentreColumn(const ConvProblem& problem) { return GeometryWith(problem, Reuse::kIm2col).CentreColumn(); }

// "column:phase+row", in order.
std::string ColumnsOf(const ConvGeometry& geometry) {
  std::string text;
  for (const ConvGeometry::Column& c : geometry.columns) {
    text +=
        (text.empty() ? "" : " ") + std::to_string(c.s) + ":" + std::to_string(c.phase) + "+" + std::to_string(c.row);
  }
  return text;
}

struct Planned {
  const char* problem;
  std::vector<int> phases;
  const char* columns;
  int halo;
  int64_t padded_q;
};

TEST(ConvGeometry, PlansReuseAsByHand) {
  const Planned cases[] = {
      // Stride 1: one phase, a row for each column; w = 14 with pad 1 has 14 outputs.
      {"n=1 h=14 w=14 c=8 k=8 r=3 s=3 pad=1", {0}, "0:0+0 1:0+1 2:0+2", 2, 16},
      // Dilation 3: three rows from column to column. 20 - 6 = 14 outputs.
      {"n=1 w=20 c=8 k=8 s=3 dilation=3", {0}, "0:0+0 1:0+3 2:0+6", 6, 20},
      // Stride 2: the even and the odd input columns. 21 wide, 5 taps: 9 outputs.
      {"n=1 w=21 c=8 k=8 s=5 stride=2", {0, 1}, "0:0+0 2:0+1 4:0+2 1:1+0 3:1+1", 2, 11},
      // Stride 2 and dilation 2: all columns are even.
      {"n=1 w=21 c=8 k=8 s=3 stride=2 dilation=2", {0}, "0:0+0 1:0+1 2:0+2", 2, 11},
      // Stride 3 and dilation 2: offsets 0 2 4 6 are of phases 0 2 1 0, which begin at their first taps.
      {"n=1 w=25 c=8 k=8 s=4 stride=3 dilation=2", {0, 2, 4}, "0:0+0 3:0+2 1:1+0 2:2+0", 2, 9},
      // A filter no wider than the stride: nothing is used twice.
      {"n=1 w=12 c=8 k=8 s=3 stride=3", {0, 1, 2}, "0:0+0 1:1+0 2:2+0", 0, 4},
      {"n=1 w=12 c=8 k=8 s=1", {0}, "0:0+0", 0, 12},
  };
  for (const Planned& c : cases) {
    const ConvGeometry geometry = GeometryWith(Conv(c.problem), Reuse::kRowOffset);
    EXPECT_EQ(geometry.phases, c.phases) << c.problem;
    EXPECT_EQ(ColumnsOf(geometry), c.columns) << c.problem;
    EXPECT_EQ(geometry.halo, c.halo) << c.problem;
    EXPECT_EQ(geometry.padded_q, c.padded_q) << c.problem;
  }
}

TEST(ConvGeometry, MaskedBordersIndexTheImageAndBeginAtTheCentre) {
  Schedule schedule;
  schedule.reuse = Reuse::kLaneShift;
  schedule.border = Border::kMask;
  const ConvProblem problem = Conv("n=2 h=9 w=14 c=8 k=8 r=3 s=5 pad=1,4 dilation=1,2");
  const ConvGeometry geometry = GeometryUnder(problem, schedule);
  EXPECT_TRUE(geometry.masks_border);
  EXPECT_EQ(geometry.padded_q, 14);
  EXPECT_EQ(geometry.positions, 2 * 9 * 14);
  EXPECT_EQ(ColumnsOf(geometry), "2:0+4 3:0+6 4:0+8 0:0+0 1:0+2");
  ASSERT_EQ(geometry.Chains(), 2);
  EXPECT_EQ(geometry.ColumnsOf(0).size(), 3u);
  EXPECT_EQ(geometry.ColumnsOf(0).front().border_offset, 0);
  EXPECT_EQ(geometry.ColumnsOf(0).back().border_offset, 4);
  EXPECT_EQ(geometry.ColumnsOf(1).front().border_offset, -4);
  EXPECT_EQ(geometry.ColumnsOf(1).back().border_offset, -2);
  const Im2colBox box = BoxOfX(geometry);
  EXPECT_EQ(box.lower[0], 0);
  EXPECT_EQ(box.upper[0], 0);
  EXPECT_EQ(box.lower[1], -1);
}

TEST(ConvGeometry, BordersAreMaskedOnlyWhereAColumnStandsOnTheOutput) {
  EXPECT_EQ(CentreColumn(Conv("n=1 w=14 c=8 k=8 s=3 pad=1")), 1);
  EXPECT_EQ(CentreColumn(Conv("n=1 w=14 c=8 k=8 s=3 pad=0:2")), 0);
  EXPECT_EQ(CentreColumn(Conv("n=1 w=14 c=8 k=8 s=3 pad=4:0 dilation=2")), 2);
  for (const char* other : {"n=1 w=14 c=8 k=8 s=3", "n=1 w=14 c=8 k=8 s=3 pad=2", "n=1 w=14 c=8 k=8 s=3 pad=1 stride=2",
                            "n=1 w=14 c=8 k=8 s=3 pad=1:3 dilation=2"}) {
    EXPECT_EQ(CentreColumn(Conv(other)), -1) << other;
    Schedule schedule;
    schedule.reuse = Reuse::kRowOffset;
    schedule.border = Border::kMask;
    EXPECT_FALSE(GeometryUnder(Conv(other), schedule).masks_border) << other;
  }
}

TEST(ConvGeometry, FusedShiftsLoseTheLanesOfTheLongestChain) {
  Schedule schedule;
  schedule.reuse = Reuse::kLaneShift;
  schedule.shift = ShiftForm::kFused;
  const struct {
    const char* problem;
    int stale;
  } cases[] = {{"n=1 h=9 w=30 c=8 k=8 r=3 s=3 pad=1", 2},
               {"n=1 w=30 c=8 k=8 s=5 dilation=3", 12},
               {"n=1 w=30 c=8 k=8 s=5 stride=2", 2},
               {"n=1 w=30 c=8 k=8 s=3 stride=3", 0}};
  for (const auto& c : cases) {
    const ConvGeometry geometry = GeometryUnder(Conv(c.problem), schedule);
    EXPECT_EQ(geometry.stale, c.stale) << c.problem;
    EXPECT_EQ(geometry.TileRows(schedule), 128 - 4 * c.stale) << c.problem;
  }
}

TEST(ConvGeometry, WithoutReuseTheIndexIsTheOutput) {
  const ConvGeometry geometry = GeometryWith(Conv("n=2 h=9 w=11 c=24 k=8 r=3 s=5 pad=1 groups=2"), Reuse::kIm2col);
  EXPECT_FALSE(geometry.Reuses());
  EXPECT_EQ(geometry.padded_q, 9);
  EXPECT_EQ(geometry.positions, 2 * 9 * 9);
  EXPECT_EQ(geometry.channels, 12);
  EXPECT_EQ(geometry.filters, 4);
  EXPECT_EQ(geometry.taps, 15);
  EXPECT_EQ(geometry.run, 12);
}

TEST(ConvGeometry, GatheredRunsSpanTheFilter) {
  Schedule gather;
  gather.reuse = Reuse::kIm2col;
  gather.a_load = LoadPath::kCopy;
  EXPECT_EQ(GeometryUnder(Conv("n=1 h=9 w=9 c=3 k=8 r=7 s=7 pad=3 stride=2"), gather).run, 147);
}

// A geometry of up to three dimensions, small.
ConvProblem RandomConv(std::mt19937& random) {
  const auto in = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
  ConvProblem p = Conv("n=2 d=2 h=2 w=2 c=8 k=8 t=1 r=1 s=1");
  do {
    for (const int d : {kDepth, kHeight, kWidth}) {
      p.input[d] = in(1, 12);
      p.filter[d] = in(1, 5);
      p.stride[d] = in(1, 3);
      p.dilation[d] = in(1, 3);
      p.pad_before[d] = in(0, 4);
      p.pad_after[d] = in(0, 4);
    }
  } while (p.Output()[kDepth] < 1 || p.Output()[kHeight] < 1 || p.Output()[kWidth] < 1);
  return p;
}

// Position q of a row along width is the input column of tap 0 of output column q; a column's rows further, displaced
// by its phase, is the input column of its tap.
TEST(Im2colBox, AddressesEveryTapOfTheDirectIndexMap) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const ConvProblem p = RandomConv(random);
    const ConvGeometry geometry = GeometryWith(p, round % 2 == 0 ? Reuse::kIm2col : Reuse::kLaneShift);
    const Im2colBox box = BoxOfX(geometry);
    for (const int d : {kDepth, kHeight, kWidth}) {
      const auto i = static_cast<size_t>(kWidth - d);
      const int64_t stops = (p.input[d] - 1 + box.upper[i] - box.lower[i]) / box.step[i] + 1;
      ASSERT_EQ(stops, d == kWidth ? geometry.padded_q : p.Output()[d]) << PrintProblem(p);
      ASSERT_EQ(box.lower[i], -p.pad_before[d]);
      ASSERT_EQ(box.step[i], p.stride[d]);
    }
    for (const ConvGeometry::Column& column : geometry.columns) {
      for (int64_t q = 0; q < p.Output()[kWidth]; ++q) {
        const int64_t direct = q * p.stride[kWidth] - p.pad_before[kWidth] + column.s * p.dilation[kWidth];
        ASSERT_LT(q + column.row, geometry.padded_q);
        const int64_t stop = box.lower[0] + (q + column.row) * box.step[0];
        ASSERT_EQ(stop + geometry.phases[static_cast<size_t>(column.phase)], direct) << PrintProblem(p);
      }
    }
  }
}

TEST(Bindings, TheMapOfXHasTheBoxOfTheIndex) {
  const Problem problem = *ParseProblem("conv n=2 h=14 w=15 c=64 k=32 r=3 s=5 pad=1,2 stride=1,2");
  Schedule schedule;
  schedule.reuse = Reuse::kRowOffset;
  const ir::Param param{.binding = ir::Binding::kMapA,
                        .box = {.type = DataType::kBf16,
                                .outer_axis = ir::Axis::kM,
                                .inner_axis = ir::Axis::kK,
                                .outer = 136,
                                .inner = 64,
                                .swizzle = ir::Swizzle::k128}};
  const MappedTensor tensor = TensorOf(ContractionOf(problem, schedule), schedule, param);
  EXPECT_TRUE(tensor.im2col);
  EXPECT_EQ(tensor.dims, (std::vector<int64_t>{64, 15, 14, 2}));
  EXPECT_EQ(tensor.strides, (std::vector<int64_t>{64, 15 * 64, 14 * 15 * 64}));
  EXPECT_EQ(tensor.element_strides, (std::vector<int64_t>{1, 2, 1, 1}));
  EXPECT_EQ(tensor.box, (std::vector<int64_t>{64, 136}));
  // Width: 8 outputs and a halo of 2 are 10 positions from -2 in steps of 2: the last is 16, 2 right of column 14.
  // Height: 14 positions from -1: the last is 12, one before row 13.
  EXPECT_EQ(tensor.lower, (std::vector<int64_t>{-2, -1}));
  EXPECT_EQ(tensor.upper, (std::vector<int64_t>{2, -1}));
}

struct TmaCase {
  const char* problem;
  const char* schedule;
  ir::Operand operand;
  const char* refusal;  // empty: reached
};

TEST(TmaAddressable, NamesTheRuleOfAConvolution) {
  using enum ir::Operand;
  const TmaCase cases[] = {
      {"n=1 h=9 w=9 c=16 k=16 r=3 s=3 pad=1", "reuse=im2col", kA, ""},
      {"n=1 h=9 w=9 c=16 k=16 r=3 s=3 pad=1", "reuse=im2col", kB, ""},
      {"n=1 h=9 w=9 c=16 k=16 r=3 s=3 pad=1", "reuse=im2col", kD, ""},
      {"n=1 h=9 w=9 c=3 k=16 r=3 s=3", "reuse=im2col", kA, "x: its pixel pitch of 6 bytes is not a multiple of 16"},
      {"n=1 h=9 w=9 c=16 k=16 r=3 s=3 align_x=8", "reuse=im2col", kA,
       "x: its base alignment of 8 bytes is not a multiple of 16"},
      {"n=2 h=9 w=9 c=16 k=16 r=3 s=3 x_image=1300", "reuse=im2col", kA, "its image pitch of 2600 bytes"},
      {"n=1 h=9 w=9 c=96 k=16 r=3 s=3 groups=2", "tile=128x16x64 reuse=im2col", kA,
       "a block of 64 channels would mix groups of 48"},
      {"n=1 h=9 w=300 c=16 k=16 r=1 s=140 pad=0,139", "reuse=im2col", kA, "limits are -128 to 127"},
      {"n=1 w=600 c=16 k=16 s=2 dilation=256 pad=0:200", "reuse=im2col", kA, "reach of 256 pixels exceeds the 255"},
      {"n=1 w=60 c=16 k=16 s=2 stride=9", "reuse=im2col", kA, "stride 9 exceeds the limit of 8"},
      {"n=1 h=9 w=9 c=16 k=12 r=3 s=3", "reuse=im2col", kD, "y: its pixel pitch of 24 bytes"},
      {"n=1 h=9 w=9 c=16 k=12 r=3 s=3 y_pixel=16", "reuse=im2col", kD, "stores clip only at multiples of 16"},
      {"n=1 h=9 w=9 c=16 k=16 r=3 s=3", "reuse=row_offset", kD, "bulk stores cannot skip gaps"},
      {"n=1 h=9 w=9 c=16 k=16 r=3 s=3 groups=2", "tile=128x16 reuse=im2col", kD,
       "tiles of 16 channels would mix groups of 8"},
      {"n=1 h=9 w=9 c=16 k=16 r=3 s=3 w_tap=24", "reuse=im2col", kB, ""},
      {"n=1 h=9 w=9 c=16 k=16 r=3 s=3 w_tap=24", "reuse=im2col a_load=copy", kB, "without gaps"},
  };
  for (const TmaCase& c : cases) {
    const Problem problem = Conv(c.problem);
    const Schedule schedule = ParseSchedule(c.schedule)->value;
    const Status status = CheckTmaAddressable(ContractionOf(problem, schedule), schedule, c.operand);
    const std::string message = status ? "" : status.error().message;
    if (c.refusal[0] == '\0') {
      EXPECT_EQ(message, "") << c.problem;
    } else {
      EXPECT_NE(message.find(c.refusal), std::string::npos) << c.problem << ": '" << message << "'";
      EXPECT_FALSE(status.has_value());
    }
  }
}

}  // namespace
}  // namespace laneshift::compiler
