#include "autotune/advice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "autotune/ranking.h"
#include "compiler/compile.h"

namespace laneshift::autotune {
namespace {

ScheduleAdvice AdviceOf(const char* target_name, const char* problem, const Schedule& schedule) {
  const target::Target& target = target::NamedTarget(target_name);
  auto advice = Advise(*ParseProblem(problem), schedule, target, PublishedMachine(target));
  EXPECT_TRUE(advice.has_value()) << PrintSchedule(schedule) << ": " << advice.error().message;
  return advice ? *advice : ScheduleAdvice{};
}

// Its place among the weaknesses: their number if it is not among them.
size_t PlaceOf(std::string_view weakness, const ScheduleAdvice& advice) {
  const auto found = std::find_if(advice.weaknesses.begin(), advice.weaknesses.end(),
                                  [&](const Weakness& w) { return w.name == weakness; });
  return static_cast<size_t>(found - advice.weaknesses.begin());
}
bool Names(const ScheduleAdvice& advice, std::string_view weakness) {
  return PlaceOf(weakness, advice) < advice.weaknesses.size();
}

// A schedule that somebody made bad in one way, and the name of that.
struct BadSchedule {
  const char *id, *weakness, *target, *problem, *schedule;
  size_t place = 0;  // among the weaknesses, of which the first costs most
  friend void PrintTo(const BadSchedule& bad, std::ostream* out) { *out << bad.id; }
};

constexpr const char* kLarge = "gemm m=4096 n=4096 k=4096";
constexpr const char* kShallow = "gemm m=8192 n=8192 k=256";

constexpr BadSchedule kBad[] = {
    {"few_stages", "too few stages", "sm_100a", kLarge, "tile=128x256x64 stages=2 acc=2 cluster=2x1 ctas=2"},
    {"odd_tile", "odd tile", "sm_90a", "gemm m=4096 n=256 k=4096", "tile=128x192x64 stages=4 acc=1 math=2"},
    {"no_multicast", "no multicast", "sm_100a", "gemm m=4096 n=4096 k=4096 a=e2m1 b=e2m1 scale=mx",
     "tile=128x64x256 stages=6 acc=2 cluster=1x1", 2},  // after the small tile and the missing pair
    {"no_pair", "no CTA pair", "sm_100a", "gemm m=8192 n=8192 k=8192", "tile=128x128x64 stages=6 acc=2 cluster=1x1"},
    {"one_accumulator", "one accumulator", "sm_100a", kShallow, "tile=128x256x64 stages=4 acc=1"},
    {"copied", "operands copied by threads", "sm_90a", kLarge, "tile=128x128x64 stages=4 acc=1 math=2 a_load=copy"},
    {"pieces", "operands copied in pieces", "sm_100a", kLarge,
     "tile=128x256x64 stages=4 acc=2 a_load=async b_load=async"},
    {"direct_stores", "output stored by threads", "sm_100a", kShallow, "tile=128x256x64 stages=4 acc=2 d_store=direct"},
    {"idle_sms", "idle SMs in the last wave", "sm_90a", "gemm m=512 n=512 k=16384",
     "tile=128x128x64 stages=6 acc=1 math=2"},
    {"small_tile", "tile too small", "sm_100a", kLarge, "tile=64x64x64 stages=8 acc=2"},
    {"large_tile", "tile too large", "sm_90a", "gemm m=256 n=1024 k=4096", "tile=256x128x64 stages=4 acc=1 math=2",
     1},  // after the SMs that 8 tiles leave idle
    {"wrong_side", "the wrong side along the rows of the MMA", "sm_90a", "gemm m=16 n=8192 k=8192",
     "tile=64x64x64 stages=8 acc=1"},
    {"cooperative", "cooperative warpgroups", "sm_90a", kShallow, "tile=128x128x64 stages=5 acc=1 math=2"},
    {"needless_slices", "split-K that does not pay", "sm_100a", "gemm m=2048 n=2048 k=512",
     "tile=128x256x64 stages=4 acc=2 split_k=8"},
    {"copied_factors", "scale factors copied by the tensor core", "sm_100a",
     "gemm m=8192 n=8192 k=8192 a=e2m1 scale=mx", "tile=128x192x256 stages=6 acc=2 cluster=2x1 ctas=2 scheduler=clc"},
    {"stored_factors", "scale factors stored by warps", "sm_100a", "gemm m=8192 n=8192 k=8192 a=e2m1 scale=nv",
     "tile=128x128x256 stages=7 acc=2 cluster=2x1 ctas=2 scheduler=clc scale_warps=all",
     1},  // after the tile, in wider ones of which they pay
    {"zeros_at_border", "zeros loaded at the border", "sm_100a", "conv n=32 h=28 w=28 c=128 k=128 r=3 s=3 pad=1",
     "tile=128x128x64 acc=2 d_store=rows reuse=row_offset filter_stages=8"},
    {"reloaded_pixels", "activations loaded for each filter column", "sm_100a",
     "conv n=32 h=56 w=56 c=64 k=64 r=3 s=3 pad=1", "tile=128x64x64 stages=6 acc=2 reuse=im2col",
     2},  // after a pair, and B, which would fit shared memory
};

class Advice : public testing::TestWithParam<BadSchedule> {};

TEST_P(Advice, NamesTheWeakness) {
  const BadSchedule& bad = GetParam();
  const Schedule schedule = ParseSchedule(bad.schedule)->value;
  const ScheduleAdvice advice = AdviceOf(bad.target, bad.problem, schedule);
  EXPECT_TRUE(Names(advice, bad.weakness));
  EXPECT_EQ(PlaceOf(bad.weakness, advice), bad.place) << testing::PrintToString([&] {
    std::string all;
    for (const Weakness& w : advice.weaknesses) all += std::string(w.name) + "; ";
    return all;
  }());
  // Each change is legal, and as fast as it says.
  const target::Target& target = target::NamedTarget(bad.target);
  for (const Weakness& weakness : advice.weaknesses) {
    EXPECT_NE(weakness.better, schedule) << weakness.name;
    const auto again = PredictTime(*ParseProblem(bad.problem), weakness.better, target, PublishedMachine(target));
    ASSERT_TRUE(again.has_value()) << weakness.name;
    EXPECT_EQ(again->us, weakness.prediction.us) << weakness.name;
    EXPECT_LE(again->us, (1 - kAdviceGain) * advice.prediction.us) << weakness.name;
  }
  EXPECT_GT(advice.TimesFloor(), 1);
}
INSTANTIATE_TEST_SUITE_P(All, Advice, testing::ValuesIn(kBad),
                         [](const auto& tested) { return std::string(tested.param.id); });

// The chooser leaves little to advise. What it does not search is all that may be found.
TEST(Advice, OfTheModelsChoiceIsShort) {
  for (const char* name : {"sm_100a", "sm_90a"}) {
    const target::Target& target = target::NamedTarget(name);
    const auto chosen = ChooseSchedule(*ParseProblem(kLarge), {}, target, PublishedMachine(target));
    const ScheduleAdvice advice = AdviceOf(name, kLarge, *chosen);
    for (const char* weakness : {"too few stages", "one accumulator", "no multicast", "tile too small",
                                 "operands copied by threads", "output stored by threads"})
      EXPECT_FALSE(Names(advice, weakness)) << name << ": " << weakness;
    EXPECT_LT(advice.TimesFloor(), 2) << name;
  }
}

TEST(Advice, TheFloorIsBelowEveryPrediction) {
  for (const char* problem : {kLarge, "gemm m=16 n=8192 k=8192", "gemm m=4096 n=4096 k=4096 a=e4m3 sparse=a",
                              "conv n=32 h=28 w=28 c=128 k=128 r=3 s=3 pad=1"}) {
    const target::Target& target = target::NamedTarget("sm_100a");
    const Machine machine = PublishedMachine(target);
    const auto chosen = ChooseSchedule(*ParseProblem(problem), {}, target, machine);
    ASSERT_TRUE(chosen.has_value()) << problem;
    const ProblemFloor floor = FloorOf(*ParseProblem(problem), target, machine);
    EXPECT_LT(floor.Us(), PredictTime(*ParseProblem(problem), *chosen, target, machine)->us) << problem;
    EXPECT_GT(floor.tensor_us, 0);
    EXPECT_GT(floor.memory_us, 0);
  }
}

TEST(Advice, EveryBoundHasARemedy) {
  const target::Target& target = target::NamedTarget("sm_100a");
  for (size_t i = 0; i < kBoundCount; ++i) EXPECT_GT(RemedyOf(static_cast<Bound>(i), Schedule{}, target).size(), 20u);
}

TEST(Advice, NoRemedyIsWhatTheScheduleHas) {
  const target::Target& target = target::NamedTarget("sm_100a");
  const auto has = [&](Bound bound, const Schedule& schedule, std::string_view way) {
    return RemedyOf(bound, schedule, target).find(way) != std::string::npos;
  };
  Schedule plain, pair, shifted;
  plain.acc_stages = 1;
  plain.reuse = Reuse::kIm2col;
  pair.ctas = pair.cluster_m = pair.acc_stages = 2;
  shifted.reuse = Reuse::kLaneShift;
  EXPECT_TRUE(has(Bound::kSharedMemory, plain, "a CTA pair"));
  EXPECT_FALSE(has(Bound::kSharedMemory, pair, "a CTA pair"));
  EXPECT_TRUE(has(Bound::kSharedMemory, plain, "A in Tensor Memory"));
  EXPECT_FALSE(has(Bound::kSharedMemory, shifted, "A in Tensor Memory"));
  EXPECT_TRUE(has(Bound::kProductLatency, plain, "a second accumulator"));
  EXPECT_FALSE(has(Bound::kProductLatency, pair, "a second accumulator"));
  EXPECT_FALSE(RemedyOf(Bound::kProductLatency, plain, target::NamedTarget("sm_90a")).find("a second accumulator") !=
               std::string::npos);
}

// A path that alternates between latencies while the tensor core is always busy is bound by the tensor core.
TEST(Advice, ASaturatedUnitBinds) {
  const target::Target& target = target::NamedTarget("sm_100a");
  const Problem problem = *ParseProblem("gemm m=4096 n=4096 k=4096 a=e4m3 b=e4m3 scale=mx");
  const auto chosen = ChooseSchedule(problem, {}, target, PublishedMachine(target));
  const Prediction p = PredictTime(problem, *chosen, target, PublishedMachine(target)).value();
  EXPECT_GE(p.busy.tensor_core, kSaturated);
  EXPECT_EQ(p.bound, Bound::kTensorCore);
}

TEST(Advice, CountsTheIdleSmsOfTheLastWave) {
  Machine machine = PublishedMachine(target::NamedTarget("sm_100a"));
  machine.sm_count = 148;
  const Schedule schedule = ParseSchedule("tile=128x256x64")->value;
  // 16 x 32 tiles: three waves of 148 and one of 68.
  const LastWave wave = LastWaveOf(*ParseProblem("gemm m=4096 n=4096 k=4096"), schedule, machine);
  EXPECT_EQ(wave.waves, 4);
  EXPECT_EQ(wave.idle_sms, 80);
  EXPECT_DOUBLE_EQ(wave.IdleShare(), 80.0 / (4 * 148));
  // Whole waves leave none idle.
  machine.sm_count = 128;
  EXPECT_EQ(LastWaveOf(*ParseProblem("gemm m=4096 n=4096 k=4096"), schedule, machine).idle_sms, 0);
}

// Without sizes of groups the last wave is that of all tiles that they can make.
TEST(Advice, CountsTheIdleSmsOfKnownGroups) {
  Machine machine = PublishedMachine(target::NamedTarget("sm_90a"));
  machine.sm_count = 120;
  const Problem problem = *ParseProblem("grouped_gemm groups=2 m=3000 n=5120 k=8192");
  const std::vector<int64_t> sizes = {1760, 1240};
  const Schedule single = ParseSchedule("tile=128x256x64")->value;
  // 14 and 10 rows of 20 tiles are four waves of 120; the bound of 13 rows for each group is one of 40 more.
  const LastWave whole = LastWaveOf(problem, single, machine, sizes);
  EXPECT_EQ(whole.waves, 4);
  EXPECT_EQ(whole.idle_sms, 0);
  const LastWave bound = LastWaveOf(problem, single, machine);
  EXPECT_EQ(bound.waves, 5);
  EXPECT_EQ(bound.idle_sms, 80);
  // 3 waves of 132 and one of 84.
  machine.sm_count = 132;
  const LastWave partial = LastWaveOf(problem, single, machine, sizes);
  EXPECT_EQ(partial.waves, 4);
  EXPECT_EQ(partial.idle_sms, 48);
  EXPECT_DOUBLE_EQ(partial.IdleShare(), 48.0 / (4 * 132));
  // Clusters of two: 8 and 5 rows of 20 units, 3 waves of 66 and one of 62.
  const Schedule clusters = ParseSchedule("tile=128x256x64 cluster=2x1")->value;
  const std::vector<int64_t> uneven = {1800, 1200};
  const LastWave of_clusters = LastWaveOf(problem, clusters, machine, uneven);
  EXPECT_EQ(of_clusters.waves, 4);
  EXPECT_EQ(of_clusters.idle_sms, 2 * (66 - 62));
  // Fewer tiles than SMs: one wave, of as many as there are.
  const std::vector<int64_t> few = {128, 0};
  const LastWave short_wave = LastWaveOf(problem, single, machine, few);
  EXPECT_EQ(short_wave.waves, 1);
  EXPECT_EQ(short_wave.idle_sms, 132 - 20);
}

}  // namespace
}  // namespace laneshift::autotune
