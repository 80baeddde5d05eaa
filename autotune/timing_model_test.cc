#include "autotune/timing_model.h"

#include <gtest/gtest.h>

#include <numeric>
#include <tuple>
#include <utility>

#include "autotune/simulation.h"
#include "compiler/compile.h"

namespace laneshift::autotune {
namespace {

Prediction Predict(const char* target, const char* problem, const char* schedule) {
  const auto p = PredictTime(*ParseProblem(problem), ParseSchedule(schedule)->value, target::NamedTarget(target),
                             PublishedMachine(target::NamedTarget(target)));
  EXPECT_TRUE(p.has_value()) << schedule << ": " << p.error().message;
  return p ? *p : Prediction{};
}

struct Interval {
  const char* what;
  Step product;
  double clocks;  // between two instructions, measured
};

class Product : public testing::TestWithParam<Interval> {};

TEST_P(Product, HoldsThePipeAsLongAsMeasured) {
  const Interval& row = GetParam();
  EXPECT_NEAR(TimeOf(row.product, PublishedMachine(target::NamedTarget("sm_100a"))).clocks, row.clocks,
              0.08 * row.clocks)
      << row.what;
}

Step Tcgen05(double rows, double columns, bool a_shared, bool pair) {
  return {.kind = StepKind::kMma,
          .rows = pair ? rows / 2 : rows,
          .columns = columns,
          .depth = 1,
          .a_shared = a_shared,
          .b_share = pair ? 0.5 : 1,
          .tensor_memory = true,
          .pair = pair};
}
Step Wgmma(double columns) { return {.kind = StepKind::kMma, .rows = 64, .columns = columns, .depth = 1}; }

// SemiAnalysisAI/microbench-blackwell (umma_latency) on a B200; wgmma on an H200 (tests/words).
INSTANTIATE_TEST_SUITE_P(Measured, Product,
                         testing::Values(Interval{"SS m64 n64", Tcgen05(64, 64, true, false), 32},
                                         Interval{"SS m128 n64", Tcgen05(128, 64, true, false), 48},
                                         Interval{"SS m128 n96", Tcgen05(128, 96, true, false), 56},
                                         Interval{"SS m128 n256", Tcgen05(128, 256, true, false), 128},
                                         Interval{"TS m128 n64", Tcgen05(128, 64, false, false), 32},
                                         Interval{"SS pair m256 n64", Tcgen05(256, 64, true, true), 43},
                                         Interval{"SS pair m256 n256", Tcgen05(256, 256, true, true), 128},
                                         Interval{"SS pair m128 n128", Tcgen05(128, 128, true, true), 32},
                                         Interval{"wgmma n256", Wgmma(256), 127},
                                         Interval{"wgmma n16", Wgmma(16), 20}));

TEST(TimingModel, BreakdownSumsToTheTime) {
  for (const char* target : {"sm_100a", "sm_90a"}) {
    const char* schedule = target == std::string_view("sm_90a") ? "acc=1 math=2" : "acc=2";
    for (const char* problem : {"gemm m=4096 n=4096 k=4096", "gemm m=16 n=512 k=64", "gemm m=1 n=8 k=8"}) {
      const Prediction p = Predict(target, problem, schedule);
      EXPECT_NEAR(std::accumulate(p.by_us.begin(), p.by_us.end(), 0.0), p.us, 1e-6 * p.us) << target << problem;
      EXPECT_GT(p.us, 0);
    }
  }
}

// The K loop and the tiles are shortened and extrapolated: the place of the cut must not show.
TEST(TimingModel, TimeGrowsSteadilyWithKAndTiles) {
  const std::string schedule = "tile=128x256x64 stages=4 acc=1 math=2";
  double last = 0, step = 0;
  for (int k = 1024; k <= 8192; k += 1024) {
    const double us = Predict("sm_90a", ("gemm m=4096 n=4096 k=" + std::to_string(k)).c_str(), schedule.c_str()).us;
    if (step > 0) {
      EXPECT_NEAR(us - last, step, 0.25 * step) << k;
    }
    if (last > 0) step = us - last;
    last = us;
  }
  const double one = Predict("sm_90a", "gemm m=2816 n=1536 k=512", schedule.c_str()).us;  // a tile for each SM
  const double eight = Predict("sm_90a", "gemm m=22528 n=1536 k=512", schedule.c_str()).us;
  EXPECT_GT(eight, 5 * one - 4 * PublishedMachine(target::NamedTarget("sm_90a")).launch_us - one);
  EXPECT_LT(eight, 8.5 * one);
}

// A simulation of every tile and iteration takes as long as the extrapolation says.
TEST(TimingModel, ATraceOfTheWholeKernelEndsWhenItIsPredictedTo) {
  for (const auto& [target_name, problem_text, schedule_text] :
       {std::tuple{"sm_90a", "gemm m=4096 n=4096 k=8192", "tile=128x256x64 stages=4 acc=1 math=2"},
        std::tuple{"sm_90a", "gemm m=4096 n=4096 k=4096", "tile=128x128x64 stages=6 acc=1 math=2 consumers=pingpong"},
        std::tuple{"sm_100a", "gemm m=8192 n=8192 k=8192", "tile=128x256x64 stages=4 acc=2"},
        std::tuple{"sm_90a", "conv n=32 h=56 w=56 c=64 k=64 r=3 s=3 pad=1",
                   "tile=128x64x64 stages=6 acc=1 math=2 reuse=im2col"}}) {
    const target::Target& target = target::NamedTarget(target_name);
    const Problem problem = *CompleteProblem(*ParseProblem(problem_text));
    const Schedule schedule = ParseSchedule(schedule_text)->value;
    const ir::Program program = compiler::SketchSchedule(problem, schedule, target)->program;
    const Machine machine = PublishedMachine(target);
    const auto span = [&](const SimulatedPart& part) {
      const Pipeline pipeline = PipelineOf(problem, schedule, program, target, part);
      if (part.tiles > 5) {
        EXPECT_EQ(pipeline.counted, pipeline.products) << problem_text;
      }
      double end = 0;
      const ModelTrace trace = TraceTime(pipeline, machine);
      for (const TracedSpan& traced : trace.spans) end = std::max(end, traced.end);
      return std::pair{end, PredictTime(pipeline, machine).us};
    };
    const auto [first_end, predicted] = span({});
    const auto [whole_end, simulated] = span(kTracedPart);
    EXPECT_LT(first_end, whole_end) << problem_text;
    EXPECT_NEAR(simulated, predicted, 0.05 * predicted) << problem_text;
  }
}

TEST(TimingModel, NamesWhatBinds) {
  EXPECT_EQ(Predict("sm_90a", "gemm m=8192 n=8192 k=8192", "tile=128x256x64 stages=4 acc=1 math=2").bound,
            Bound::kTensorCore);
  EXPECT_EQ(Predict("sm_90a", "gemm m=64 n=32768 k=8192", "tile=64x256x64 stages=5 acc=1 math=1").bound,
            Bound::kMemory);
  EXPECT_EQ(Predict("sm_90a", "gemm m=512 n=512 k=8192", "tile=64x64x64 stages=2 acc=1 math=1").bound,
            Bound::kLoadLatency);
}

TEST(TimingModel, MoreStagesHideMoreLatency) {
  double last = 1e9;
  for (const char* stages : {"stages=2", "stages=3", "stages=4", "stages=6"}) {
    const std::string schedule = std::string("tile=128x128x64 acc=2 ") + stages;
    const double us = Predict("sm_100a", "gemm m=1024 n=1024 k=8192", schedule.c_str()).us;
    EXPECT_LT(us, last) << stages;
    last = us;
  }
}

// If many tiles read the same B from L2, they are faster with resident B; where a CTA has one tile, nothing
// changes.
TEST(TimingModel, AResidentOperandIsNotReadAgain) {
  const auto us = [](const char* problem, const char* schedule) { return Predict("sm_90a", problem, schedule).us; };
  constexpr const char* kLayer = "conv n=256 h=56 w=56 c=64 k=64 r=3 s=3 pad=1";
  EXPECT_LT(us(kLayer, "tile=128x64x64 stages=6 acc=1 math=2 consumers=pingpong reuse=im2col rows=n b_keep=9"),
            0.97 * us(kLayer, "tile=128x64x64 stages=6 acc=1 math=2 consumers=pingpong reuse=im2col rows=n"));
  constexpr const char* kOneTile = "gemm m=8192 n=64 k=512";
  const double streamed = us(kOneTile, "tile=64x64x64 stages=8 acc=1");
  EXPECT_NEAR(us(kOneTile, "tile=64x64x64 stages=8 acc=1 b_keep=8"), streamed, 0.01 * streamed);
}

TEST(TimingModel, OverlappedEpilogueIsFaster) {
  const char* problem = "gemm m=8192 n=8192 k=512";
  EXPECT_LT(Predict("sm_100a", problem, "tile=128x256x64 stages=4 acc=2").us,
            Predict("sm_100a", problem, "tile=128x256x64 stages=4 acc=1").us);
}

TEST(TimingModel, PingpongWarpgroupsOverlapTheirEpilogues) {
  const auto gain = [](const char* problem) {
    return Predict("sm_90a", problem, "tile=128x128x64 stages=5 acc=1 math=2").us /
           Predict("sm_90a", problem, "tile=128x128x64 stages=5 acc=1 math=2 consumers=pingpong").us;
  };
  EXPECT_GT(gain("gemm m=8192 n=8192 k=512"), 1.1);
  EXPECT_LT(gain("gemm m=1024 n=1024 k=512"), 1.0);  // one tile a CTA: only one of them has work
}

// Two warpgroups that promote at the same time leave the tensor core idle; of three one promotes while it works for the
// others.
TEST(TimingModel, ThreeWarpgroupsKeepTheTensorCoreBusy) {
  const auto share = [](const char* schedule) {
    return Predict("sm_90a", "gemm m=25344 n=4096 k=16384 a=e4m3 d=bf16 scale=block", schedule).tensor_share;
  };
  EXPECT_LT(share("tile=128x192x128 stages=4 acc=1 math=2"), 0.92);
  EXPECT_GT(share("tile=192x128x128 stages=4 acc=1 math=3"), 0.97);
}

// A user's function costs what it has, whichever unit is the slower; one that was never compiled, something.
TEST(TimingModel, UsersFunctionsCostTheirLength) {
  const target::Target& target = target::NamedTarget("sm_90a");
  const auto us = [&](FunctionLength length) {
    FunctionCall call{.name = "F", .digest = std::string(32, 'a')};
    call.length = length;
    const EpilogueStep step{.kind = EpilogueKind::kFunction, .function = FunctionStep(call)};
    const Problem problem = *CompleteProblem(GemmProblem{.m = 8192, .n = 8192, .k = 512, .epilogue = {step}});
    const Schedule schedule = ParseSchedule("tile=128x256x64 stages=4 acc=1 math=2")->Apply(Schedule{});
    return PredictTime(problem, schedule, target, PublishedMachine(target)).value().us;
  };
  EXPECT_LT(us({1, 0}), us({20, 0}));
  EXPECT_LT(us({20, 0}), us({20, 8}));
  EXPECT_EQ(us({64, 1}), us({64, 2})) << "instructions bind";
  EXPECT_GT(us({}), us({1, 0}));
}

// A wave of tiles covers as many rows as its bands have, or more if a band is too short for it.
TEST(TimingModel, BandsDecideWhatMemoryDelivers) {
  const auto bytes = [](const char* raster) {
    const std::string schedule = std::string("tile=128x256x64 stages=4 raster=") + raster;
    return Predict("sm_100a", "gemm m=8192 n=8192 k=16384", schedule.c_str()).memory_bytes;
  };
  EXPECT_EQ(bytes("1"), bytes("4"));
  EXPECT_LT(bytes("8"), bytes("4"));
  EXPECT_LT(bytes("16"), bytes("64"));
}

// D of 268 MB displaces the B of 17 MB that each band loads; that of 4 MB does not, and nothing does with one band.
TEST(TimingModel, WhatBandsStoreDisplacesWhatTheyReadAgain) {
  const auto bytes = [](const char* problem, const char* raster) {
    const std::string schedule = std::string("tile=128x192x128 stages=4 acc=1 math=2 raster=") + raster;
    return Predict("sm_90a", problem, schedule.c_str()).memory_bytes;
  };
  constexpr const char* kWide = "gemm m=4096 n=32768 k=512 a=e4m3 b=e4m3 d=bf16 scale=block";
  EXPECT_NEAR(bytes(kWide, "8") - bytes(kWide, "32"), 3 * 32768 * 512, 0.1 * 32768 * 512);
  EXPECT_NEAR(bytes(kWide, "16") - bytes(kWide, "32"), 32768 * 512, 0.1 * 32768 * 512);
  constexpr const char* kDeep = "gemm m=2048 n=1024 k=8192 a=e4m3 b=e4m3 d=bf16 scale=block";
  EXPECT_EQ(bytes(kDeep, "8"), bytes(kDeep, "16"));
}

// L2 is asked for less, which takes less power. Of groups with few rows of tiles nothing is gained.
TEST(TimingModel, SharedTilesLeaveAHigherClock) {
  const auto clock = [](const char* problem, const char* cluster) {
    const std::string schedule = std::string("tile=256x128x128 stages=4 acc=1 math=2 cluster=") + cluster;
    return Predict("sm_90a", problem, schedule.c_str()).clock_ghz;
  };
  constexpr const char* kDense = "gemm m=4096 n=7168 k=16384 a=e4m3 b=e4m3 d=bf16 scale=block";
  EXPECT_GT(clock(kDense, "2x1"), clock(kDense, "1x1"));
  EXPECT_GT(clock(kDense, "1x2"), clock(kDense, "2x1")) << "256 rows of A are shared instead of 128 of B";
  constexpr const char* kGroups = "grouped_gemm groups=8 m=8192 n=7168 k=2048 a=e4m3 b=e4m3 d=bf16 scale=block";
  EXPECT_LE(clock(kGroups, "1x2"), clock(kGroups, "1x1") + 1e-3);
  constexpr const char* kTall = "grouped_gemm groups=4 m=32768 n=7168 k=2048 a=e4m3 b=e4m3 d=bf16 scale=block";
  EXPECT_GT(clock(kTall, "1x2"), clock(kTall, "1x1"));
}

// Rows are stored as fast as by bulk copies, and words of them, where no row is aligned, more slowly.
TEST(TimingModel, ThreadsStoreWholeRowsFast) {
  const auto us = [](const char* problem, const char* store) {
    const std::string schedule = std::string("tile=128x128x64 stages=5 acc=1 math=2 d_store=") + store;
    return Predict("sm_90a", problem, schedule.c_str()).us;
  };
  constexpr const char *aligned = "gemm m=128 n=32768 k=512", *odd = "gemm m=128 n=32767 k=512 ldd=32769";
  EXPECT_NEAR(us(aligned, "rows"), us(aligned, "tma"), 0.05 * us(aligned, "tma"));
  EXPECT_GT(us(odd, "rows"), 1.02 * us(aligned, "rows"));
}

// Resident B: 256 columns of tiles are as many CTAs, of which 132 SMs run some after others.
TEST(TimingModel, MoreColumnsThanSmsTakeSeveralWaves) {
  const auto us = [](int n) {
    const std::string problem = "gemm m=4096 n=" + std::to_string(n) + " k=512 a=e4m3 b=e4m3 d=bf16 scale=block";
    return Predict("sm_90a", problem.c_str(), "tile=256x128x128 stages=4 acc=1 math=2 raster=1 b_keep=4").us;
  };
  EXPECT_GT(us(256 * 128), 1.7 * us(128 * 128));
  EXPECT_GT(us(140 * 128), 1.7 * us(132 * 128)) << "a second wave of eight";
}

// Of a kernel that has tiles for many rounds.
Pipeline LongPipeline(const target::Target& target) {
  const Problem problem = *ParseProblem("gemm m=8192 n=8192 k=16384");
  const Schedule schedule = ParseSchedule("tile=128x256x64 stages=4 acc=2")->value;
  return PipelineOf(problem, schedule, compiler::SketchSchedule(problem, schedule, target)->program, target);
}

// A warpgroup with two blocks of rows stores each of them once.
TEST(TimingModel, AllOfATileIsStoredOnce) {
  const target::Target& target = target::NamedTarget("sm_90a");
  const Problem problem = *ParseProblem("gemm m=4096 n=4096 k=1024");
  for (const char* text : {"tile=128x128x64 math=2", "tile=256x128x64 math=2", "tile=128x128x64 math=1",
                           "tile=128x128x64 math=2 consumers=pingpong", "tile=128x256x64 math=2 rows=n"}) {
    const Schedule schedule = ParseSchedule(std::string(text) + " acc=1")->value;
    const Pipeline pipeline =
        PipelineOf(problem, schedule, compiler::SketchSchedule(problem, schedule, target)->program, target);
    int storing = 0;
    for (const PipelineRole& role : pipeline.roles) {
      double stored = 0, staged = 0;
      for (size_t i = 0; i < role.tile.kinds(); ++i) {
        const Step& step = role.tile.kind(i);
        if (step.kind == StepKind::kStore) stored += role.tile.times(i) * step.bytes;
        if (step.kind == StepKind::kStage) staged += role.tile.times(i) * step.bytes;
      }
      EXPECT_EQ(stored, staged);
      EXPECT_TRUE(stored == 0 || stored == 2.0 * schedule.tile_m * schedule.tile_n) << text << ": " << stored;
      storing += stored > 0;
    }
    EXPECT_EQ(storing, schedule.consumers == Consumers::kPingpong ? 2 : 1) << text;
  }
}

TEST(TimingModel, RunsOfNeighboursAreFarApart) {
  const target::Target& target = target::NamedTarget("sm_100a");
  Pipeline pipeline = LongPipeline(target);
  const Machine machine = PublishedMachine(target);
  const double strides = PredictTime(pipeline, machine).memory_bytes;
  pipeline.order = TileOrder::kRuns;
  EXPECT_GT(PredictTime(pipeline, machine).memory_bytes, strides);
}

TEST(TimingModel, TilesThatAreTakenDoNotWaitForTheSlowestSm) {
  const target::Target& target = target::NamedTarget("sm_100a");
  Pipeline pipeline = LongPipeline(target);
  const Machine machine = PublishedMachine(target);
  const double dealt = PredictTime(pipeline, machine).us;
  pipeline.order = TileOrder::kStolen;
  EXPECT_NEAR(dealt / PredictTime(pipeline, machine).us, 1 + machine.walk_lag, 0.5 * machine.walk_lag);
  // Few tiles of an SM are done in step.
  pipeline.tiles /= 4;
  pipeline.tile_rows /= 4;
  const double few = PredictTime(pipeline, machine).us;
  pipeline.order = TileOrder::kStrides;
  EXPECT_EQ(PredictTime(pipeline, machine).us, few);
}

// Where only the device knows how many tiles there are, the prediction is the mean of those for each number, and so is
// the bound.
TEST(TimingModel, TakesTheMeanOverNumbersOfTiles) {
  const target::Target& target = target::NamedTarget("sm_100a");
  const Machine machine = PublishedMachine(target);
  const Pipeline pipeline = LongPipeline(target);
  const auto at = [&](double tiles) {
    Pipeline certain = pipeline;
    certain.tiles = tiles;
    return certain;
  };
  const double few = 3.0 * machine.sm_count, many = few + 1;
  Pipeline uncertain = pipeline;
  uncertain.likely_tiles = {few, many};
  const Prediction p = PredictTime(uncertain, machine), of_few = PredictTime(at(few), machine),
                   of_many = PredictTime(at(many), machine);
  EXPECT_GT(of_many.us, 1.1 * of_few.us) << "a round more";
  EXPECT_DOUBLE_EQ(p.us, (of_few.us + of_many.us) / 2);
  EXPECT_DOUBLE_EQ(p.memory_bytes, (of_few.memory_bytes + of_many.memory_bytes) / 2);
  EXPECT_NEAR(std::accumulate(p.by_us.begin(), p.by_us.end(), 0.0), p.us, 1e-6 * p.us);
  EXPECT_DOUBLE_EQ(LeastTime(uncertain, machine), (LeastTime(at(few), machine) + LeastTime(at(many), machine)) / 2);
}

// CTAs that start when others end: those of one row of tiles are a column of tiles apart, and what all read meanwhile
// evicts the row's data from the cache; the more CTAs are active, the closer they are.
TEST(TimingModel, TallBandsPushOutWhatTheirRowsShare) {
  const target::Target& target = target::NamedTarget("sm_100a");
  const Machine machine = PublishedMachine(target);
  const auto bytes = [&](double raster, double ctas, TileOrder order) {
    Pipeline pipeline = LongPipeline(target);
    pipeline.raster = raster;
    pipeline.ctas_per_sm = ctas;
    pipeline.order = order;
    return PredictTime(pipeline, machine).memory_bytes;
  };
  EXPECT_GT(bytes(64, 1, TileOrder::kStolen), 1.5 * bytes(64, 1, TileOrder::kStrides));
  EXPECT_GT(bytes(64, 1, TileOrder::kStolen), 2 * bytes(64, 2, TileOrder::kStolen));
  EXPECT_EQ(bytes(8, 1, TileOrder::kStolen), bytes(8, 1, TileOrder::kStrides));
}

// If SMs are not in step, memory serves one while another one multiplies.
TEST(TimingModel, MemoryServesOthersWhereSmsAreNotInStep) {
  const target::Target& target = target::NamedTarget("sm_100a");
  Pipeline pipeline = LongPipeline(target);
  pipeline.persistent = false;  // so that loads and sums do not overlap
  Machine machine = PublishedMachine(target);
  machine.memory_rate = 2;
  machine.walk_lag = 0;
  const double dealt = PredictTime(pipeline, machine).us;
  pipeline.order = TileOrder::kStolen;
  EXPECT_LT(PredictTime(pipeline, machine).us, dealt);
}

// Memory delivers rows of more than 128 bytes at a higher rate.
TEST(TimingModel, LongerRowsAreReadFaster) {
  const target::Target& target = target::NamedTarget("sm_100a");
  Pipeline pipeline = LongPipeline(target);
  Machine machine = PublishedMachine(target);
  machine.memory_rate = 0.5;
  machine.short_rows = 0.9;
  const auto us = [&](double row_bytes) {
    pipeline.a.row_bytes = pipeline.b.row_bytes = row_bytes;
    return PredictTime(pipeline, machine).us;
  };
  EXPECT_NEAR(us(256) / us(128), machine.short_rows, 0.01);
  EXPECT_EQ(us(256), us(512));
}

// 35 of 299 tiles are left for the last round, whose SMs do not reach the rate of memory; 256 tiles are two rounds.
TEST(TimingModel, FewTilesOfTheLastRoundAreReadAtTheRateOfTheirSms) {
  const auto us = [](const char* schedule) { return Predict("sm_90a", "gemm m=64 n=28672 k=4096", schedule).us; };
  EXPECT_GT(us("tile=64x96x128 stages=5 acc=1 math=1"), 1.04 * us("tile=64x112x128 stages=5 acc=1 math=1"));
}

// Two roles that fill the same slots share the path from L2 in the order of time: measured, 172 us with a role that
// loads B early, and 171 without.
TEST(TimingModel, RolesThatFillTheSameSlotsTakeTurns) {
  const auto us = [](const std::string& early) {
    return Predict("sm_90a", "gemm m=4096 n=4096 k=7168 a=e4m3 scale=block constant=b",
                   ("tile=256x128x128 stages=4 math=2 acc=1 early=" + early).c_str())
        .us;
  };
  EXPECT_NEAR(us("b") / us("none"), 1, 0.02);
}

// What the next kernel may load early is its rings. With 75 tiles 41.6 us were measured, with 112 33.4.
TEST(TimingModel, EarlyLoadsMakeUpForAPartOfIdleSms) {
  const auto us = [](const char* schedule) {
    return Predict("sm_90a", "gemm m=64 n=7168 k=16384 a=e4m3 scale=block constant=b", schedule).us;
  };
  EXPECT_GT(us("tile=64x96x128 stages=10 acc=1 early=b"), 1.1 * us("tile=64x64x128 stages=12 acc=1 early=b"));
}

// Two rows of tiles in a row of kernels: L2 serves the CTAs that read the same B one by one. Measured, 33.4 us,
// and 30.1 with one row.
TEST(TimingModel, EarlyKernelsShareNoReadsOfL2) {
  const auto us = [](const char* schedule) {
    return Predict("sm_90a", "gemm m=16 n=4096 k=14336 constant=b", schedule).us;
  };
  EXPECT_GT(us("tile=8x64x128 stages=12 acc=1 rows=n early=b"),
            us("tile=16x64x128 stages=11 acc=1 cluster_k=2 rows=n early=b"));
}

// The clock falls with the work of the tensor cores, memory's does not: neither part hides that of the other.
TEST(TimingModel, SlowMemoryIsNeverFaster) {
  const target::Target& target = target::NamedTarget("sm_100a");
  const Pipeline pipeline = LongPipeline(target);
  Machine machine = PublishedMachine(target);
  double last = 0;
  for (machine.memory_rate = 8; machine.memory_rate > 0.5; machine.memory_rate *= 0.9) {
    const double us = PredictTime(pipeline, machine).us;
    EXPECT_GE(us, 0.995 * last) << machine.memory_rate;
    last = us;
  }
}

// Loads wait longer the more of memory's rate is used; data in L2 does not wait for it.
TEST(TimingModel, BusyMemoryAnswersLater) {
  const target::Target& target = target::NamedTarget("sm_100a");
  Pipeline pipeline = LongPipeline(target);
  const Machine usual = PublishedMachine(target);
  Machine idle = usual;
  idle.memory_queue = 0;
  EXPECT_GT(PredictTime(pipeline, usual).us, PredictTime(pipeline, idle).us);
  pipeline.cold = false;
  pipeline.a.unique_bytes = pipeline.b.unique_bytes = 1e6;
  EXPECT_EQ(PredictTime(pipeline, usual).us, PredictTime(pipeline, idle).us);
}

// A faster machine is never slower.
TEST(TimingModel, FollowsEveryRate) {
  const target::Target& target = target::NamedTarget("sm_90a");
  const Problem problem = *ParseProblem("gemm m=64 n=4096 k=7168");
  const Schedule schedule = ParseSchedule("tile=64x64x64 stages=3 acc=1 math=1")->value;
  const Machine usual = PublishedMachine(target);
  for (double Machine::*latency : {&Machine::load_latency, &Machine::launch_us, &Machine::signal}) {
    Machine slower = usual;
    slower.*latency *= 2;
    EXPECT_GT(PredictTime(problem, schedule, target, slower)->us, PredictTime(problem, schedule, target, usual)->us);
  }
}

}  // namespace
}  // namespace laneshift::autotune
