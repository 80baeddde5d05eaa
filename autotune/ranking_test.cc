#include "autotune/ranking.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "autotune/shape_bound.h"
#include "autotune/shapes.h"
#include "base/fingerprint.h"
#include "base/text.h"
#include "compiler/compile.h"

namespace laneshift::autotune {
namespace {

class ChooseOnTarget : public testing::TestWithParam<const char*> {};

TEST_P(ChooseOnTarget, EveryRankedScheduleIsLegalAndOrdered) {
  const target::Target& target = target::NamedTarget(GetParam());
  for (const char* text :
       {"gemm m=4096 n=4096 k=4096", "gemm m=16 n=7168 k=4096 constant=b", "gemm m=7 n=129 k=1000 d=f32",
        "gemm m=1 n=1 k=1", "gemm m=300 n=300 k=300 a_major=m b_major=n align_a=2"}) {
    const Problem problem = *ParseProblem(text);
    const auto ranked = RankSchedules(problem, {}, target, PublishedMachine(target)).schedules;
    ASSERT_FALSE(ranked.empty()) << text;
    EXPECT_EQ(*ChooseSchedule(problem, {}, target, target.default_sm_count), ranked.front().schedule) << text;
    for (size_t i = 0; i < ranked.size(); ++i) {
      EXPECT_TRUE(compiler::ValidateSchedule(problem, ranked[i].schedule, target)) << PrintSchedule(ranked[i].schedule);
      EXPECT_LE(ranked[i == 0 ? 0 : i - 1].predicted_us, ranked[i].predicted_us);
    }
  }
}

// One row of the output fills an eighth of the narrowest columns, and 1/64 of the rows.
TEST(ScheduleSpace, HasTheNarrowestColumnsForTheFewestRows) {
  const target::Target& target = target::NamedTarget("sm_90a");
  for (const char* text : {"gemm m=1 n=8192 k=8192", "gemm m=4 n=4096 k=4096", "gemm m=5 n=4096 k=4096"}) {
    const auto ranked = RankSchedules(*ParseProblem(text), {}, target, PublishedMachine(target)).schedules;
    ASSERT_FALSE(ranked.empty()) << text;
    EXPECT_EQ(ranked.front().schedule.rows, RowSide::kN) << text;
    EXPECT_EQ(ranked.front().schedule.tile_m, ranked.front().schedule.reuse == Reuse::kDirect ? 1 : 8) << text;
  }
}

// As measured on an H100 and an H200: CUDA cores for one vector of 16 bits, the tensor core for several.
TEST(ScheduleSpace, HasCudaCoresForOneVector) {
  const target::Target& target = target::NamedTarget("sm_90a");
  const auto reuse = [&](const char* text) {
    return RankSchedules(*ParseProblem(text), {}, target, PublishedMachine(target)).schedules.front().schedule.reuse;
  };
  EXPECT_EQ(reuse("gemm m=1 n=4096 k=4096"), Reuse::kDirect);
  EXPECT_EQ(reuse("gemm m=4096 n=1 k=4096"), Reuse::kDirect);
  EXPECT_EQ(reuse("gemm m=4 n=4096 k=14336"), Reuse::kNone);
  EXPECT_EQ(reuse("gemm m=4 n=6144 k=4096 a=e4m3"), Reuse::kNone);
  EXPECT_EQ(reuse("gemm m=1 n=4096 k=4096 numerics=batch_invariant"), Reuse::kNone) << "it sums in another order";
  EXPECT_EQ(reuse("gemm m=1 n=4096 k=4100"), Reuse::kNone) << "a lane reads 16 bytes";
  EXPECT_EQ(reuse("gemm m=9 n=4096 k=4096"), Reuse::kNone) << "too many vectors";
}

// Tall, flat, deep, small, memory-bound and convolved: whatever binds, what is not predicted is not the best.
constexpr const char* kVaried[] = {"gemm m=4096 n=4096 k=4096",
                                   "gemm m=1 n=8192 k=28672",
                                   "gemm m=16 n=7168 k=4096 constant=b",
                                   "gemm m=777 n=129 k=1000 d=f32",
                                   "gemm m=64 n=64 k=63",
                                   "gemm m=1000 n=2000 k=1001 b_major=n",
                                   "gemm m=1 n=1 k=1",
                                   "gemm m=8192 n=512 k=128 a=e4m3 b=e4m3 d=bf16",
                                   "gemm m=4096 n=4096 k=7168 a=e4m3 b=e4m3 d=bf16",
                                   "gemm m=512 n=4096 k=1024 d=bf16 epilogue=swiglu",
                                   "gemm m=96 n=96 k=4096 batch=3 a_major=m",
                                   "grouped_gemm groups=8 m=1024 n=4096 k=2048",
                                   "grouped_gemm groups=4 m=96 n=512 k=2048 layout=masked",
                                   "grouped_gemm groups=4 m=32768 n=7168 k=3072 a=e4m3 d=bf16 scale=block",
                                   "grouped_gemm groups=6 m=512 n=768 k=6000 layout=k",
                                   "grouped_gemm groups=3 m=40 n=256 k=512 rows=gather+scatter",
                                   "gemm m=51 n=1024 k=2816 a=e5m2 d=bf16 scale=block",
                                   "gemm m=256 n=2048 k=1024 a=tf32 d=f32 bias=n",
                                   "gemm m=2 n=4096 k=4096 batch=4",
                                   "conv n=2 h=28 w=28 c=32 k=64 r=3 s=3 pad=1 groups=2",
                                   "conv n=32 h=56 w=56 c=64 k=64 r=3 s=3 pad=1",
                                   "conv n=8 h=14 w=14 c=256 k=512 r=1 s=1",
                                   "conv n=32 h=28 w=28 c=96 k=96 r=7 s=7 pad=3 groups=96",
                                   "conv_wgrad n=64 h=56 w=56 c=64 k=64 r=3 s=3 pad=1",
                                   "conv_dgrad n=1 h=9 w=9 c=16 k=16 r=3 s=3 groups=16",
                                   "conv_dgrad n=4 h=64 w=64 c=3 k=64 r=7 s=7 pad=3 stride=2",
                                   "conv n=4 h=224 w=224 c=3 k=64 r=7 s=7 pad=3 stride=2"};

TEST_P(ChooseOnTarget, PruningNeverDropsTheBest) {
  const target::Target& target = target::NamedTarget(GetParam());
  for (const char* text : kVaried) {
    const Problem problem = *ParseProblem(text);
    // Also where power, memory or launches cost otherwise.
    for (const auto& [fact, factor] : {std::pair(&Machine::busy_clock_ghz, 1.0),
                                       {&Machine::busy_clock_ghz, 0.4},
                                       {&Machine::memory_rate, 0.2},
                                       {&Machine::launch_us, 10.0}}) {
      Machine machine = PublishedMachine(target);
      machine.*fact *= factor;
      const auto chosen = ChooseSchedule(problem, {}, target, machine);
      ASSERT_TRUE(chosen) << chosen.error().message;
      const Ranking ranking = RankSchedules(problem, {}, target, machine);
      EXPECT_EQ(*chosen, ranking.schedules.front().schedule) << text;
    }
  }
}

// On the machine that is published and on others, each fact of which is up to twice as large or as small.
TEST_P(ChooseOnTarget, NoPredictionIsBelowItsBounds) {
  const target::Target& target = target::NamedTarget(GetParam());
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(-1, 1);
  for (const char* text : kVaried) {
    const Problem problem = *ParseProblem(text);
    Machine other = PublishedMachine(target);
    for (const MachineRow& row : kMachineRows) other.*row.field *= std::exp2(exponent(random));
    other.busy_clock_ghz = std::min(other.busy_clock_ghz, other.clock_ghz);
    other.cluster_relief = std::min(other.cluster_relief, 1.0);  // of what is shared, a part
    for (const Machine& machine : {PublishedMachine(target), other}) {
      VisitSchedules(
          problem, {}, target, RingDepths::kSeveral,
          [&](const Schedule& schedule, const ir::Program& program, bool) {
            const Pipeline pipeline = PipelineOf(problem, schedule, program, target);
            const double us = PredictTime(pipeline, machine).us;
            EXPECT_LE(LeastTime(pipeline, machine), us) << PrintSchedule(schedule);
            EXPECT_LE(LeastTime(problem, schedule, target, machine), us) << text << ": " << PrintSchedule(schedule);
          },
          [](const RefusedSchedule&) {});
    }
  }
}

// The rings of a visited program are deepened, not built.
TEST_P(ChooseOnTarget, VisitedProgramsAreTheSchedules) {
  const target::Target& target = target::NamedTarget(GetParam());
  for (const char* text : kVaried) {
    const Problem problem = *ParseProblem(text);
    VisitSchedules(
        problem, {}, target, RingDepths::kSeveral,
        [&](const Schedule& schedule, const ir::Program& program, bool) {
          const auto built = compiler::SketchSchedule(problem, schedule, target);
          ASSERT_TRUE(built) << built.error().message;
          EXPECT_EQ(program.channels.size(), built->program.channels.size());
          for (size_t i = 0; i < program.channels.size(); ++i) {
            EXPECT_EQ(program.channels[i].stages, built->program.channels[i].stages) << PrintSchedule(schedule);
          }
          EXPECT_EQ(program.roles, built->program.roles) << PrintSchedule(schedule);
          EXPECT_EQ(program.params, built->program.params) << PrintSchedule(schedule);
        },
        [](const RefusedSchedule&) {});
  }
}

// Tiles of 160 rows divide 1760 and nearly 1240, which no average shows.
TEST(RankSchedules, TakesTheSizesOfGroups) {
  const target::Target& target = target::NamedTarget("sm_90a");
  const Machine machine = PublishedMachine(target);
  const Problem problem = *ParseProblem("grouped_gemm groups=2 m=3000 n=5120 k=8192 a=bf16 b=bf16 d=bf16");
  const std::vector<int64_t> sizes = {1760, 1240};
  const auto rank = [&](std::span<const int64_t> of_groups) {
    return RankSchedules(problem, {}, target, machine, RingDepths::kUsual, of_groups).schedules;
  };
  const auto blind = RankSchedules(problem, {}, target, machine).schedules, known = rank(sizes), empty = rank({});
  ASSERT_FALSE(blind.empty());
  EXPECT_NE(known.front().schedule, blind.front().schedule);
  const auto us = [&](const Schedule& schedule) { return PredictTime(problem, schedule, target, machine, sizes)->us; };
  EXPECT_LT(known.front().predicted_us, us(blind.front().schedule));
  EXPECT_EQ(known.size(), blind.size()) << "sizes rank the schedules that there are otherwise";
  for (const RankedSchedule& ranked : known) EXPECT_EQ(ranked.predicted_us, us(ranked.schedule));
  ASSERT_EQ(empty.size(), blind.size());
  for (size_t i = 0; i < blind.size(); ++i) {
    EXPECT_EQ(empty[i].schedule, blind[i].schedule);
    EXPECT_EQ(empty[i].predicted_us, blind[i].predicted_us);
  }
}

// A search also tries the deepest ring, three quarters and half of it.
TEST(VisitSchedules, HasRingsOfSeveralDepths) {
  const auto stages_of = [](const char* constraint, RingDepths depths) {
    std::vector<int> stages;
    int usual_ones = 0;
    VisitSchedules(
        *ParseProblem("gemm m=64 n=24576 k=1536 a=e4m3 b=e4m3 d=bf16 scale=block"), *ParseSchedule(constraint),
        target::NamedTarget("sm_90a"), depths,
        [&](const Schedule& schedule, const ir::Program& program, bool usual) {
          stages.push_back(schedule.stages);
          usual_ones += usual;
          EXPECT_EQ(program.channels[0].stages, schedule.stages);
        },
        [](const RefusedSchedule&) {});
    EXPECT_EQ(usual_ones, 1);
    return stages;
  };
  constexpr const char* kOneShape =
      "tile=64x96x128 rows=m cluster=1x1 cluster_k=1 split_k=1 raster=8 d_store=tma b_keep=0 math=1 "
      "consumers=cooperative";
  EXPECT_EQ(stages_of(kOneShape, RingDepths::kUsual), std::vector<int>({8}));
  EXPECT_EQ(stages_of(kOneShape, RingDepths::kSeveral), std::vector<int>({8, 10, 5}));
  EXPECT_EQ(stages_of((std::string(kOneShape) + " stages=6").c_str(), RingDepths::kSeveral), std::vector<int>({6}));
}

// A constant B is loaded early where memory binds, wherever bulk copies load it, or where the constraint says so.
TEST_P(ChooseOnTarget, ConstantBIsLoadedEarlyForFewRows) {
  const target::Target& target = target::NamedTarget(GetParam());
  const auto seen = [&](const char* problem, const char* constraint) {
    std::set<EarlyLoads> early;
    for (const Schedule& s : EnumerateSchedules(*ParseProblem(problem), *ParseSchedule(constraint), target).schedules) {
      if (s.reuse != Reuse::kDirect) early.insert(s.early);
    }
    return early;
  };
  EXPECT_EQ(seen("gemm m=128 n=4096 k=1024 constant=b", ""), std::set{EarlyLoads::kB});
  EXPECT_EQ(seen("gemm m=128 n=4096 k=1024 constant=b", "early=none"), std::set{EarlyLoads::kNone});
  EXPECT_EQ(seen("gemm m=129 n=4096 k=1024 constant=b", ""), std::set{EarlyLoads::kNone});
  EXPECT_EQ(seen("gemm m=129 n=4096 k=1024 constant=b", "early=b"), std::set{EarlyLoads::kB});
  EXPECT_EQ(seen("gemm m=64 n=4096 k=1024", ""), std::set{EarlyLoads::kNone});
  EXPECT_EQ(seen("gemm m=64 n=4096 k=1022 constant=b", ""), std::set{EarlyLoads::kNone}) << "what is packed is written";
}

TEST_P(ChooseOnTarget, DepthwiseConvolutionsAreDirect) {
  const target::Target& target = target::NamedTarget(GetParam());
  const auto reuse = [&](const char* text) {
    return ChooseSchedule(*ParseProblem(text), {}, target, target.default_sm_count)->reuse;
  };
  EXPECT_EQ(reuse("conv n=32 h=56 w=56 c=128 k=128 r=3 s=3 pad=1 groups=128"), Reuse::kDirect);
  EXPECT_EQ(reuse("conv n=1 h=7 w=7 c=960 k=960 r=5 s=5 pad=2 stride=2 groups=960"), Reuse::kDirect);
  EXPECT_EQ(reuse("conv_dgrad n=8 h=28 w=28 c=96 k=96 r=7 s=7 pad=3 groups=96"), Reuse::kDirect);
  EXPECT_EQ(reuse("conv_dgrad n=32 h=56 w=56 c=128 k=128 r=3 s=3 pad=1 stride=2 groups=128"), Reuse::kDirect);
  EXPECT_EQ(reuse("conv_wgrad n=32 h=56 w=56 c=128 k=128 r=3 s=3 pad=1 groups=128"), Reuse::kDirect);
  EXPECT_EQ(reuse("conv_wgrad n=8 h=14 w=14 c=384 k=384 r=7 s=7 pad=3 groups=384"), Reuse::kDirect);
  // What direct ones cannot read, and what is no depthwise convolution.
  EXPECT_NE(reuse("conv n=8 h=28 w=28 c=97 k=97 r=3 s=3 pad=1 groups=97"), Reuse::kDirect);
  EXPECT_NE(reuse("conv n=8 h=28 w=28 c=96 k=192 r=3 s=3 pad=1 groups=96"), Reuse::kDirect);
}

TEST_P(ChooseOnTarget, ConstraintIsKept) {
  const target::Target& target = target::NamedTarget(GetParam());
  const Problem problem = *ParseProblem("gemm m=512 n=512 k=512");
  const ScheduleConstraint constraint = *ParseSchedule("tile=64x48 stages=3 d_store=direct");
  const auto schedule = ChooseSchedule(problem, constraint, target, target.default_sm_count);
  ASSERT_TRUE(schedule.has_value()) << schedule.error().message;
  EXPECT_TRUE(constraint.Admits(*schedule));
}

TEST_P(ChooseOnTarget, ScheduleThatDoesNotFitSaysHowMuch) {
  const target::Target& target = target::NamedTarget(GetParam());
  const auto schedule = ChooseSchedule(*ParseProblem("gemm m=512 n=512 k=512"),
                                       *ParseSchedule("tile=128x256x64 stages=9"), target, target.default_sm_count);
  ASSERT_FALSE(schedule.has_value());
  EXPECT_EQ(schedule.error().code, ErrorCode::kResourceExhausted);
  EXPECT_NE(schedule.error().message.find("bytes of shared memory"), std::string::npos) << schedule.error().message;
  EXPECT_NE(schedule.error().message.find("more than the 232448"), std::string::npos) << schedule.error().message;
}

TEST_P(ChooseOnTarget, UnreachableOperandIsCopied) {
  const target::Target& target = target::NamedTarget(GetParam());
  const Problem problem = *ParseProblem("gemm m=64 n=64 k=63");
  // If there is little to copy, not by a separate kernel.
  EXPECT_EQ(ChooseSchedule(*ParseProblem("gemm m=16 n=16 k=15"), {}, target, 1)->a_load, LoadPath::kCopy);
  const Problem large = *ParseProblem("gemm m=4095 n=4095 k=4095");
  EXPECT_EQ(ChooseSchedule(large, {}, target, target.default_sm_count)->a_load, LoadPath::kPack);
  EXPECT_EQ(ChooseSchedule(large, {}, target, target.default_sm_count)->b_load, LoadPath::kPack);
  const Problem mixed = *ParseProblem("gemm m=4096 n=4095 k=4096 b_major=n");
  EXPECT_EQ(ChooseSchedule(mixed, {}, target, target.default_sm_count)->a_load, LoadPath::kTma);
  EXPECT_EQ(ChooseSchedule(mixed, {}, target, target.default_sm_count)->b_load, LoadPath::kPack);
  const auto forced = ChooseSchedule(problem, *ParseSchedule("a_load=tma"), target, 1);
  ASSERT_FALSE(forced.has_value());
  EXPECT_EQ(forced.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(forced.error().message.find("pitch of 126 bytes"), std::string::npos) << forced.error().message;
}

// Where memory binds, packing an operand takes longer than its copies; rows of odd length have no such copies.
TEST_P(ChooseOnTarget, ThreadsCopyAsynchronouslyWhereMemoryBinds) {
  const target::Target& target = target::NamedTarget(GetParam());
  const auto path = [&](const char* problem) {
    const auto chosen = ChooseSchedule(*ParseProblem(problem), {}, target, target.default_sm_count);
    EXPECT_TRUE(chosen.has_value()) << problem << ": " << chosen.error().message;
    return chosen ? chosen->b_load : LoadPath::kTma;
  };
  EXPECT_EQ(path("gemm m=16 n=4096 k=4100"), LoadPath::kAsync);
  EXPECT_EQ(path("gemm m=16 n=4096 k=4104"), LoadPath::kTma);
  EXPECT_NE(path("gemm m=16 n=4096 k=4101"), LoadPath::kAsync);
}

TEST_P(ChooseOnTarget, RefusalsNameTheirReason) {
  const target::Target& target = target::NamedTarget(GetParam());
  const Ranking ranking = RankSchedules(*ParseProblem("gemm m=512 n=512 k=512"), *ParseSchedule("stages=5"), target,
                                        PublishedMachine(target));
  EXPECT_FALSE(ranking.schedules.empty());
  ASSERT_FALSE(ranking.refused.empty());
  for (const RefusedSchedule& refused : ranking.refused) {
    EXPECT_FALSE(compiler::ValidateSchedule(*ParseProblem("gemm m=512 n=512 k=512"), refused.schedule, target));
    EXPECT_FALSE(refused.reason.message.empty()) << PrintSchedule(refused.schedule);
  }
}

// A schedule that packs rows has no meaning for a convolution: it is ranked as far as it comes, and refused.
TEST_P(ChooseOnTarget, FiltersOfAForwardConvolutionAreNotPacked) {
  const target::Target& target = target::NamedTarget(GetParam());
  const Problem problem = *ParseProblem("conv n=1 w=8 c=32 k=32 s=2");
  for (const char* text : {"b_load=pack", "a_load=pack b_load=pack reuse=im2col"}) {
    const auto schedule = ChooseSchedule(problem, *ParseSchedule(text), target, target.default_sm_count);
    ASSERT_FALSE(schedule.has_value());
    EXPECT_EQ(schedule.error().code, ErrorCode::kUnsupported) << schedule.error().message;
    EXPECT_NE(schedule.error().message.find("_load=pack copies the rows of a matrix"), std::string::npos)
        << schedule.error().message;
  }
}

// What no tile can mend is named, not the tile that was tried last.
TEST(ChooseSchedule, RefusesLaneShiftForTheReasonThatCounts) {
  const target::Target& target = target::NamedTarget("sm_100a");
  const Problem stem = *ParseProblem("conv n=1 h=32 w=32 c=3 k=64 r=7 s=7 pad=3 stride=2 x=bf16 w=bf16 y=bf16");
  const auto moved =
      ChooseSchedule(stem, *ParseSchedule("reuse=lane_shift a_load=tma"), target, target.default_sm_count);
  ASSERT_FALSE(moved);
  EXPECT_NE(moved.error().message.find("pixel pitch of 6 bytes"), std::string::npos) << moved.error().message;
  const auto low = ChooseSchedule(stem, *ParseSchedule("tile=64x64 reuse=lane_shift a_load=tma"), target, 1);
  ASSERT_FALSE(low);
  EXPECT_NE(low.error().message.find("use tile m=128 instead of 64"), std::string::npos) << low.error().message;
}

// Separate and fused shifts and masked borders compete with the other modes, and what a shift costs decides.
TEST(ChooseSchedule, LanesAreShiftedWhereAShiftIsCheap) {
  const target::Target& target = target::NamedTarget("sm_100a");
  const Problem problem = *ParseProblem("conv n=32 h=56 w=56 c=64 k=64 r=3 s=3 pad=1");
  std::set<std::pair<ShiftForm, Border>> forms;
  for (const Schedule& schedule : EnumerateSchedules(problem, {}, target).schedules) {
    if (schedule.reuse == Reuse::kLaneShift) forms.emplace(schedule.shift, schedule.border);
  }
  EXPECT_EQ(forms, (std::set<std::pair<ShiftForm, Border>>{{ShiftForm::kSeparate, Border::kZeros},
                                                           {ShiftForm::kSeparate, Border::kMask},
                                                           {ShiftForm::kFused, Border::kZeros}}));
  Machine machine = PublishedMachine(target);
  const auto chosen = [&](double clocks) {
    machine.tensor_move = clocks;
    return ChooseSchedule(problem, {}, target, machine);
  };
  EXPECT_EQ(chosen(1)->reuse, Reuse::kLaneShift);
  EXPECT_EQ(chosen(64)->reuse, Reuse::kRowOffset);
}

// What copies the rows of a matrix is asked how long it takes before it is refused.
// Filters of a gradient of the input, and pixels of a gradient of filters, only where bulk copies do not read them.
TEST_P(ChooseOnTarget, PacksWhatGradientsNeed) {
  const target::Target& target = target::NamedTarget(GetParam());
  const auto paths = [&](const char* problem) {
    const auto chosen = ChooseSchedule(*ParseProblem(problem), {}, target, target.default_sm_count);
    EXPECT_TRUE(chosen.has_value()) << problem << ": " << chosen.error().message;
    return chosen ? std::pair(chosen->a_load, chosen->b_load) : std::pair(LoadPath::kCopy, LoadPath::kCopy);
  };
  for (const char* problem : {"conv_dgrad w=16 c=5 k=16 s=3", "conv_dgrad h=9 w=16 c=5 k=7 r=3 s=3 stride=2"})
    EXPECT_EQ(paths(problem).second, LoadPath::kPack) << problem;
  for (const char* problem : {"conv_dgrad w=64 c=64 k=64 s=3", "conv_dgrad n=8 h=32 w=32 c=64 k=64 r=3 s=3 stride=2"})
    EXPECT_EQ(paths(problem), std::pair(LoadPath::kTma, LoadPath::kTma)) << problem;
  EXPECT_EQ(paths("conv_wgrad w=16 c=16 k=16 s=3"), std::pair(LoadPath::kTma, LoadPath::kTma));
  EXPECT_EQ(paths("conv_wgrad w=16 c=3 k=16 s=3"), std::pair(LoadPath::kTma, LoadPath::kPack));
  EXPECT_EQ(paths("conv_wgrad w=16 c=16 k=5 s=3"), std::pair(LoadPath::kPack, LoadPath::kTma));
}

// The launches of a strided gradient are predicted together: about the time of as many products with stride 1.
TEST_P(ChooseOnTarget, PredictsAllPhasesOfAStridedGradient) {
  const target::Target& target = target::NamedTarget(GetParam());
  const Schedule schedule =
      ParseSchedule("tile=128x128x64 stages=4 acc=1 reuse=im2col b_load=pack d_store=rows math=1")->value;
  const auto pipeline = [&](const char* problem) {
    const Problem parsed = *ParseProblem(problem);
    const auto program = compiler::SketchSchedule(parsed, schedule, target);
    EXPECT_TRUE(program.has_value()) << program.error().message;
    return PipelineOf(parsed, schedule, program->program, target);
  };
  const Pipeline one = pipeline("conv_dgrad n=8 h=56 w=56 c=128 k=128 r=3 s=3 pad=1");
  EXPECT_EQ(one.launches, 1);
  EXPECT_EQ(one.work, 1);
  const Pipeline four = pipeline("conv_dgrad n=8 h=56 w=56 c=128 k=128 r=3 s=3 pad=1 stride=2");
  EXPECT_EQ(four.launches, 4);
  EXPECT_EQ(four.work, (4 + 2 + 2 + 1) / 4.0);
  const Machine machine = PublishedMachine(target);
  EXPECT_LE(LeastTime(four, machine), PredictTime(four, machine).us);
}

// Groups of few channels: the widest of up to 64 that are whole blocks of K, else all of them.
TEST_P(ChooseOnTarget, MergesGroupsOfFewChannels) {
  const target::Target& target = target::NamedTarget(GetParam());
  const auto merges = [&](const char* problem) {
    std::set<int> listed;
    for (const Schedule& shape : ListShapes(*ParseProblem(problem), {}, target)) listed.insert(shape.merge_groups);
    return listed;
  };
  EXPECT_EQ(merges("conv n=32 h=56 w=56 c=128 k=128 r=3 s=3 pad=1 groups=32"), (std::set{1, 8, 16}));
  EXPECT_EQ(merges("conv_dgrad n=32 h=14 w=14 c=256 k=512 r=3 s=3 pad=1 groups=32"), (std::set{1, 2, 4}));
  EXPECT_EQ(merges("conv_wgrad n=32 h=28 w=28 c=216 k=216 r=3 s=3 pad=1 groups=9"), (std::set{1, 9}));
  EXPECT_EQ(merges("conv n=32 h=14 w=14 c=512 k=512 r=3 s=3 pad=1 groups=8"), (std::set{1}));
  EXPECT_EQ(merges("conv n=32 h=14 w=14 c=512 k=512 r=3 s=3 pad=1"), (std::set{1}));
  EXPECT_EQ(merges("conv n=32 h=14 w=14 c=64 k=64 r=3 s=3 pad=1 groups=64"), (std::set{1})) << "for CUDA cores";
  EXPECT_EQ(merges("conv n=32 h=14 w=14 c=64 k=64 r=3 s=3 pad=1 groups=64 x=e4m3 w=e4m3"), (std::set{1, 32, 64}));
  for (const char* problem : {"conv n=32 h=56 w=56 c=128 k=128 r=3 s=3 pad=1 groups=32",
                              "conv_dgrad n=32 h=56 w=56 c=128 k=128 r=3 s=3 pad=1 groups=32",
                              "conv_wgrad n=32 h=56 w=56 c=128 k=128 r=3 s=3 pad=1 groups=32"}) {
    const auto chosen = ChooseSchedule(*ParseProblem(problem), {}, target, PublishedMachine(target));
    ASSERT_TRUE(chosen) << problem;
    EXPECT_GT(chosen->merge_groups, 1) << problem << ": " << PrintSchedule(*chosen);
  }
}

// Two or three warpgroups that add their products apart: on an H200 25 to 47 % faster than what one can hold.
TEST(ChooseSchedule, PromotesInSeveralWarpgroups) {
  const target::Target& target = target::NamedTarget("sm_90a");
  for (const auto& [text, warpgroups] : {std::pair("gemm m=4096 n=4096 k=7168 a=e4m3 b=e4m3 d=bf16", 2),
                                         {"gemm m=4096 n=24576 k=1536 a=e4m3 b=e4m3 d=bf16 scale=block", 3},
                                         {"grouped_gemm groups=4 m=34151 n=4096 k=7168 a=e4m3 b=e4m3 d=bf16", 2}}) {
    const auto chosen = ChooseSchedule(*ParseProblem(text), {}, target, PublishedMachine(target));
    ASSERT_TRUE(chosen) << text;
    EXPECT_EQ(chosen->math_warpgroups, warpgroups) << text << ": " << PrintSchedule(*chosen);
    EXPECT_GE(chosen->tile_m * chosen->tile_n, 128 * 128) << text << ": " << PrintSchedule(*chosen);
  }
}

// Each kind of matrix instruction has a schedule that keeps the tensor cores of a B200 busy. The factors of scale=nv
// take so many columns of Tensor Memory that only two sets and two accumulators of 192 columns fit.
TEST(ChooseSchedule, FillsTheTensorPipeWithLargeCubes) {
  const target::Target& target = target::NamedTarget("sm_100a");
  const std::pair<const char*, double> kLeast[] = {
      {"a=bf16", 0.95},          {"a=tf32 d=f32", 0.95},    {"a=s8 d=s32", 0.95},     {"a=e4m3", 0.95},
      {"a=e4m3 scale=mx", 0.90}, {"a=e2m1 scale=mx", 0.90}, {"a=e2m1 scale=nv", 0.83}};
  for (const auto& [types, least] : kLeast) {
    const Problem problem = *ParseProblem(std::string("gemm m=8192 n=8192 k=8192 ") + types);
    const auto schedule = ChooseSchedule(problem, {}, target, target.default_sm_count);
    ASSERT_TRUE(schedule.has_value()) << types << ": " << schedule.error().message;
    const auto sketch = compiler::SketchSchedule(problem, *schedule, target);
    ASSERT_TRUE(sketch.has_value()) << types << ": " << sketch.error().message;
    const Pipeline pipeline = PipelineOf(problem, *schedule, sketch->program, target);
    EXPECT_GE(PredictTime(pipeline, PublishedMachine(target)).tensor_share, least)
        << types << ": " << PrintSchedule(*schedule);
  }
}

// Bands are varied only if the L2 cache cannot hold what they share.
TEST_P(ChooseOnTarget, BandsAreAnAxisWhereTheyMatter) {
  const target::Target& target = target::NamedTarget(GetParam());
  const auto rasters = [&](const char* problem) {
    std::set<int> seen;
    for (const Schedule& schedule : EnumerateSchedules(*ParseProblem(problem), {}, target).schedules)
      seen.insert(schedule.raster);
    return seen;
  };
  EXPECT_EQ(rasters("gemm m=1024 n=1024 k=4096"), std::set<int>{8});
  EXPECT_GT(rasters("gemm m=16384 n=16384 k=8192").size(), 1u);
  EXPECT_EQ(rasters("gemm m=128 n=65536 k=16384"), std::set<int>{8}) << "one row of tiles is one band";
  EXPECT_TRUE(rasters("gemm m=4096 n=32768 k=512").contains(32)) << "A stays in the cache, D displaces B";
}

// 256 columns of the tile that is asked for are CTAs for two waves of SMs; if B is to be kept, they are allowed.
TEST(ChooseSchedule, KeepsBForMoreColumnsThanSmsOnlyIfItIsAsked) {
  const target::Target& target = target::NamedTarget("sm_90a");
  const auto kept = [&](const char* problem, const char* constraint) {
    const auto chosen =
        ChooseSchedule(*ParseProblem(problem), *ParseSchedule(constraint), target, target.default_sm_count);
    EXPECT_TRUE(chosen) << problem << ": " << chosen.error().message;
    return chosen ? chosen->b_keep : -1;
  };
  constexpr const char* kWide = "gemm m=4096 n=32768 k=512 a=e4m3 b=e4m3 d=bf16 scale=block";
  EXPECT_EQ(kept(kWide, "tile=256x128x128"), 0);
  EXPECT_EQ(kept(kWide, "tile=256x128x128 b_keep=4"), 4);
  EXPECT_EQ(kept("gemm m=4096 n=17024 k=512 a=e4m3 b=e4m3 d=bf16 scale=block", "tile=256x128x128 b_keep=4"), 4);
}

// Not for that of one tile among many.
TEST(ChooseSchedule, RefusesForWhatMostAreRefusedFor) {
  const auto reason = [](const char* target, const char* problem, const char* constraint) {
    const target::Target& chip = target::NamedTarget(target);
    const auto chosen = ChooseSchedule(*ParseProblem(problem), *ParseSchedule(constraint), chip, chip.default_sm_count);
    return chosen ? std::string() : chosen.error().message;
  };
  EXPECT_NE(reason("sm_90a", "conv h=9 w=13 c=16 k=64 r=3 s=3 pad=1 epilogue=swiglu", "reuse=lane_shift")
                .find("Tensor Memory, which sm_90a has not"),
            std::string::npos);
  EXPECT_NE(reason("sm_90a", "gemm m=4096 n=4096 k=4096 numerics=deterministic epilogue=sum_n",
                   "tile=128x128x64 consumers=pingpong")
                .find("128 accumulators in registers"),
            std::string::npos);
}

// What stores remember must not outlive the ranking that it came from.
TEST(RankingRevision, IsRaisedWhereChoicesChange) {
  constexpr std::string_view kChoices = "49:de125938a8631ad5a3cf4781e5d1ea94";
  base::Fingerprinter print;
  for (const target::Target& target : target::Targets()) {
    for (const char* text : kVaried) {
      const auto schedule = ChooseSchedule(*ParseProblem(text), {}, target, PublishedMachine(target));
      ASSERT_TRUE(schedule) << text;
      print.Text(text, PrintSchedule(*schedule));
    }
  }
  const std::string choices = base::Cat(kRankingRevision, ":", print.Finish().Hex());
  EXPECT_EQ(choices, kChoices)
      << "problems are ranked otherwise than by this revision: raise kRankingRevision, and put the new choices here";
}

TEST(ChoiceBasis, TellsEverythingThatDecides) {
  const target::Target& target = target::NamedTarget("sm_100a");
  const Machine machine = PublishedMachine(target);
  std::set<std::string> seen = {ChoiceBasis(target, machine)};
  EXPECT_EQ(ChoiceBasis(target, machine), *seen.begin());
  for (const MachineRow& row : kMachineRows) {
    Machine other = machine;
    other.*row.field = 1.5 * machine.*row.field + 0.001;
    EXPECT_TRUE(seen.insert(ChoiceBasis(target, other)).second) << row.name;
  }
  EXPECT_TRUE(seen.insert(ChoiceBasis(target, PublishedMachine(target, 7))).second);
  EXPECT_TRUE(seen.insert(ChoiceBasis(target::NamedTarget("sm_90a"), machine)).second);
  target::Target moved = target;
  ASSERT_TRUE(target::SetFact(moved.tensor_facts, "shift_scope", "cta"));
  EXPECT_TRUE(seen.insert(ChoiceBasis(moved, machine)).second);
}

INSTANTIATE_TEST_SUITE_P(Targets, ChooseOnTarget, testing::Values("sm_100a", "sm_90a"));

}  // namespace
}  // namespace laneshift::autotune
