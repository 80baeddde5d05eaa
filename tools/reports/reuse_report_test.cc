// The evidence of reuse against what the emulator counts when the kernels run.
#include "tools/reports/reuse_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "autotune/ranking.h"
#include "base/text.h"
#include "compiler/compile.h"
#include "device/buffer.h"
#include "device/stream.h"
#include "emulator/driver/driver.h"
#include "laneshift/engine.h"
#include "runtime/engine_parts.h"

namespace laneshift::tools {
namespace {

using autotune::ReuseMode;

struct Case {
  const char* name;
  const char* target;
  const char* mode;
  const char* problem;
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

// One full-row tile and a ragged one; a filter of an even number of rows; two shifts, dilated ones, and two phases.
constexpr const char* kPlain = "conv n=1 h=3 w=60 c=64 k=16 r=2 s=3 pad=1 x=bf16 w=bf16 y=bf16";
constexpr const char* kDilated = "conv n=1 h=2 w=30 c=64 k=16 r=1 s=3 pad=0,2 dilation=1,2 x=bf16 w=bf16 y=bf16";
constexpr const char* kStrided = "conv n=1 h=3 w=61 c=64 k=16 r=3 s=5 pad=1,2 stride=1,2 x=bf16 w=bf16 y=bf16";
constexpr Case kCases[] = {
    {"im2col_on_sm_100a", "sm_100a", "im2col", kPlain},
    {"im2col_on_sm_90a", "sm_90a", "im2col", kPlain},
    {"row_offset_on_sm_100a", "sm_100a", "row_offset", kPlain},
    {"row_offset_on_sm_90a", "sm_90a", "row_offset", kPlain},
    {"strided_row_offset_on_sm_90a", "sm_90a", "row_offset", kStrided},
    {"lane_shift", "sm_100a", "lane_shift", kPlain},
    {"dilated_lane_shift", "sm_100a", "lane_shift", kDilated},
    {"strided_lane_shift", "sm_100a", "lane_shift", kStrided},
    {"masked_row_offset", "sm_100a", "row_offset border=mask", kPlain},
    {"masked_lane_shift", "sm_100a", "lane_shift border=mask", kPlain},
    {"fused_lane_shift", "sm_100a", "lane_shift shift=fused", kPlain},
    {"dilated_fused_lane_shift", "sm_100a", "lane_shift shift=fused", kDilated},
    {"strided_fused_lane_shift", "sm_100a", "lane_shift shift=fused", kStrided},
};

constexpr int kSms = 4;

ReuseMode ModeOf(std::string_view name, const char* text, const target::Target& target) {
  const Problem problem = *ParseProblem(text);
  const auto chosen = autotune::ChooseSchedule(problem, {}, target, kSms);
  if (chosen) {
    for (ReuseMode& mode : autotune::CompareReuseModes(problem, *chosen, target, kSms)) {
      if (mode.name == name) return std::move(mode);
    }
  }
  ADD_FAILURE() << "no mode " << name;
  return {};
}

// What the emulator counts while the mode's schedule runs the problem on zeros.
Result<emulator::Counters> CountersOf(const char* target, const char* text, const ReuseMode& mode) {
  EngineOptions options;
  options.store_directory = ":memory:";
  options.device = "emulator";
  options.target = target;
  LS_ASSIGN(const Engine engine, Engine::Open(options));
  LS_ASSIGN(const Problem problem, ParseProblem(text));
  LS_ASSIGN(const ScheduleConstraint constraint, ParseSchedule(PrintSchedule(mode.schedule)));
  LS_ASSIGN(const Plan plan, engine.MakePlan(problem, constraint));
  LS_ASSIGN(const device::Stream stream, device::Stream::Create(engine.parts().device.context()));
  const std::vector<uint16_t> zeros(1 << 15);
  const size_t bytes = zeros.size() * sizeof(zeros[0]);
  LS_ASSIGN(const device::DeviceBuffer x, device::DeviceBuffer::Allocate(stream.context(), bytes));
  LS_ASSIGN(const device::DeviceBuffer w, device::DeviceBuffer::Allocate(stream.context(), bytes));
  LS_ASSIGN(const device::DeviceBuffer y, device::DeviceBuffer::Allocate(stream.context(), bytes));
  LS_TRY(x.CopyFromHost(stream, zeros.data(), bytes));
  LS_TRY(w.CopyFromHost(stream, zeros.data(), bytes));
  const auto pointer = [](const device::DeviceBuffer& buffer) { return reinterpret_cast<void*>(buffer.pointer()); };
  LS_TRY(stream.Synchronize());
  (void)emulator::TakeReport();
  LS_TRY(plan.Execute(stream.handle(), ConvArguments{.x = pointer(x), .w = pointer(w), .y = pointer(y)}));
  LS_TRY(stream.Synchronize());
  const emulator::Report report = emulator::TakeReport();
  EXPECT_TRUE(report.Clean()) << report.Print();
  return report.counters;
}

class ReuseReport : public testing::TestWithParam<Case> {};

TEST_P(ReuseReport, CountsWhatTheEmulatorCounts) {
  const Case& c = GetParam();
  const ReuseMode mode = ModeOf(c.mode, c.problem, target::NamedTarget(c.target));
  ASSERT_EQ(mode.refused, "");
  const auto counted = CountersOf(c.target, c.problem, mode);
  ASSERT_TRUE(counted.has_value()) << counted.error().message;
  const compiler::Traffic& told = mode.traffic.all;
  EXPECT_EQ(static_cast<uint64_t>(told.bulk_bytes), counted->bytes_global_to_shared);
  EXPECT_EQ(static_cast<uint64_t>(told.mma_shared_bytes), counted->mma_shared_bytes);
  EXPECT_EQ(static_cast<uint64_t>(told.tensor_copies + told.tensor_refreshes), counted->tensor_copies);
  EXPECT_EQ(static_cast<uint64_t>(told.tensor_copy_bytes), counted->tensor_copy_bytes);
  EXPECT_EQ(static_cast<uint64_t>(told.tensor_shifts), counted->tensor_shifts);
  EXPECT_EQ(static_cast<uint64_t>(told.mma_instructions), counted->mma_instructions);
}
INSTANTIATE_TEST_SUITE_P(All, ReuseReport, testing::ValuesIn(kCases),
                         [](const auto& tested) { return std::string(tested.param.name); });

// The point of it: one tile of activations for each filter row instead of one for each tap.
TEST(ReuseModes, LoadAFilterRowOnce) {
  const target::Target& target = target::NamedTarget("sm_100a");
  const Problem problem = *ParseProblem("conv n=1 h=16 w=126 c=64 k=64 r=3 s=3 pad=1 x=bf16 w=bf16 y=bf16");
  constexpr int64_t kTile = 128 * 64 * 2, kFilterTile = 64 * 64 * 2, kTiles = 16, kTaps = 9, kRows = 3;
  const auto traffic_of = [&](const char* mode) {
    const auto constraint =
        ParseSchedule(base::Cat("tile=128x64x64 cluster=1x1 ctas=1 shift=separate border=zeros reuse=", mode));
    const auto schedule = autotune::ChooseSchedule(problem, *constraint, target, kSms);
    const auto modes = autotune::CompareReuseModes(problem, *schedule, target, kSms);
    const auto chosen = std::find_if(modes.begin(), modes.end(), [](const ReuseMode& m) { return m.chosen; });
    EXPECT_EQ(chosen->name, mode);
    return chosen->traffic.all;
  };
  const auto x_tiles = [&](const compiler::Traffic& t) {
    return (t.bulk_bytes - kTiles * kTaps * kFilterTile) / kTile;
  };
  EXPECT_EQ(x_tiles(traffic_of("im2col")), kTiles * kTaps);
  EXPECT_EQ(x_tiles(traffic_of("row_offset")), kTiles * kRows + 3);  // and 8 rows of halo each
  EXPECT_EQ(x_tiles(traffic_of("lane_shift")), kTiles * kRows + 3);  // and 8 refreshed rows each
  EXPECT_EQ(traffic_of("lane_shift").tensor_copies, kTiles * kRows * 4);
}

TEST(ReuseModes, SayWhyTheyAreRefused) {
  const std::vector<ReuseMode> modes = [] {
    const Problem problem = *ParseProblem(kPlain);
    const target::Target& hopper = target::NamedTarget("sm_90a");
    return autotune::CompareReuseModes(problem, *autotune::ChooseSchedule(problem, {}, hopper, kSms), hopper, kSms);
  }();
  const nlohmann::ordered_json json = ReuseModesJson(modes);
  ASSERT_EQ(json.size(), 7u);
  for (const int of_tensor_memory : {3, 4, 5, 6}) {
    const auto& mode = json[static_cast<size_t>(of_tensor_memory)];
    EXPECT_NE(mode["refused"].get<std::string>().find("Tensor Memory, which sm_90a has not"), std::string::npos);
    EXPECT_TRUE(mode["schedule"].is_null());
    EXPECT_TRUE(mode["bound"].is_null());
  }
  EXPECT_TRUE(json[0]["refused"].is_null());
  EXPECT_GT(json[0]["bound"]["clocks"].get<double>(), 0);
  const std::string text = ReuseModesText(modes, {}, ScheduleView::kFull);
  EXPECT_NE(text.find("lane_shift: no schedule fits on sm_90a"), std::string::npos) << text;
  EXPECT_NE(text.find("im2col"), std::string::npos) << text;
}

// Masked borders take the positions between image rows away: 16 of 14 x 14 pixels, of which 14 rows of 16 stood in 14
// tiles of 128, are 25 instead of 28. Fused shifts give 8 lanes of 128 up and bring no refreshed rows.
TEST(ReuseModes, VariantsSaveWhatTheyPromise) {
  const target::Target& target = target::NamedTarget("sm_100a");
  const Problem problem = *ParseProblem("conv n=16 h=14 w=14 c=64 k=64 r=3 s=3 pad=1 x=bf16 w=bf16 y=bf16");
  const auto traffic_of = [&](const char* constraint) {
    const auto schedule =
        *autotune::ChooseSchedule(problem, *ParseSchedule(base::Cat("tile=128x64x64 ", constraint)), target, kSms);
    const auto program = *compiler::BuildProgram(problem, schedule, target);
    return compiler::CountTraffic(problem, schedule, program, target, kSms).all;
  };
  constexpr int64_t kProducts = 9 * 4;  // of a tile
  EXPECT_EQ(traffic_of("reuse=row_offset border=zeros").mma_instructions, 28 * kProducts);
  EXPECT_EQ(traffic_of("reuse=row_offset border=mask").mma_instructions, 25 * kProducts);
  EXPECT_EQ(traffic_of("reuse=lane_shift border=mask").mma_instructions, 25 * kProducts);
  // The chain from the centre on and the one from the left begin with a copy each; the second one has no move.
  EXPECT_EQ(traffic_of("reuse=lane_shift border=mask").tensor_copies, 25 * 3 * 2 * 4);
  EXPECT_EQ(traffic_of("reuse=lane_shift border=mask").tensor_shifts, 25 * 3 * 4);
  const compiler::Traffic fused = traffic_of("reuse=lane_shift shift=fused");
  EXPECT_EQ(fused.mma_instructions, 30 * kProducts);  // 3584 positions, 120 a tile
  EXPECT_EQ(fused.tensor_copies, 30 * 3 * 4);
  EXPECT_EQ(fused.tensor_shifts + fused.tensor_refreshes, 0);
  EXPECT_EQ(fused.bulk_bytes, 30 * (3 * 128 * 128 + 9 * 64 * 128));
}

TEST(ReuseModes, AreOnlyOfConvolutions) {
  const Problem problem = *ParseProblem("gemm m=64 n=64 k=64");
  const target::Target& target = target::Targets().front();
  EXPECT_TRUE(
      autotune::CompareReuseModes(problem, *autotune::ChooseSchedule(problem, {}, target, 1), target, 1).empty());
}

}  // namespace
}  // namespace laneshift::tools
