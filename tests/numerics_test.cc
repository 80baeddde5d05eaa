// numerics=batch_invariant: with any schedule, a row of A (an image) gives the same bits for any number of others.
// Every schedule of the space is run on the emulator, with bit-exact tensor-core sums.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "autotune/space.h"
#include "compiler/compile.h"
#include "laneshift/host_run.h"
#include "runtime/engine_parts.h"

namespace laneshift {
namespace {

Problem Parse(const std::string& text) {
  auto problem = ParseProblem(text);
  EXPECT_TRUE(problem) << text;
  return *problem;
}

// bf16 of many magnitudes, so that the order of a sum shows.
std::vector<uint16_t> Values(size_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::uniform_int_distribution<int> sign(0, 1), exponent(118, 132), mantissa(0, 127);
  std::vector<uint16_t> values(count);
  for (uint16_t& value : values) {
    value = static_cast<uint16_t>(sign(engine) << 15 | exponent(engine) << 7 | mantissa(engine));
  }
  return values;
}

// What distinguishes the order of a sum, and what it might depend on by mistake: one schedule of each, not all.
std::string FamilyOf(const Schedule& s) {
  Schedule family = s;
  family.tile_n = s.tile_n >= 64 ? 64 : 16;
  family.stages = family.filter_stages = 2;
  family.raster = 1;
  family.cluster_m = family.cluster_n = 1;
  return PrintSchedule(family);
}
std::vector<Schedule> OneOfEachFamily(const Problem& problem, const target::Target& target) {
  std::set<std::string> seen;
  std::vector<Schedule> schedules;
  for (const Schedule& schedule : autotune::EnumerateSchedules(problem, {}, target).schedules) {
    if (seen.insert(FamilyOf(schedule)).second) schedules.push_back(schedule);
  }
  return schedules;
}

// The first `resident` elements of D (y) under the schedule.
std::vector<float> Compute(const Engine& engine, const Problem& problem, const Schedule& schedule, size_t elements,
                           size_t kept) {
  const std::vector<uint16_t> left = Values(1 << 15, 1), right = Values(1 << 15, 2);
  std::vector<float> out(elements, -1);
  const Status ran =
      std::holds_alternative<GemmProblem>(problem)
          ? RunFromHost(engine, problem, GemmArguments{.a = left.data(), .b = right.data(), .d = out.data()},
                        *ParseSchedule(PrintSchedule(schedule)))
          : RunFromHost(engine, problem, ConvArguments{.x = left.data(), .w = right.data(), .y = out.data()},
                        *ParseSchedule(PrintSchedule(schedule)));
  EXPECT_TRUE(ran) << PrintProblem(problem) << ": " << PrintSchedule(schedule) << ": " << ran.error().message;
  out.resize(kept);
  return out;
}

struct Batch {
  std::string few, many;  // the same problem for fewer and for more rows or images
  size_t few_elements, many_elements;
};

class BatchInvariance : public testing::TestWithParam<const char*> {};

TEST_P(BatchInvariance, EverySchedulesBitsAreTheSame) {
  auto engine = Engine::Open({.device = "emulator", .target = GetParam(), .store_directory = ":memory:"});
  ASSERT_TRUE(engine) << engine.error().message;
  const target::Target& target = engine->parts().target;
  const Batch batches[] = {
      {"gemm m=3 n=24 k=200 d=f32", "gemm m=70 n=24 k=200 d=f32", 3 * 24, 70 * 24},
      {"conv n=1 h=5 w=6 c=96 k=16 r=3 s=3 pad=1 y=f32", "conv n=4 h=5 w=6 c=96 k=16 r=3 s=3 pad=1 y=f32", 30 * 16,
       4 * 30 * 16},
      {"conv n=1 h=5 w=6 c=8 k=16 r=3 s=3 pad=1 y=f32", "conv n=4 h=5 w=6 c=8 k=16 r=3 s=3 pad=1 y=f32", 30 * 16,
       4 * 30 * 16},
  };
  for (const Batch& batch : batches) {
    std::vector<float> expected;
    size_t compared = 0;
    for (const bool many : {false, true}) {
      const Problem problem = Parse((many ? batch.many : batch.few) + " numerics=batch_invariant");
      for (const Schedule& schedule : OneOfEachFamily(problem, target)) {
        const std::vector<float> got =
            Compute(*engine, problem, schedule, many ? batch.many_elements : batch.few_elements, batch.few_elements);
        if (expected.empty()) expected = got;
        EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0)
            << PrintProblem(problem) << ": " << PrintSchedule(schedule);
        ++compared;
      }
    }
    EXPECT_GE(compared, 4u) << batch.few << ": hardly any schedule is left";
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, BatchInvariance, testing::Values("sm_90a", "sm_100a"));

TEST(Numerics, SchedulesOfAnotherOrderAreRefusedByName) {
  const target::Target& target = target::NamedTarget("sm_90a");
  const Problem wide = Parse("conv n=1 h=5 w=6 c=32 k=16 r=3 s=3 pad=1 y=f32 numerics=batch_invariant");
  const Problem narrow = Parse("conv n=1 h=5 w=6 c=8 k=16 r=3 s=3 pad=1 y=f32 numerics=batch_invariant");
  const auto refusal = [&](const Problem& problem, const std::string& schedule) {
    const auto parsed = ParseSchedule("tile=64x16x64 stages=3 acc=1 math=1 d_store=direct " + schedule);
    const auto fits = compiler::ValidateSchedule(problem, parsed->value, target);
    return fits ? std::string() : fits.error().message;
  };
  EXPECT_NE(refusal(wide, "reuse=row_offset").find("use reuse=im2col"), std::string::npos)
      << refusal(wide, "reuse=row_offset");
  EXPECT_NE(refusal(narrow, "reuse=im2col a_load=tma").find("use a_load=copy"), std::string::npos)
      << refusal(narrow, "reuse=im2col a_load=tma");
  EXPECT_EQ(refusal(wide, "reuse=im2col a_load=copy"), "");
}

// The test above can fail: without the rules, schedules differ.
TEST(Numerics, WithoutTheRuleTheOrderOfSummationShows) {
  auto engine = Engine::Open({.device = "emulator", .target = "sm_90a", .store_directory = ":memory:"});
  ASSERT_TRUE(engine);
  const Problem problem = Parse("conv n=1 h=5 w=6 c=96 k=16 r=3 s=3 pad=1 y=f32");
  std::set<std::vector<float>> results;
  for (const Schedule& schedule : OneOfEachFamily(problem, engine->parts().target)) {
    results.insert(Compute(*engine, problem, schedule, 480, 480));
    if (results.size() > 1) break;
  }
  EXPECT_GT(results.size(), 1u);
}

// Every schedule of a depthwise convolution on CUDA cores adds the products of an output in the order of the taps.
TEST(Numerics, DirectConvolutionsSumInTheOrderOfTaps) {
  constexpr int kImages = 2, kRows = 5, kColumns = 11, kChannels = 16, kTaps = 3;
  auto engine = Engine::Open({.device = "emulator", .target = "sm_90a", .store_directory = ":memory:"});
  ASSERT_TRUE(engine);
  const Problem problem = Parse("conv n=2 h=5 w=11 c=16 k=16 r=3 s=3 pad=1 groups=16 y=f32");
  const std::vector<uint16_t> x = Values(1 << 15, 1), w = Values(1 << 15, 2);
  const auto widened = [](uint16_t value) { return std::bit_cast<float>(uint32_t{value} << 16); };
  std::vector<float> expected;
  for (int pixel = 0; pixel < kImages * kRows * kColumns; ++pixel) {
    const int image = pixel / (kRows * kColumns), row = pixel / kColumns % kRows, column = pixel % kColumns;
    for (int channel = 0; channel < kChannels; ++channel) {
      float sum = 0;
      for (int tap = 0; tap < kTaps * kTaps; ++tap) {
        const int h = row - 1 + tap / kTaps, at = column - 1 + tap % kTaps;
        const bool inside = h >= 0 && h < kRows && at >= 0 && at < kColumns;
        const int from = ((image * kRows + h) * kColumns + at) * kChannels + channel;
        sum = std::fma(inside ? widened(x[static_cast<size_t>(from)]) : 0.0F,
                       widened(w[static_cast<size_t>(channel * kTaps * kTaps + tap)]), sum);
      }
      expected.push_back(sum);
    }
  }
  const auto direct = ParseSchedule("reuse=direct");
  const std::vector<Schedule> schedules =
      autotune::EnumerateSchedules(problem, *direct, engine->parts().target).schedules;
  EXPECT_GE(schedules.size(), 4u);
  for (const Schedule& schedule : schedules) {
    EXPECT_EQ(Compute(*engine, problem, schedule, expected.size(), expected.size()), expected)
        << PrintSchedule(schedule);
  }
}

}  // namespace
}  // namespace laneshift
