#include "compiler/compile.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <thread>

#include "base/text.h"
#include "compiler/emit/ptx_check.h"

namespace laneshift::compiler {
namespace {

Schedule ScheduleFor(const target::Target& target, std::string_view text) {
  Schedule schedule = ParseSchedule(text)->value;
  if (target.Has(target::Feature::kWgmma)) {
    schedule.acc_stages = 1;
    schedule.math_warpgroups = std::min((schedule.rows == RowSide::kM ? schedule.tile_m : schedule.tile_n) / 64, 2);
  }
  return schedule;
}

ir::Program Build(std::string_view problem, std::string_view schedule, const target::Target& target) {
  auto program = BuildProgram(*ParseProblem(problem), ScheduleFor(target, schedule), target);
  EXPECT_TRUE(program.has_value()) << (program ? "" : program.error().message);
  return program ? *program : ir::Program{};
}

class CompileOnTarget : public testing::TestWithParam<const char*> {
 protected:
  const target::Target& target_ = target::NamedTarget(GetParam());
};

TEST_P(CompileOnTarget, SizesAreNoPartOfTheKernel) {
  const ir::Program small = Build("gemm m=128 n=128 k=128", "tile=128x64", target_);
  const ir::Program large = Build("gemm m=8192 n=4096 k=1024 alpha=2", "tile=128x64", target_);
  EXPECT_EQ(KernelKey(small), KernelKey(large));
}

TEST_P(CompileOnTarget, EveryDecisionIsPartOfTheKey) {
  std::set<std::string> keys;
  const std::pair<const char*, const char*> cases[] = {
      {"gemm m=128 n=128 k=128", "tile=128x64"},
      {"gemm m=128 n=128 k=128", "tile=128x128"},
      {"gemm m=128 n=128 k=128", "tile=64x64"},
      {"gemm m=128 n=128 k=128", "tile=128x64x128"},
      {"gemm m=128 n=128 k=128", "tile=128x64 stages=3"},
      {"gemm m=128 n=128 k=128", "tile=128x64 raster=4"},
      {"gemm m=128 n=128 k=128", "tile=128x64 cluster=2x1"},
      {"gemm m=128 n=128 k=128", "tile=128x64 cluster=1x2"},
      {"gemm m=128 n=128 k=128", "tile=128x64 a_load=copy"},
      {"gemm m=128 n=128 k=128", "tile=128x64 b_load=copy"},
      {"gemm m=128 n=128 k=128", "tile=128x64 d_store=direct"},
      {"gemm m=128 n=128 k=128 a=f16", "tile=128x64"},
      {"gemm m=128 n=128 k=128 d=f32", "tile=128x64"},
      {"gemm m=128 n=128 k=128 a_major=m", "tile=128x64"},
      {"gemm m=128 n=128 k=128 b_major=n", "tile=128x64"},
      {"gemm m=128 n=128 k=128 beta=1", "tile=128x64"},
      {"gemm m=128 n=128 k=128 bias=m", "tile=128x64"},
      {"gemm m=128 n=128 k=128 a=e4m3", "tile=128x64x128"},
      {"gemm m=128 n=128 k=128 a=e5m2", "tile=128x64x128"},
      {"gemm m=128 n=128 k=128 a=e4m3 b=e5m2", "tile=128x64x128"},
      {"gemm m=128 n=128 k=128 a=e4m3 d=e4m3", "tile=128x64x128"},
      {"gemm m=128 n=128 k=128 a=e4m3 scale=tensor", "tile=128x64x128"},
      {"gemm m=128 n=128 k=128 a=e4m3 scale=block", "tile=128x64x128"},
      {"gemm m=128 n=128 k=128 bias=n", "tile=128x64"},
      {"gemm m=128 n=128 k=128 beta=1 c=f32", "tile=128x64"},
      {"gemm m=128 n=127 k=128", "tile=128x64 d_store=direct"}};
  for (const auto& [problem, schedule] : cases) {
    EXPECT_TRUE(keys.insert(KernelKey(Build(problem, schedule, target_))).second) << problem << " " << schedule;
  }
}

TEST_P(CompileOnTarget, EveryPassIsDumpedAndReadsBack) {
  std::vector<PassDump> dumps;
  const Problem problem = *ParseProblem("gemm m=128 n=128 k=128 beta=1 bias=n");
  ASSERT_TRUE(BuildProgram(problem, ScheduleFor(target_, "tile=64x32"), target_, &dumps));
  ASSERT_EQ(dumps.size(), 3u);
  for (const PassDump& dump : dumps) {
    const auto program = ir::ParseProgram(dump.text);
    ASSERT_TRUE(program.has_value()) << dump.pass << ": " << program.error().message;
    EXPECT_EQ(ir::PrintProgram(*program), dump.text);
  }
}

TEST_P(CompileOnTarget, PtxIsTheSameOnEveryThread) {
  const ir::Program program = Build("gemm m=128 n=128 k=128", "tile=64x32", target_);
  const auto reference = EmitPtx(program, target_);
  ASSERT_TRUE(reference.has_value()) << reference.error().message;
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string& text : texts) {
    threads.emplace_back([&] { text = EmitPtx(program, target_)->ptx; });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) EXPECT_EQ(text, reference->ptx);
}

TEST_P(CompileOnTarget, PtxNamesItsTargetAndVersion) {
  const auto module = EmitPtx(Build("gemm m=128 n=128 k=128", "tile=64x32", target_), target_);
  ASSERT_TRUE(module.has_value());
  EXPECT_NE(module->ptx.find(std::string(".target ") + GetParam()), std::string::npos);
  EXPECT_NE(module->ptx.find(".visible .entry laneshift_gemm"), std::string::npos);
}

// Where the accumulator keeps a whole f32, sum=fast is the same kernel.
TEST_P(CompileOnTarget, PromotesWhereTheAccumulatorKeepsTooLittle) {
  const auto sums = [&](const char* problem) {
    const std::string text = ir::PrintProgram(Build(problem, "tile=128x64x128", target_));
    return text.find("promoted.add") != std::string::npos;
  };
  EXPECT_EQ(sums("gemm m=128 n=128 k=128 a=e4m3"), target_.Has(target::Feature::kWgmma));
  EXPECT_FALSE(sums("gemm m=128 n=128 k=128 a=e4m3 sum=fast"));
  EXPECT_TRUE(sums("gemm m=128 n=128 k=128 a=e4m3 sum=fast scale=block"));
  const std::string bf16 = ir::PrintProgram(Build("gemm m=128 n=128 k=128", "tile=128x64x64", target_));
  EXPECT_EQ(bf16.find("promoted."), std::string::npos);
}

// A barrier counts what bulk copies transfer, which is less than a tile of padded elements takes.
TEST(PaddedOperands, AreCopiedByTheirOwnBytes) {
  const target::Target& target = target::NamedTarget("sm_100a");
  const ir::Program program = Build("gemm m=128 n=128 k=128 a=e2m1 b=e3m2", "tile=128x64x128 acc=1", target);
  const std::string text = ir::PrintProgram(program);
  EXPECT_NE(text.find("operand_bits=8"), std::string::npos);
  EXPECT_NE(text.find("padded e2m1[m:128 k:128] swizzle=128"), std::string::npos);
  EXPECT_NE(text.find("padded e3m2[n:64 k:128] swizzle=128"), std::string::npos);
  EXPECT_EQ(program.Steps(), 4);
  const auto module = EmitPtx(program, target);
  ASSERT_TRUE(module.has_value()) << module.error().message;
  const int bytes = 128 * 128 * 4 / 8 + 64 * 128 * 6 / 8;
  EXPECT_NE(module->ptx.find(base::Cat(", ", bytes, ";")), std::string::npos) << "expect_tx of " << bytes;
  EXPECT_NE(module->ptx.find("tcgen05.mma.cta_group::1.kind::f8f6f4"), std::string::npos);
}

TEST_P(CompileOnTarget, MultipliesTheTypesOfTheProblem) {
  const ir::Program program = Build("gemm m=128 n=128 k=128 a=e4m3 b=e5m2", "tile=128x64x128", target_);
  const auto module = EmitPtx(program, target_);
  ASSERT_TRUE(module.has_value()) << module.error().message;
  const char* instruction = target_.Has(target::Feature::kWgmma)
                                ? "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e5m2"
                                : "tcgen05.mma.cta_group::1.kind::f8f6f4";
  EXPECT_NE(module->ptx.find(instruction), std::string::npos);
}

// ADR 0082: where tiles divide the rows of a group.
TEST_P(CompileOnTarget, MultipliesAsManyColumnsAsATileHasRows) {
  const ir::Program program =
      Build("grouped_gemm groups=6 m=1536 n=256 k=1024", "tile=128x64x64 rows=n stages=3", target_);
  const bool divides = target_.Has(target::Feature::kWgmma);
  EXPECT_EQ(ir::PrintProgram(program).find(" row_step=16") != std::string::npos, divides);
  const auto module = EmitPtx(program, target_);
  ASSERT_TRUE(module.has_value()) << module.error().message;
  std::map<std::string, int> census = InstructionCensus(module->ptx);
  const auto products = [&](int columns) {
    return census[base::Cat("wgmma.mma_async.sync.aligned.m64n", columns, "k16.f32.bf16.bf16")];
  };
  for (const int columns : {64, 80, 96, 112, 128}) EXPECT_EQ(products(columns), divides ? 4 : 0) << columns;
  EXPECT_EQ(products(48), 0);
}

INSTANTIATE_TEST_SUITE_P(Targets, CompileOnTarget, testing::Values("sm_100a", "sm_90a"));

// The golden programs of ir/'s tests are what this compiler builds. BLESS=1 rewrites them.
TEST(GoldenPrograms, AreWhatIsBuilt) {
  constexpr const char* kConv = "conv n=1 h=14 w=14 c=128 k=64 r=3 s=3 pad=1";
  const std::tuple<const char*, const char*, const char*, const char*> cases[] = {
      {"gemm", "sm_100a", "gemm m=256 n=256 k=256", "tile=128x256 stages=4"},
      {"gemm", "sm_90a", "gemm m=128 n=130 k=64 a=f16 align_a=2 beta=1 bias=n",
       "tile=128x128 stages=5 a_load=copy d_store=direct"},
      {"gemm_shared", "sm_90a", "gemm m=13 n=264 k=512 beta=1 bias=n", "tile=16x128 rows=n split_k=4 stages=4 math=2"},
      {"gemm_gated", "sm_90a", "gemm m=13 n=512 k=256 epilogue=bias_n+swiglu:halves+residual",
       "tile=16x128 rows=n math=2"},
      {"gemm_reductions", "sm_100a", "gemm m=256 n=256 k=256 numerics=deterministic epilogue=sum_m+sum_n",
       "tile=128x128 stages=4"},
      {"gemm_cluster", "sm_90a", "gemm m=256 n=256 k=256", "tile=128x128 stages=4 cluster=2x2"},
      {"gemm_cluster_k", "sm_90a", "gemm m=256 n=256 k=512", "tile=128x128 stages=3 cluster_k=4"},
      {"gemm_cluster_k", "sm_100a", "gemm m=256 n=256 k=512", "tile=128x128 stages=3 cluster_k=4"},
      {"gemm_pingpong", "sm_90a", "gemm m=2048 n=2048 k=256", "tile=128x64 stages=4 math=2 consumers=pingpong"},
      {"gemm_overlap", "sm_100a", "gemm m=256 n=1024 k=256 a=e4m3 scale=mx", "tile=128x256x128 stages=4"},
      {"gemm_stored_factors", "sm_100a", "gemm m=512 n=1024 k=512 a=e2m1 scale=nv",
       "tile=128x192x256 stages=4 cluster=2x1 ctas=2 scale_warps=rows"},
      {"gemm_begins_early", "sm_90a", "gemm m=1536 n=384 k=256 a=e4m3", "tile=128x32x128 stages=4 math=2"},
      {"gemm_panels", "sm_90a", "gemm m=2048 n=2048 k=256", "tile=128x176 stages=4 consumers=pingpong"},
      {"gemm_sharers", "sm_90a", "gemm m=256 n=2048 k=256", "tile=64x128 stages=4 rows=n"},
      {"gemm_resident", "sm_90a", "gemm m=2048 n=64 k=256", "tile=128x64 stages=4 math=2 b_keep=4"},
      {"gemm_resident_columns", "sm_90a", "gemm m=2048 n=256 k=256",
       "tile=128x64 stages=4 raster=1 b_keep=4 b_load=copy"},
      {"gemm_async", "sm_90a", "gemm m=256 n=256 k=260 ldb=262", "tile=128x128 stages=5 a_load=async b_load=async"},
      {"gemm_async_resident", "sm_100a", "gemm m=2048 n=64 k=260",
       "tile=128x64 stages=4 a_load=async b_load=async b_keep=5"},
      {"gemm_words", "sm_90a", "gemm m=256 n=255 k=256 b_major=k", "tile=128x64 stages=4 d_store=rows"},
      {"gemm_pair", "sm_100a", "gemm m=512 n=256 k=256", "tile=128x256 stages=4 cluster=4x1 ctas=2 scheduler=clc"},
      {"gemm_e4m3", "sm_90a", "gemm m=256 n=256 k=256 a=e4m3 b=e5m2 d=e4m3 scale=tensor", "tile=128x128x128 stages=5"},
      {"gemm_promoted", "sm_90a", "gemm m=256 n=256 k=256 a=e4m3", "tile=64x128x128 stages=5"},
      {"gemm_sparse", "sm_90a", "gemm m=256 n=256 k=512 a=bf16 sparse=a", "tile=128x128x64 stages=4 math=2"},
      {"gemm_sparse_promoted", "sm_90a", "gemm m=256 n=256 k=512 a=e4m3 sparse=a", "tile=128x128x256 stages=3 math=2"},
      {"gemm_grouped", "sm_90a", "grouped_gemm groups=4 m=2048 n=256 k=256 bias=n",
       "tile=128x128 stages=4 math=2 d_store=rows"},
      {"gemm_grouped_bulk", "sm_90a", "grouped_gemm groups=4 m=2048 n=320 k=256", "tile=80x64x64 stages=4 rows=n"},
      {"gemm_grouped_blocks", "sm_90a", "grouped_gemm groups=8 m=1024 n=256 k=512 a=e4m3 scale=block",
       "tile=256x128x128 stages=3 math=2"},
      {"gemm_divided_rows", "sm_90a", "grouped_gemm groups=4 m=1024 n=256 k=1024", "tile=128x64x64 rows=n stages=3"},
      {"gemm_masked", "sm_100a", "grouped_gemm groups=4 m=512 n=256 k=256 layout=masked beta=1",
       "tile=128x128 stages=4 d_store=rows"},
      {"gemm_grouped_scales", "sm_90a", "grouped_gemm groups=4 m=2048 n=256 k=512 a=e4m3 scale=block",
       "tile=128x160x128 stages=3 d_store=rows"},
      {"gemm_masked_scales", "sm_100a", "grouped_gemm groups=4 m=512 n=256 k=512 layout=masked a=e4m3 scale=block",
       "tile=128x64x128 stages=5 d_store=rows"},
      {"gemm_rows", "sm_90a",
       "grouped_gemm groups=4 m=2048 n=256 k=256 rows=gather+scatter a_rows=512 epilogue=swiglu+scale_m:f32",
       "tile=128x128x64 stages=4 cluster=1x2 d_store=rows"},
      {"gemm_rows", "sm_100a",
       "grouped_gemm groups=4 m=2048 n=256 k=512 a=e4m3 scale=block scale_type=ue8m0 rows=gather+scatter",
       "tile=128x128x128 stages=4 d_store=rows"},
      {"gemm_row_scaled", "sm_90a", "gemm m=2048 n=256 k=256 a=s8 d=bf16 scale=row batch=2",
       "tile=128x128x128 stages=4"},
      {"gemm_parts", "sm_90a", "grouped_gemm groups=4 m=256 n=256 k=2048 layout=k d=f32 beta=1",
       "tile=128x128 stages=4 math=2"},
      {"gemm_parts", "sm_100a", "grouped_gemm groups=4 m=256 n=256 k=2048 layout=k", "tile=128x128 stages=4"},
      {"gemm_block_scaled", "sm_90a", "gemm m=256 n=256 k=256 a=e4m3 scale=block",
       "tile=128x64x128 stages=5 a_load=async b_load=async"},
      {"gemm_slot_scales", "sm_90a", "gemm m=256 n=256 k=512 a=e4m3 scale=block", "tile=128x160x128 stages=3"},
      {"gemm_vector_scales", "sm_90a", "gemm m=250 n=512 k=768 a=e4m3 scale=block batch=2",
       "tile=128x192x128 stages=3"},
      {"gemm_whole", "sm_90a", "gemm m=512 n=256 k=512 a=e4m3 scale=block",
       "tile=256x128x128 stages=3 math=2 cluster=1x2"},
      {"gemm_slot_scales_rows_n", "sm_90a", "gemm m=256 n=256 k=512 a=e4m3 scale=block",
       "tile=128x256x128 stages=3 rows=n"},
      {"gemm_slot_scales_rows_n", "sm_100a", "grouped_gemm groups=4 m=1024 n=256 k=512 a=e4m3 scale=block",
       "tile=64x128x128 stages=5 rows=n d_store=rows"},
      {"gemm_block_scaled", "sm_100a", "gemm m=256 n=256 k=256 a=e4m3 scale=block", "tile=128x64x128 stages=5"},
      {"gemm_padded", "sm_100a", "gemm m=256 n=256 k=256 a=e2m1 b=e3m2", "tile=128x128x128 stages=4"},
      {"gemm_padded_mx", "sm_100a", "gemm m=256 n=256 k=256 a=e4m3 b=e2m3 scale=mx", "tile=128x128x128 stages=3"},
      {"gemm_quantized", "sm_100a", "gemm m=256 n=512 k=256 a=e2m1 scale=nv d=e2m1 d_scale=nv epilogue=swiglu+amax",
       "tile=128x256x256 stages=3 acc=1"},
      {"gemm_quantized", "sm_90a", "gemm m=256 n=256 k=256 d=e4m3 d_scale=mx", "tile=128x128 stages=4 math=2"},
      {"gemm_direct", "sm_100a", "gemm m=4 n=512 k=4096 epilogue=swiglu:halves+residual constant=b",
       "tile=4x32x256 stages=2 acc=1 math=2 raster=1 a_load=copy b_load=copy d_store=direct reuse=direct rows=n "
       "split_k=2"},
      {"gemm_direct_nv", "sm_100a", "gemm m=512 n=1 k=4096 a=e2m1 scale=nv batch=2",
       "tile=32x1x2048 stages=2 acc=1 math=2 raster=1 a_load=copy b_load=copy d_store=direct reuse=direct"},
      {"conv_im2col", "sm_100a", kConv, "tile=128x64 stages=4 reuse=im2col"},
      {"conv_gather", "sm_90a", "conv n=1 h=14 w=14 c=3 k=64 r=7 s=7 pad=3 stride=2",
       "tile=128x64 stages=4 a_load=copy b_load=copy reuse=im2col d_store=rows"},
      {"conv_row_offset", "sm_90a", kConv, "tile=128x64 stages=3 reuse=row_offset d_store=rows"},
      {"conv_row_offset_masked", "sm_100a", kConv, "tile=128x64 stages=3 reuse=row_offset border=mask"},
      {"conv_lane_shift", "sm_100a", kConv, "tile=128x64 stages=3 reuse=lane_shift d_store=rows"},
      {"conv_lane_shift_fused", "sm_100a", kConv, "tile=128x64 stages=3 reuse=lane_shift shift=fused d_store=rows"},
      {"conv_patch", "sm_90a", "conv_dgrad n=2 h=9 w=11 c=3 k=64 r=7 s=7 pad=3 stride=2 beta=1",
       "tile=128x16x64 stages=3 acc=1 math=2 b_load=pack b_keep=16 d_store=direct reuse=row_offset"},
      {"conv_depthwise", "sm_90a", "conv_dgrad n=2 h=14 w=14 c=128 k=128 r=3 s=3 pad=1 groups=128 beta=1",
       "tile=128x64x16 stages=3 math=2 raster=1 b_load=copy b_keep=1 d_store=direct reuse=direct"},
      {"conv_depthwise_gradient", "sm_100a",
       "conv_wgrad n=2 h=14 w=14 c=128 k=128 r=3 s=3 pad=1 groups=128 w=f32 beta=1",
       "tile=64x16x98 stages=3 acc=1 math=2 raster=1 d_store=direct reuse=direct split_k=2"}};
  for (const auto& [stem, target, problem, schedule] : cases) {
    const target::Target& chip = target::NamedTarget(target);
    std::vector<PassDump> dumps;
    ASSERT_TRUE(BuildProgram(*ParseProblem(problem), ScheduleFor(chip, schedule), chip, &dumps));
    const std::pair<const char*, const PassDump*> stages[] = {{"scheduled", &dumps.front()},
                                                              {"lowered", &dumps.back()}};
    for (const auto& [stage, dump] : stages) {
      const std::string path =
          std::string(LANESHIFT_SOURCE_DIR) + "/tests/golden/ir/" + stem + "_" + target + "_" + stage + ".tir";
      if (std::getenv("BLESS") != nullptr) std::ofstream(path) << dump->text;
      std::ifstream file(path);
      const std::string golden((std::istreambuf_iterator<char>(file)), {});
      EXPECT_EQ(dump->text, golden) << path << ": BLESS=1 compiler_test rewrites it";
    }
  }
}

TEST(PtxCheck, RefusesWhatTheProgramDoesNotAskFor) {
  const target::Target& target = target::NamedTarget("sm_100a");
  const ir::Program program = Build("gemm m=128 n=128 k=128", "tile=64x32", target);
  const std::string ptx = EmitPtx(program, target)->ptx;
  ASSERT_TRUE(CheckPtx(ptx, program));
  const auto with = [&](const std::string& line) { return ptx + "\n\t" + line + "\n"; };
  EXPECT_FALSE(CheckPtx(with("tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;"), program));
  EXPECT_FALSE(CheckPtx(with("ld.local.b32 %r1, [%rd1];"), program));
  EXPECT_FALSE(CheckPtx(with("call.uni (retval0), foo, (param0);"), program));
  std::string missing = ptx;
  missing.erase(missing.find("tcgen05.commit"), 7);
  EXPECT_FALSE(CheckPtx(missing, program));
}

TEST(CheckSchedule, NamesTheRule) {
  const std::tuple<const char*, const char*, const char*, ErrorCode, const char*> cases[] = {
      {"sm_90a", "gemm m=9 n=64 k=64", "tile=8x32x256 reuse=direct", ErrorCode::kUnsupported, "at most 8 vectors"},
      {"sm_90a", "gemm m=4 n=64 k=60", "tile=4x32x256 reuse=direct", ErrorCode::kUnsupported, "reads 16 bytes at once"},
      {"sm_90a", "gemm m=4 n=64 k=64 b_major=n", "reuse=direct", ErrorCode::kUnsupported, "use b_major=k"},
      {"sm_90a", "gemm m=4 n=64 k=64 a=tf32", "reuse=direct", ErrorCode::kUnsupported, "not tf32 by tf32"},
      {"sm_100a", "gemm m=4 n=64 k=64 a=e4m3 scale=mx", "reuse=direct", ErrorCode::kUnsupported, "only with e2m1"},
      {"sm_90a", "gemm m=4 n=64 k=64", "tile=4x32x256 reuse=direct", ErrorCode::kUnsupported, "use a_load=copy"},
      {"sm_100a", "gemm m=64 n=64 k=64", "tile=96x64", ErrorCode::kUnsupported, "use 64 or 128"},
      {"sm_100a", "gemm m=64 n=64 k=64", "tile=64x8", ErrorCode::kUnsupported, "multiple of 16"},
      {"sm_100a", "gemm m=64 n=64 k=64", "tile=64x64x32", ErrorCode::kUnsupported, "power of two from 64 to 256"},
      {"sm_100a", "gemm m=64 n=64 k=64", "stages=1", ErrorCode::kUnsupported, "use 2 to 16"},
      {"sm_100a", "gemm m=64 n=64 k=64", "acc=3", ErrorCode::kUnsupported, "use 1 or 2"},
      {"sm_100a", "gemm m=64 n=64 k=64", "math=2", ErrorCode::kUnsupported, "use math=1"},
      {"sm_100a", "gemm m=64 n=64 k=64 a=e2m1", "tile=64x64x128", ErrorCode::kUnsupported,
       "its rows of 64 e2m1 are not multiples of 128 elements; pad and align it"},
      {"sm_100a", "gemm m=64 n=64 k=128 a=e4m3 b=e3m2 ldb=132", "tile=64x64x128", ErrorCode::kUnsupported,
       "the TMA cannot reach b: its pitch of 99 bytes is not a multiple of 32"},
      {"sm_100a", "gemm m=64 n=64 k=128 a=e2m3 align_a=16", "tile=64x64x128", ErrorCode::kUnsupported,
       "the TMA cannot reach a: its base alignment of 16 bytes is not a multiple of 32"},
      {"sm_100a", "gemm m=64 n=64 k=128 a=e2m3 batch=2 stride_a=8256", "tile=64x64x128", ErrorCode::kUnsupported,
       "its batch stride of 6192 bytes is not a multiple of 32"},
      {"sm_100a", "gemm m=64 n=64 k=128 a=e2m3", "tile=64x64x128 a_load=copy", ErrorCode::kUnsupported,
       "only bulk copies pad elements of e2m3; use a_load=tma"},
      {"sm_100a", "gemm m=64 n=64 k=128 a=e2m3 b=e4m3", "tile=64x64x128 a_load=pack", ErrorCode::kUnsupported,
       "only bulk copies pad elements of e2m3; use a_load=tma"},
      {"sm_100a", "gemm m=64 n=64 k=128 a=e2m1", "tile=64x64x64", ErrorCode::kUnsupported,
       "power of two from 128 to 512"},
      {"sm_90a", "gemm m=64 n=64 k=128 a=e4m3 b=e2m1", "tile=64x64x128 math=1 acc=1", ErrorCode::kUnsupported,
       "sm_90a has no matrix instruction for e2m1; use e4m3 or e5m2, or sm_100a"},
      {"sm_100a", "gemm m=64 n=64 k=64 d=e2m1 d_scale=mx", "tile=64x64", ErrorCode::kUnsupported,
       "with d=e2m1 a lane packs a row of the accumulator; use tile m=128"},
      {"sm_100a", "gemm m=64 n=64 k=64 d=e2m1 d_scale=mx", "tile=128x64 d_store=rows", ErrorCode::kUnsupported,
       "d=e2m1 leaves by bulk stores; use d_store=tma"},
      {"sm_100a", "gemm m=64 n=64 k=64 d=e2m1 d_scale=nv", "tile=128x32", ErrorCode::kUnsupported,
       "rows of 32 e2m1 of D are not multiples of 32 bytes; use a tile n that is a multiple of 64"},
      {"sm_100a", "gemm m=64 n=64 k=64 d=e4m3 d_scale=mx", "tile=64x64 rows=n", ErrorCode::kUnsupported,
       "rows=n is for results of 16 or 32 bits, not e4m3"},
      {"sm_90a", "gemm m=64 n=64 k=64 d=e2m1 d_scale=mx", "tile=128x64 math=1 acc=1", ErrorCode::kUnsupported,
       "d=e2m1 needs conversions to it, which sm_90a has not"},
      {"sm_90a", "gemm m=64 n=64 k=64", "tile=96x64 math=1 acc=1", ErrorCode::kUnsupported, "multiple of 64 rows"},
      {"sm_90a", "gemm m=64 n=64 k=64", "tile=64x64 acc=1 early=b", ErrorCode::kUnsupported,
       "early=b loads what the previous kernel may still write; use constant=b, or early=none"},
      {"sm_100a", "gemm m=64 n=64 k=64 constant=b", "tile=64x64 early=b b_load=pack", ErrorCode::kUnsupported,
       "what a kernel packs is not constant; use b_load=tma"},
      {"sm_90a", "gemm m=64 n=64 k=64 constant=b", "tile=64x64 acc=1 early=b a_load=async", ErrorCode::kUnsupported,
       "leave no warp that loads B early; use a_load=tma or pack"},
      {"sm_90a", "gemm m=4 n=64 k=1024 constant=b", "reuse=direct early=b", ErrorCode::kUnsupported,
       "no warp that only loads; use early=none"},
      {"sm_90a", "gemm m=64 n=64 k=64", "tile=256x256 math=2 acc=1", ErrorCode::kUnsupported,
       "too many with this epilogue and these loads; use at most 192"},
      {"sm_90a", "gemm m=64 n=64 k=64", "tile=128x256 math=1 acc=1", ErrorCode::kUnsupported,
       "use math=2, or at most 192 columns"},
      {"sm_90a", "gemm m=64 n=64 k=64 epilogue=sum_m+amax", "tile=256x128 math=2 acc=1", ErrorCode::kUnsupported,
       "use at most 96 columns"},
      {"sm_90a", "gemm m=64 n=64 k=64 epilogue=residual+sum_m", "tile=96x256 math=2 acc=1 rows=n",
       ErrorCode::kUnsupported, "use at most 64 columns"},
      {"sm_90a", "gemm m=64 n=64 k=64 b_major=n epilogue=swiglu:halves", "tile=64x64 acc=1", ErrorCode::kUnsupported,
       "are in two halves of a row"},
      {"sm_90a", "gemm m=64 n=64 k=64", "tile=64x64 math=1 acc=1 consumers=pingpong", ErrorCode::kUnsupported,
       "use math=2"},
      {"sm_90a", "gemm m=64 n=64 k=512", "tile=64x64 acc=1 cluster_k=3", ErrorCode::kUnsupported, "use a power of two"},
      {"sm_90a", "gemm m=64 n=64 k=512", "tile=64x64 acc=1 cluster_k=16", ErrorCode::kUnsupported, "at most 8"},
      {"sm_90a", "gemm m=64 n=64 k=512", "tile=64x64 acc=1 cluster_k=2 cluster=2x1", ErrorCode::kUnsupported,
       "use cluster=1x1 ctas=1"},
      {"sm_90a", "gemm m=64 n=64 k=512", "tile=64x64 acc=1 cluster_k=2 split_k=2", ErrorCode::kUnsupported,
       "use split_k=1 or cluster_k=1"},
      {"sm_90a", "gemm m=64 n=64 k=512", "tile=64x64 math=2 acc=1 consumers=pingpong cluster_k=2",
       ErrorCode::kUnsupported, "use cluster_k=1"},
      {"sm_100a", "gemm m=64 n=64 k=512", "tile=64x64 cluster_k=2 scheduler=clc", ErrorCode::kUnsupported,
       "use scheduler=static"},
      {"sm_90a", "gemm m=64 n=64 k=512", "tile=64x64 acc=1 cluster_k=2 b_keep=8", ErrorCode::kUnsupported,
       "use b_keep=0"},
      {"sm_90a", "gemm m=64 n=64 k=64", "tile=64x64 acc=1 cluster_k=2", ErrorCode::kUnsupported,
       "cluster_k=2 CTAs cannot share a tile that has 1 block of K"},
      {"sm_90a", "gemm m=64 n=64 k=512 numerics=batch_invariant", "tile=64x64 acc=1 cluster_k=2",
       ErrorCode::kUnsupported, "use cluster_k=1"},
      {"sm_90a", "grouped_gemm groups=4 m=512 n=64 k=512", "tile=64x64 acc=1 cluster_k=2 d_store=rows",
       ErrorCode::kUnsupported, "use cluster_k=1"},
      {"sm_90a", "gemm m=64 n=64 k=64", "tile=64x64 math=2 acc=1 consumers=pingpong split_k=2", ErrorCode::kUnsupported,
       "use split_k=1"},
      {"sm_100a", "gemm m=64 n=64 k=64", "tile=64x64 consumers=pingpong", ErrorCode::kUnsupported, "acc=2"},
      {"sm_90a", "gemm m=62 n=64 k=512 a=e4m3 scale=block", "tile=64x64x128 acc=1 a_load=async b_load=async rows=n",
       ErrorCode::kUnsupported, "only with operands that it loads; use rows=m"},
      {"sm_90a", "gemm m=64 n=64 k=128 a=e4m3 scale=block", "tile=64x64x128 acc=1 rows=n a_load=copy b_load=copy",
       ErrorCode::kUnsupported, "with operands that it loads"},
      {"sm_100a", "gemm m=256 n=128 k=512 a=e4m3 scale=block", "tile=144x128x128 rows=n", ErrorCode::kUnsupported,
       "at most 128"},
      {"sm_90a", "gemm m=64 n=64 k=128 a=e4m3", "tile=256x144x128 math=2 acc=1", ErrorCode::kUnsupported,
       "at most 128"},
      {"sm_90a", "gemm m=64 n=64 k=64", "tile=64x64 acc=2", ErrorCode::kUnsupported, "use 1"},
      {"sm_90a", "gemm m=8 n=64 k=64", "tile=8x96 rows=n acc=1", ErrorCode::kUnsupported, "tile n=96 does not give"},
      {"sm_90a", "gemm m=8 n=64 k=64", "tile=12x64 rows=n acc=1", ErrorCode::kUnsupported, "multiple of 8 from 8"},
      {"sm_90a", "gemm m=8 n=64 k=64 a_major=m", "tile=8x64 rows=n acc=1", ErrorCode::kUnsupported,
       "multiple of 16 from 16"},
      {"sm_100a", "gemm m=8 n=64 k=64", "tile=16x32 rows=n", ErrorCode::kUnsupported, "tile n=32 is not a tcgen05.mma"},
      {"sm_100a", "gemm m=64 n=256 k=64", "tile=128x128 rows=n cluster=2x1 ctas=2", ErrorCode::kUnsupported,
       "with ctas=2 use rows=m"},
      {"sm_90a", "conv n=1 h=8 w=8 c=64 k=64 r=3 s=3 pad=1", "tile=64x64 rows=n reuse=row_offset acc=1",
       ErrorCode::kUnsupported, "use reuse=im2col, or rows=m"},
      {"sm_90a", "conv n=1 h=8 w=8 c=3 k=64 r=3 s=3 pad=1",
       "tile=64x64 reuse=im2col a_load=copy b_load=copy d_store=rows split_k=2 acc=1", ErrorCode::kUnsupported,
       "use split_k=1"},
      {"sm_100a", "gemm m=64 n=63 k=64", "d_store=tma", ErrorCode::kUnsupported,
       "TMA cannot reach d: its pitch of 126 bytes is not a multiple of 16; use d_store=rows"},
      {"sm_100a", "gemm m=64 n=64 k=64 align_b=8", "b_load=tma", ErrorCode::kUnsupported,
       "base alignment of 8 bytes is not a multiple of 16; use b_load=pack"},
      {"sm_90a", "gemm m=64 n=64 k=1001", "tile=64x64 acc=1 a_load=async b_load=pack", ErrorCode::kUnsupported,
       "the pitch of a is 2002 bytes; use a_load=pack or copy, or pad it"},
      {"sm_90a", "gemm m=64 n=64 k=64 align_b=2", "tile=64x64 acc=1 b_load=async", ErrorCode::kUnsupported,
       "the base alignment of b is 2 bytes"},
      {"sm_90a", "gemm m=64 n=64 k=66 batch=2 stride_a=4225", "tile=64x64 acc=1 a_load=async b_load=async",
       ErrorCode::kUnsupported, "the batch stride of a is 8450 bytes"},
      {"sm_90a", "gemm m=64 n=64 k=64 a=e4m3 a_major=m", "tile=64x64x128 acc=1 a_load=async", ErrorCode::kUnsupported,
       "do not transpose, and the tensor core of sm_90a reads e4m3 along k; use a_load=copy, or a_major=k"},
      {"sm_100a", "gemm m=64 n=132 k=64 b_major=n epilogue=swiglu:halves", "tile=64x64 b_load=async",
       ErrorCode::kUnsupported, "would bring single elements; use b_load=copy, or b_major=k"},
      {"sm_100a", "conv n=1 h=8 w=8 c=6 k=64 r=3 s=3 pad=1", "tile=64x64 reuse=im2col a_load=async d_store=rows",
       ErrorCode::kUnsupported, "a_load=async copies rows of a matrix, and x of a convolution is none"},
      {"sm_100a", "gemm m=64 n=64 k=256 a=e4m3 scale=mx", "tile=128x64x128 b_load=async", ErrorCode::kUnsupported,
       "block scaling loads operands by bulk copies"},
      {"sm_100a", "gemm m=64 n=64 k=66", "tile=128x64 cluster=2x1 a_load=async b_load=async", ErrorCode::kUnsupported,
       "shares B along m by bulk copies"},
      {"sm_100a", "gemm m=64 n=64 k=66", "tile=128x64 ctas=2 cluster=2x1 a_load=async b_load=async",
       ErrorCode::kUnsupported, "a_load=tma b_load=tma"},
      {"sm_90a", "gemm m=192 n=64 k=64 a=e4m3", "tile=256x64x128 acc=1 math=4", ErrorCode::kUnsupported, "use 1 to 3"},
      {"sm_90a", "gemm m=192 n=64 k=64", "tile=192x64 acc=1 math=3", ErrorCode::kUnsupported,
       "is for sums that are promoted"},
      {"sm_90a", "gemm m=192 n=64 k=64 a=e4m3", "tile=192x64x128 acc=1 math=3 a_load=copy", ErrorCode::kUnsupported,
       "bulk copies of matrices only; use math=1 or 2"},
      {"sm_90a", "conv n=1 h=8 w=8 c=64 k=64 r=3 s=3 pad=1 x=e4m3", "tile=192x64x128 acc=1 math=3 reuse=im2col",
       ErrorCode::kUnsupported, "bulk copies of matrices only"},
      {"sm_90a", "gemm m=160 n=384 k=64 bias=n epilogue=silu d=e4m3 d_scale=mx", "tile=256x160x64 acc=1 math=2",
       ErrorCode::kUnsupported, "use at most 144 columns"},
      {"sm_90a", "gemm m=192 n=192 k=64 a=e4m3", "tile=192x192x128 acc=1 math=3", ErrorCode::kUnsupported,
       "use at most 128"},
      {"sm_90a", "gemm m=64 n=64 k=64", "tile=64x64 acc=1 cluster=3x1", ErrorCode::kUnsupported, "powers of two"},
      {"sm_90a", "gemm m=64 n=64 k=64", "tile=64x64 acc=1 cluster=4x4", ErrorCode::kUnsupported, "at most 8 CTAs"},
      {"sm_90a", "gemm m=64 n=64 k=64", "tile=64x64 acc=1 cluster=2x1 ctas=2", ErrorCode::kUnsupported,
       "use ctas=1 cluster=2x1"},
      {"sm_100a", "gemm m=64 n=64 k=64", "tile=128x64 ctas=2 cluster=1x2", ErrorCode::kUnsupported, "cluster=2x2"},
      {"sm_100a", "gemm m=64 n=64 k=64", "tile=128x64 ctas=2 cluster=2x1 b_load=copy", ErrorCode::kUnsupported,
       "a_load=tma b_load=tma"},
      {"sm_100a", "gemm m=64 n=64 k=64", "tile=64x64 ctas=2 cluster=2x1", ErrorCode::kUnsupported, "tile m=128"},
      {"sm_100a", "gemm m=64 n=64 k=64", "tile=128x48 ctas=2 cluster=2x1", ErrorCode::kUnsupported, "multiple of 32"},
      {"sm_100a", "gemm m=64 n=64 k=64", "tile=128x64 cluster=2x2 a_load=copy", ErrorCode::kUnsupported,
       "shares A along n by bulk copies; use a_load=tma or cluster=2x1"},
      {"sm_100a", "gemm m=64 n=64 k=64", "tile=128x64 cluster=2x1 b_load=copy", ErrorCode::kUnsupported,
       "shares B along m by bulk copies"},
      {"sm_100a", "gemm m=64 n=64 k=64", "tile=128x16 cluster=4x1", ErrorCode::kUnsupported, "whole groups of 8"},
      {"sm_90a", "gemm m=64 n=64 k=64", "tile=64x64 acc=1 scheduler=clc", ErrorCode::kUnsupported, "use static"},
      {"sm_100a", "conv n=1 h=14 w=14 c=128 k=64 r=3 s=3 pad=1",
       "tile=128x64 reuse=lane_shift d_store=rows cluster=2x1 ctas=2", ErrorCode::kUnsupported, "lanes of one CTA"},
      {"sm_90a", "gemm m=64 n=64 k=64 a=e4m3", "tile=64x64x64 acc=1", ErrorCode::kUnsupported, "from 128 to 512"},
      {"sm_90a", "gemm m=64 n=64 k=64 a=e4m3", "tile=64x64x256 acc=1", ErrorCode::kUnsupported, "sum=fast"},
      {"sm_90a", "gemm m=64 n=64 k=64 a=e4m3", "tile=64x256x128 acc=1", ErrorCode::kUnsupported, "at most 192"},
      {"sm_90a", "gemm m=64 n=64 k=64 a=e4m3 a_major=m", "tile=64x64x128 acc=1", ErrorCode::kUnsupported,
       "a_load=copy, which transposes"},
      {"sm_100a", "gemm m=64 n=64 k=64 a=e4m3 scale=block", "tile=64x64x256", ErrorCode::kUnsupported, "use k=128"},
      {"sm_100a", "gemm m=64 n=64 k=64 a=e4m3 scale=block", "tile=64x96x128", ErrorCode::kUnsupported,
       "16, 32, 64 or 128"},
      {"sm_100a", "gemm m=64 n=64 k=64 a=e4m3 d=e4m3", "tile=64x48x128", ErrorCode::kUnsupported, "multiple of 32"},
      {"sm_90a", "gemm m=64 n=64 k=200", "tile=64x64 acc=1 b_keep=3", ErrorCode::kUnsupported,
       "b_keep=3 blocks of B are fewer than the 4 of K; use b_keep=4"},
      {"sm_90a", "gemm m=64 n=72 k=64", "tile=64x64 acc=1 b_keep=1", ErrorCode::kUnsupported,
       "n=72 is more than tile n=64; use a wider tile, or raster=1"},
      {"sm_90a", "gemm m=64 n=64 k=64 batch=2", "tile=64x64 acc=1 b_keep=1", ErrorCode::kUnsupported,
       "and batch=2; use b_keep=0"},
      {"sm_90a", "gemm m=64 n=64 k=64", "tile=64x64 acc=1 b_keep=1 cluster=1x2", ErrorCode::kUnsupported,
       "use cluster=1x1"},
      {"sm_90a", "conv n=1 h=8 w=8 c=128 k=64 r=1 s=1 groups=2", "tile=64x64 acc=1 reuse=im2col b_keep=1",
       ErrorCode::kUnsupported, "and groups=2; use b_keep=0"},
      {"sm_90a", "conv n=1 h=8 w=8 c=3 k=64 r=3 s=3 pad=1",
       "tile=64x64 reuse=im2col a_load=copy b_load=copy d_store=rows acc=1 b_keep=1", ErrorCode::kUnsupported,
       "is always resident"},
      {"sm_90a", "conv n=1 h=8 w=8 c=128 k=64 r=3 s=3 pad=1 x=e4m3",
       "tile=64x64x128 acc=1 reuse=row_offset d_store=rows b_keep=9", ErrorCode::kUnsupported,
       "b_keep=0 or reuse=im2col"},
      {"sm_90a", "conv n=1 h=8 w=8 c=64 k=64 r=3 s=3 pad=1",
       "tile=64x64x16 raster=1 acc=1 b_load=copy b_keep=1 d_store=direct reuse=direct", ErrorCode::kUnsupported,
       "groups = c = k"},
      {"sm_90a", "conv n=1 h=8 w=8 c=64 k=128 r=3 s=3 pad=1 groups=64",
       "tile=64x64x16 raster=1 acc=1 b_load=copy b_keep=1 d_store=direct reuse=direct", ErrorCode::kUnsupported,
       "groups = c = k"},
      {"sm_90a", "conv_wgrad n=1 h=8 w=8 c=64 k=64 r=3 s=3 pad=1",
       "tile=64x16x128 raster=1 acc=1 d_store=direct reuse=direct", ErrorCode::kUnsupported,
       "groups = c = k, and their gradients; use reuse=none"},
      {"sm_90a", "conv_wgrad n=1 h=8 w=8 c=64 k=128 r=3 s=3 pad=1 groups=64",
       "tile=64x16x128 raster=1 acc=1 d_store=direct reuse=direct", ErrorCode::kUnsupported, "use reuse=none"},
      {"sm_90a", "conv_wgrad n=1 h=8 w=8 c=64 k=64 r=3 s=3 pad=1 groups=64",
       "tile=64x16x128 raster=1 acc=1 b_keep=1 d_store=direct reuse=direct", ErrorCode::kUnsupported, "use b_keep=0"},
      {"sm_90a", "conv_wgrad n=1 h=8 w=8 c=60 k=60 r=3 s=3 pad=1 groups=60",
       "tile=64x16x128 raster=1 acc=1 d_store=direct reuse=direct", ErrorCode::kUnsupported,
       "not multiples of 16 bytes; use reuse=none"},
      {"sm_90a", "conv_wgrad n=1 h=8 w=8 c=64 k=64 r=3 s=3 pad=1 groups=64 w_tap=4",
       "tile=64x16x128 raster=1 acc=1 d_store=direct reuse=direct", ErrorCode::kUnsupported, "one after the other"},
      {"sm_90a", "conv_wgrad n=1 h=8 w=8 c=64 k=64 r=3 s=3 pad=1 groups=64",
       "tile=128x16x128 raster=1 acc=1 d_store=direct reuse=direct", ErrorCode::kUnsupported,
       "use tile m=64 instead of 128"},
      {"sm_90a", "conv_wgrad n=1 h=8 w=8 c=64 k=64 r=3 s=3 pad=1 groups=64",
       "tile=64x64x128 raster=1 acc=1 d_store=direct reuse=direct", ErrorCode::kUnsupported,
       "use tile n=16 instead of 64"},
      {"sm_100a", "conv_wgrad n=1 h=8 w=8 c=64 k=64 r=3 s=3 pad=1 groups=64",
       "tile=64x16x60 raster=1 acc=1 d_store=direct reuse=direct", ErrorCode::kUnsupported,
       "use a tile k that is a multiple of 8 instead of 60"},
      {"sm_100a", "conv_wgrad n=1 h=8 w=8 c=64 k=64 r=12 s=12 pad=6 groups=64",
       "tile=64x144x128 raster=1 acc=1 d_store=direct reuse=direct", ErrorCode::kUnsupported, "at most 128 taps"},
      {"sm_100a", "conv_wgrad n=1 h=8 w=8 c=64 k=64 r=7 s=7 pad=3 groups=64",
       "tile=64x56x64 raster=1 acc=1 d_store=direct reuse=direct math=3", ErrorCode::kUnsupported,
       "use a smaller math="},
      {"sm_90a", "conv_dgrad n=1 h=8 w=8 c=64 k=64 r=3 s=3 pad=1 stride=3 groups=64",
       "tile=64x64x16 raster=1 acc=1 b_load=copy b_keep=1 d_store=direct reuse=direct", ErrorCode::kUnsupported,
       "use reuse=im2col"},
      {"sm_90a", "conv n=1 h=8 w=8 c=60 k=60 r=3 s=3 pad=1 groups=60",
       "tile=64x64x16 raster=1 acc=1 b_load=copy b_keep=1 d_store=direct reuse=direct", ErrorCode::kUnsupported,
       "not multiples of 16 bytes"},
      {"sm_90a", "conv n=1 h=8 w=8 c=64 k=64 r=3 s=3 pad=1 groups=64 x=e4m3",
       "tile=64x64x16 raster=1 acc=1 b_load=copy b_keep=1 d_store=direct reuse=direct", ErrorCode::kUnsupported,
       "f16 and bf16, not e4m3"},
      {"sm_90a", "conv n=1 h=8 w=40 c=64 k=64 r=1 s=17 groups=64",
       "tile=64x64x24 raster=1 acc=1 b_load=copy b_keep=1 d_store=direct reuse=direct", ErrorCode::kUnsupported,
       "more than 16"},
      {"sm_90a", "conv n=1 h=8 w=8 c=64 k=64 r=3 s=3 pad=1 groups=64 numerics=batch_invariant",
       "tile=64x64x16 raster=1 acc=1 b_load=copy b_keep=1 d_store=direct reuse=direct", ErrorCode::kUnsupported,
       "use reuse=im2col"},
      {"sm_90a", "conv n=1 h=8 w=8 c=64 k=64 r=3 s=3 pad=1 groups=64",
       "tile=64x64x16 raster=1 acc=1 b_load=copy b_keep=1 d_store=rows reuse=direct", ErrorCode::kUnsupported,
       "use d_store=direct"},
      {"sm_100a", "conv n=1 h=8 w=8 c=64 k=64 r=3 s=3 pad=1 groups=64",
       "tile=64x64x16 raster=1 acc=1 b_load=copy b_keep=1 d_store=direct reuse=direct split_k=2",
       ErrorCode::kUnsupported, "use split_k=1"},
      {"sm_90a", "conv n=1 h=8 w=8 c=64 k=64 r=3 s=3 pad=1 groups=64",
       "tile=64x64x64 raster=1 acc=1 b_load=copy b_keep=1 d_store=direct reuse=direct", ErrorCode::kUnsupported,
       "use tile k=16 instead of 64"},
      {"sm_90a", "conv n=1 h=8 w=8 c=64 k=64 r=3 s=3 pad=1 groups=64",
       "tile=64x128x16 raster=1 acc=1 b_load=copy b_keep=1 d_store=direct reuse=direct", ErrorCode::kUnsupported,
       "use tile n=64 instead of 128"},
      {"sm_90a", "conv n=1 h=8 w=8 c=64 k=64 r=3 s=3 pad=1 groups=64",
       "tile=80x64x16 raster=1 acc=1 b_load=copy b_keep=1 d_store=direct reuse=direct", ErrorCode::kUnsupported,
       "use a tile m that is a multiple of 32 instead of 80"},
      {"sm_100a", "conv n=1 h=8 w=8 c=64 k=64 r=3 s=3 pad=1 groups=64",
       "tile=256x64x16 raster=1 acc=1 b_load=copy b_keep=1 d_store=direct reuse=direct math=4", ErrorCode::kUnsupported,
       "registers a thread for 8 outputs"},
      {"sm_90a", "gemm m=64 n=64 k=64 batch=4", "tile=64x64 acc=1 merge_groups=2", ErrorCode::kUnsupported,
       "groups of channels of a convolution; use merge_groups=1"},
      {"sm_90a", "conv n=1 h=8 w=8 c=64 k=64 r=1 s=1 groups=8",
       "tile=64x64 acc=1 reuse=im2col b_load=pack merge_groups=3", ErrorCode::kUnsupported,
       "merge_groups=3 does not divide groups=8"},
      {"sm_90a", "conv n=1 h=8 w=8 c=64 k=64 r=1 s=1 groups=8", "tile=64x64 acc=1 reuse=im2col merge_groups=8",
       ErrorCode::kUnsupported, "use b_load=pack"},
      {"sm_90a", "conv n=1 h=8 w=8 c=64 k=64 r=1 s=1 groups=8 numerics=batch_invariant",
       "tile=64x64 acc=1 reuse=im2col b_load=pack merge_groups=8", ErrorCode::kUnsupported, "use merge_groups=1"},
      {"sm_90a", "conv_wgrad n=1 h=8 w=8 c=64 k=64 r=1 s=1 groups=8", "tile=64x64 acc=1 merge_groups=8",
       ErrorCode::kUnsupported, "use d_store=direct"},
      {"sm_90a", "conv n=1 h=8 w=8 c=64 k=64 r=3 s=3 pad=1 groups=64",
       "tile=64x64x16 raster=1 acc=1 b_load=copy b_keep=1 d_store=direct reuse=direct merge_groups=2",
       ErrorCode::kUnsupported, "use merge_groups=1"},
      {"sm_90a", "conv_dgrad n=1 h=8 w=8 c=3 k=64 r=7 s=7 pad=3 stride=2",
       "tile=64x16 acc=1 reuse=row_offset b_load=pack d_store=rows", ErrorCode::kUnsupported, "use d_store=direct"},
      {"sm_90a", "conv_dgrad n=1 h=8 w=8 c=3 k=64 r=7 s=7 pad=3 stride=2",
       "tile=64x16 acc=1 reuse=im2col b_load=tma d_store=direct", ErrorCode::kUnsupported, "use b_load=pack"},
      {"sm_90a", "conv_dgrad n=1 h=8 w=8 c=3 k=64 r=7 s=7 pad=3 stride=2 epilogue=bias_c",
       "tile=64x16 acc=1 reuse=row_offset b_load=pack d_store=direct", ErrorCode::kUnsupported, "use reuse=im2col"},
      {"sm_90a", "gemm m=64 n=256 k=1024", "tile=64x256 acc=1 b_keep=16", ErrorCode::kResourceExhausted,
       "bytes of shared memory"},
      {"sm_100a", "gemm m=64 n=64 k=64", "tile=128x256 stages=6", ErrorCode::kResourceExhausted,
       "bytes of shared memory"},
  };
  for (const auto& [target, problem, schedule, code, message] : cases) {
    const auto valid =
        ValidateSchedule(*ParseProblem(problem), ParseSchedule(schedule)->value, target::NamedTarget(target));
    ASSERT_FALSE(valid.has_value()) << schedule;
    EXPECT_EQ(valid.error().code, code) << schedule;
    EXPECT_NE(valid.error().message.find(message), std::string::npos) << valid.error().message;
  }
}

}  // namespace
}  // namespace laneshift::compiler
