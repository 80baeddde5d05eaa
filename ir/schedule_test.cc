#include "laneshift/schedule.h"

#include <gtest/gtest.h>

namespace laneshift {
namespace {

constexpr uint32_t kAllFields = (1u << 26) - 1;

TEST(Schedule, PrintsEveryFieldInFixedOrder) {
  EXPECT_EQ(PrintSchedule(Schedule{}),
            "tile=128x128x64 stages=4 acc=2 math=1 raster=8 a_load=tma b_load=tma b_keep=0 d_store=tma reuse=none "
            "shift=separate border=zeros filter_stages=4 cluster=1x1 cluster_k=1 ctas=1 "
            "scheduler=static rows=m consumers=cooperative split_k=1 merge_groups=1 scale_warps=none early=none");
}

TEST(Schedule, EveryPrintedFormParsesBackFullyDecided) {
  const Schedule odd{.tile_m = 64,
                     .tile_n = 256,
                     .tile_k = 32,
                     .stages = 7,
                     .acc_stages = 1,
                     .math_warpgroups = 2,
                     .raster = 16,
                     .a_load = LoadPath::kCopy,
                     .b_load = LoadPath::kTma,
                     .b_keep = 9,
                     .d_store = StorePath::kDirect,
                     .reuse = Reuse::kLaneShift,
                     .shift = ShiftForm::kFused,
                     .border = Border::kMask,
                     .cluster_m = 4,
                     .cluster_n = 2,
                     .cluster_k = 8,
                     .ctas = 2,
                     .scheduler = Scheduler::kClc,
                     .rows = RowSide::kN,
                     .consumers = Consumers::kPingpong};
  for (const Schedule& schedule : {Schedule{}, odd}) {
    const auto parsed = ParseSchedule(PrintSchedule(schedule));
    ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
    EXPECT_EQ(parsed->value, schedule);
    EXPECT_EQ(parsed->fixed, kAllFields);
  }
}

TEST(Schedule, WordsMayComeInAnyOrder) {
  const auto parsed = ParseSchedule("  d_store=direct   tile=64x8x16 b_load=copy ");
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_EQ(parsed->value.tile_m, 64);
  EXPECT_EQ(parsed->value.tile_n, 8);
  EXPECT_EQ(parsed->value.tile_k, 16);
  EXPECT_EQ(parsed->value.a_load, LoadPath::kTma);
  EXPECT_EQ(parsed->value.b_load, LoadPath::kCopy);
  EXPECT_EQ(parsed->value.d_store, StorePath::kDirect);
  EXPECT_EQ(parsed->fixed, 0b101'0000'0111u) << "tile, b_load, d_store";
}

TEST(Schedule, TileKStaysOpenWithoutItsNumber) {
  const auto parsed = ParseSchedule("tile=128x256");
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_EQ(parsed->fixed, 0b11u);
  EXPECT_TRUE(parsed->Admits({.tile_m = 128, .tile_n = 256, .tile_k = 32}));
  EXPECT_FALSE(parsed->Admits({.tile_m = 128, .tile_n = 128}));
}

TEST(Schedule, AnEmptyConstraintAdmitsEverything) {
  EXPECT_TRUE(ScheduleConstraint{}.Admits(Schedule{.tile_m = 1, .stages = 9}));
  EXPECT_EQ(ParseSchedule("")->fixed, 0u);
}

// Each field decided by itself: a schedule that differs in it is not admitted, one that differs elsewhere is.
TEST(Schedule, AdmitsLooksAtEveryDecidedField) {
  const std::string_view words[] = {"stages=9",    "acc=3",       "math=4",   "raster=5",
                                    "a_load=copy", "b_load=copy", "b_keep=9", "d_store=direct"};
  for (size_t i = 0; i < std::size(words); ++i) {
    const auto decided = ParseSchedule(words[i]);
    ASSERT_TRUE(decided.has_value()) << decided.error().message;
    EXPECT_EQ(decided->fixed, 1u << (3 + i)) << words[i];
    EXPECT_FALSE(decided->Admits(Schedule{})) << words[i];
    Schedule other = decided->value;
    other.tile_m = 64;
    EXPECT_TRUE(decided->Admits(other)) << words[i];
  }
}

struct ScheduleWords {
  const char* text;
  const char* message;
};

class BadSchedule : public testing::TestWithParam<ScheduleWords> {};

TEST_P(BadSchedule, IsRefusedByName) {
  const auto schedule = ParseSchedule(GetParam().text);
  ASSERT_FALSE(schedule.has_value());
  EXPECT_EQ(schedule.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(schedule.error().message.find(GetParam().message), std::string::npos) << schedule.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    All, BadSchedule,
    testing::Values(
        ScheduleWords{"tile=128", "tile=128 has 1 numbers; write for example tile=128x128x64"},
        ScheduleWords{"tile=1x2x3x4", "has 4 numbers"}, ScheduleWords{"tile=128xx64", "'' is not a whole number"},
        ScheduleWords{"tile=0x8", "0 is out of range; use 1 to 1024"}, ScheduleWords{"stages=65", "use 1 to 64"},
        ScheduleWords{"b_keep=65", "65 is out of range; use 0 to 64"}, ScheduleWords{"stages=-1", "out of range"},
        ScheduleWords{"stages=99999999999999999999", "not a whole number"},
        ScheduleWords{"stages=4 stages=4", "'stages' is given twice"},
        ScheduleWords{"stage=4", "did you mean 'stages'?"}, ScheduleWords{"zzzz=4", "known keys: tile stages acc"},
        ScheduleWords{"a_load=direct", "use tma, copy, pack or async"},
        ScheduleWords{"d_store=copy", "use tma, direct or rows"},
        ScheduleWords{"cluster=2", "has 1 numbers; write for example cluster=1x1"},
        ScheduleWords{"ctas=3", "use 1 to 2"}, ScheduleWords{"scheduler=dynamic", "use static or clc"},
        ScheduleWords{"stages", "not of the form key=value"}, ScheduleWords{"stages=", "not a whole number"}));

}  // namespace
}  // namespace laneshift
