#include "compiler/plan/packing.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "compiler/contraction/bindings.h"
#include "compiler/legality/tma_addressable.h"

namespace laneshift::compiler {
namespace {

Schedule Decided(const char* text) { return ParseSchedule(text)->value; }

TEST(PackedBytes, CountsRowsAtWholeLines) {
  const Problem problem = *ParseProblem("gemm m=100 n=60 k=65 batch=3 b_major=n");
  // Rows of 65 and of 60 elements become 128 of 2 bytes and 64.
  EXPECT_EQ(PackedBytes(ContractionOf(problem), Decided("a_load=pack"), ir::Operand::kA), 3 * 100 * 128 * 2);
  EXPECT_EQ(PackedBytes(ContractionOf(problem), Decided("b_load=pack"), ir::Operand::kB), 3 * 65 * 64 * 2);
}

TEST(BytesToPack, CountsWhatIsRead) {
  const Problem problem = *ParseProblem("gemm m=100 n=60 k=65 batch=3 lda=99");
  EXPECT_EQ(BytesToPack(problem, Decided("a_load=pack"), ir::Operand::kA), 3 * 100 * 65 * 2);
  EXPECT_EQ(BytesToPack(problem, Decided("a_load=pack"), ir::Operand::kB), 0);
}

// The TMA reaches what the main kernel reads; and the kernel is that of a problem stated with this layout.
TEST(ProductOf, IsTheProductOfAlignedOperands) {
  for (const target::Target& target : target::Targets()) {
    const Problem odd = *ParseProblem("gemm m=129 n=72 k=65 a_major=m align_b=2");
    const Problem even = *ParseProblem("gemm m=128 n=72 k=64 a_major=m");
    const Schedule packed = Decided("tile=64x64x64 acc=1 a_load=pack b_load=pack");
    const Schedule bulk = Decided("tile=64x64x64 acc=1");
    EXPECT_FALSE(BuildProgram(odd, bulk, target));
    const PackedProduct product = ProductOf(ContractionOf(odd, packed), packed);
    EXPECT_EQ(product.schedule, bulk);
    for (const ir::Operand operand : {ir::Operand::kA, ir::Operand::kB}) {
      EXPECT_TRUE(CheckTmaAddressable(product.contraction, product.schedule, operand)) << ir::OperandName(operand);
    }
    const auto program = BuildProgram(odd, packed, target);
    ASSERT_TRUE(program) << program.error().message;
    EXPECT_EQ(KernelKey(*program), KernelKey(*BuildProgram(even, bulk, target)));
    for (const BoundParam& bound : BindParams(odd, packed, *program)) {
      const int64_t pitch = bound.param.binding == ir::Binding::kMapA ? 192 : 128;
      const bool packed_map = bound.param.binding == ir::Binding::kMapA || bound.param.binding == ir::Binding::kMapB;
      if (packed_map) {
        EXPECT_EQ(bound.tensor.strides[0], pitch) << ir::PrintBinding(bound.param.binding);
      }
    }
  }
}

// BLESS=1 rewrites it.
TEST(BuildPack, IsTheGoldenProgram) {
  const Problem problem = *ParseProblem("gemm m=9 n=9 k=9 b_major=n");
  const auto program =
      BuildPack(ContractionOf(problem), Decided("a_load=pack b_load=pack"), target::NamedTarget("sm_90a"));
  const std::string text = ir::PrintProgram(*program);
  const std::string path = std::string(LANESHIFT_SOURCE_DIR) + "/tests/golden/ir/pack_sm_90a_lowered.tir";
  if (std::getenv("BLESS") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  EXPECT_EQ(text, std::string((std::istreambuf_iterator<char>(file)), {})) << path;
}

TEST(BuildPack, KnowsNeitherSizesNorTypes) {
  for (const target::Target& target : target::Targets()) {
    const auto key = [&](const char* problem, const char* schedule) {
      const Problem parsed = *ParseProblem(problem);
      return KernelKey(*BuildPack(ContractionOf(parsed), Decided(schedule), target));
    };
    const std::string halves = key("gemm m=9 n=9 k=9", "b_load=pack");
    EXPECT_EQ(key("gemm m=900 n=77 k=1001 batch=4 a=f16 a_major=m", "b_load=pack"), halves);
    EXPECT_NE(key("gemm m=9 n=9 k=9", "a_load=pack b_load=pack"), halves);
    EXPECT_NE(key("gemm m=9 n=9 k=9 b_major=n", "b_load=pack"), halves);
    EXPECT_NE(key("gemm m=9 n=9 k=9 a=e4m3", "b_load=pack"), halves);
    EXPECT_EQ(key("gemm m=9 n=9 k=9 a=e4m3 b=e5m2", "b_load=pack"), key("gemm m=9 n=9 k=9 a=e4m3", "b_load=pack"));
  }
}

// A CTA copies a tile of each operand; only of huge operands it copies several.
TEST(PackLaunch, HasACtaForEachTileOfTheLargerOperand) {
  const target::Target& target = target::NamedTarget("sm_90a");
  const auto grid = [&](const char* problem, const char* schedule) {
    const Problem parsed = *ParseProblem(problem);
    const Schedule decided = Decided(schedule);
    const Contraction contraction = ContractionOf(parsed);
    return PackLaunch(contraction, decided, *BuildPack(contraction, decided, target), 10).grid;
  };
  EXPECT_EQ(grid("gemm m=33 n=100 k=257", "a_load=pack"), 3u * 2);
  EXPECT_EQ(grid("gemm m=33 n=100 k=257 batch=2", "a_load=pack b_load=pack"), 7u * 2 * 2);
  EXPECT_EQ(grid("gemm m=16384 n=1 k=16383", "a_load=pack"), 640u);
}

TEST(CheckPacks, RefusesByName) {
  const struct {
    const char *target, *problem, *schedule, *message;
  } cases[] = {
      {"sm_90a", "gemm m=64 n=64 k=64 a=e4m3 a_major=m", "tile=64x64x128 acc=1 a_load=pack",
       "a_load=copy, which transposes, or a_major=k"},
      {"sm_90a", "gemm m=64 n=64 k=64 a=e4m3 b_major=n", "tile=64x64x128 acc=1 b_load=pack", "or b_major=k"},
      {"sm_100a", "conv h=4 w=9 c=64 k=64 r=1 s=3 x_row=704", "reuse=im2col a_load=pack",
       "there are gaps between rows, planes or images of x; pack its images"},
      {"sm_90a", "conv_dgrad w=9 c=64 k=64 s=3", "reuse=im2col acc=1 a_load=copy",
       "a separate kernel packs it so; use b_load=pack"},
      {"sm_90a", "conv_dgrad w=9 c=64 k=64 s=3 y=e4m3 w=e4m3", "reuse=im2col acc=1", "use b_load=pack"},
      {"sm_90a", "conv_dgrad w=9 c=64 k=64 s=3 stride=2", "reuse=row_offset b_load=pack", "use reuse=im2col"},
      {"sm_90a", "conv_dgrad w=9 c=64 k=64 s=3 stride=2 epilogue=sum_c numerics=deterministic",
       "reuse=im2col b_load=pack", "use numerics=default"},
      {"sm_90a", "conv_wgrad w=9 c=64 k=64 s=3", "tile=64x64x64 acc=1 a_load=copy", "use a_load=tma or pack"},
      {"sm_90a", "conv_wgrad w=9 c=64 k=64 s=3 x=e4m3", "tile=64x64x128 acc=1", "use f16 or bf16"},
      {"sm_90a", "conv_wgrad w=9 c=12 k=32 s=3 groups=2", "tile=64x64x64 acc=1 b_load=pack d_store=direct",
       "use groups of whole 16 bytes"},
      {"sm_100a", "conv w=9 c=64 k=64 s=3", "reuse=im2col b_load=pack", "of a convolution use b_load=tma or copy"},
  };
  for (const auto& [target, problem, schedule, message] : cases) {
    const auto valid = ValidateSchedule(*ParseProblem(problem), Decided(schedule), target::NamedTarget(target));
    ASSERT_FALSE(valid) << schedule;
    EXPECT_EQ(valid.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(valid.error().message.find(message), std::string::npos) << valid.error().message;
  }
}

}  // namespace
}  // namespace laneshift::compiler
