// Programs with a sparse A: what their tiles and columns are, what is refused, and what the verifier rejects.
#include "compiler/build/block_operands.h"

#include <gtest/gtest.h>

#include "compiler/compile.h"
#include "compiler/plan/traffic.h"
#include "ir/program.h"

namespace laneshift::compiler {
namespace {

Result<ir::Program> Build(std::string_view problem, std::string_view schedule, std::string_view target = "sm_100a") {
  return BuildProgram(*ParseProblem(problem), ParseSchedule(schedule)->value, target::NamedTarget(target));
}
std::string Refusal(std::string_view problem, std::string_view schedule, std::string_view target = "sm_100a") {
  const auto program = Build(problem, schedule, target);
  return program ? "accepted" : program.error().message;
}

constexpr const char* kProblem = "gemm m=512 n=512 k=512 a=bf16 sparse=a";

TEST(BlockOperands, ASlotHasHalfOfAAndItsMetadata) {
  const auto program = Build(kProblem, "tile=128x64x256 stages=2 acc=1");
  ASSERT_TRUE(program.has_value()) << program.error().message;
  const ir::Channel& ring = program->channels[0];
  ASSERT_EQ(ring.tiles.size(), 4u);
  EXPECT_EQ(ring.tiles[0].layout.inner, 128) << "half of tile k";
  EXPECT_EQ(ring.tiles[1].layout.inner, 256);
  EXPECT_EQ(ring.tiles[2].layout.Bytes(), 2048);
  EXPECT_EQ(ring.tiles[3].layout, ring.tiles[2].layout);
  const ir::Channel& metadata = program->channels[1];
  EXPECT_EQ(metadata.name, "metadata");
  EXPECT_EQ(metadata.stages, 8) << "as many as the allocation of 128 columns has room for";
  EXPECT_EQ(metadata.columns, 8) << "four for each of two blocks";
  EXPECT_EQ(ir::ParseProgram(ir::PrintProgram(*program)).value(), *program);
}

// NVFP4: a block of K of 256 has eight factors of 32 elements and a block of metadata of 256.
TEST(BlockOperands, ASetHasScaleFactorsAndMetadata) {
  const auto program = Build("gemm m=512 n=512 k=512 a=e2m1 scale=nv sparse=a", "tile=128x192x256 stages=2 acc=1");
  ASSERT_TRUE(program.has_value()) << program.error().message;
  const ir::Channel& ring = program->channels[0];
  ASSERT_EQ(ring.tiles.size(), 6u);
  EXPECT_EQ(ring.tiles[0].layout.inner, 128) << "half of tile k";
  EXPECT_EQ(ring.tiles[2].layout.Bytes(), 2 * 512) << "two blocks of scale factors of A";
  EXPECT_EQ(ring.tiles[5].layout.Bytes(), 2048);
  EXPECT_EQ(program->channels[1].columns, 2 * 4 + 2 * 8 + 4);
  EXPECT_EQ(ir::ParseProgram(ir::PrintProgram(*program)).value(), *program);
}

// Eight instructions a block of K of 256, of 128 rows of 32 bytes and 64 columns of 64.
TEST(BlockOperands, AnInstructionReadsTwiceAsMuchOfBAndTakesNoLonger) {
  const Problem problem = *ParseProblem("gemm m=128 n=64 k=256 a=bf16 sparse=a");
  const Schedule schedule = ParseSchedule("tile=128x64x256 stages=2 acc=1")->value;
  const target::Target& target = target::NamedTarget("sm_100a");
  const Traffic traffic = CountTraffic(problem, schedule, *BuildProgram(problem, schedule, target), target, 148).all;
  EXPECT_EQ(traffic.mma_instructions, 8);
  EXPECT_EQ(traffic.mma_shared_bytes, 8 * (128 * 32 + 64 * 64));
  EXPECT_EQ(traffic.mma_clocks, 8 * 128 * 64 * 16 / target.mma_macs_per_clock);
  EXPECT_EQ(traffic.tensor_copies, 2);
  EXPECT_EQ(traffic.tensor_copy_bytes, 2 * 2048);
  EXPECT_EQ(traffic.bulk_bytes, 128 * 128 * 2 + 64 * 256 * 2 + 2 * 2048);
}

TEST(BlockOperands, SchedulesWithoutWholeBlocksAreRefused) {
  EXPECT_NE(Refusal(kProblem, "tile=128x128x64").find("tile k=64 is not whole blocks of metadata; use 128 or 256"),
            std::string::npos);
  EXPECT_NE(Refusal(kProblem, "tile=64x128x128").find("sparse=a needs tile m=128, not 64"), std::string::npos);
  EXPECT_NE(Refusal(kProblem, "tile=128x128x128 rows=n").find("only the first operand"), std::string::npos);
  EXPECT_NE(Refusal(kProblem, "tile=128x128x128 a_load=copy").find("by bulk copies"), std::string::npos);
  EXPECT_NE(Refusal(kProblem, "tile=128x128x128 b_keep=4").find("use b_keep=0"), std::string::npos);
  constexpr const char* kScaled = "gemm m=512 n=512 k=512 a=e4m3 scale=mx sparse=a";
  EXPECT_NE(Refusal(kScaled, "tile=128x128x128").find("whole blocks of scale factors; use 256 or 512"),
            std::string::npos);
  constexpr const char* kPairs = "gemm m=512 n=512 k=512 a=e2m1 scale=mx sparse=a";
  EXPECT_NE(Refusal(kPairs, "tile=128x128x256", "sm_100f").find("not for families of chips"), std::string::npos);
  EXPECT_NE(Refusal("gemm m=512 n=512 k=512 a=bf16 b_major=n sparse=a", "tile=128x80x128").find("multiple of 32"),
            std::string::npos);
  EXPECT_NE(Refusal(kProblem, "tile=128x128x128 acc=1 math=2", "sm_90a").find("tcgen05.mma.sp, which sm_90a has not"),
            std::string::npos);
}

// Instructions of 96 elements: eight of them read three spans of 128 bytes, in the time of 64 elements each.
TEST(BlockOperands, BlocksOf768AreMultiplied96ElementsAtATime) {
  const Problem problem = *ParseProblem("gemm m=128 n=64 k=768 a=e2m1 scale=nv");
  const Schedule schedule = ParseSchedule("tile=128x64x768 stages=2 acc=1")->value;
  const target::Target& target = target::NamedTarget("sm_103a");
  const auto program = BuildProgram(problem, schedule, target);
  ASSERT_TRUE(program.has_value()) << program.error().message;
  EXPECT_EQ(program->Depth(), 96);
  const Traffic traffic = CountTraffic(problem, schedule, *program, target, 148).all;
  EXPECT_EQ(traffic.mma_instructions, 8);
  EXPECT_EQ(traffic.mma_shared_bytes, 8 * (128 + 64) * 48);
  EXPECT_EQ(traffic.mma_clocks, 8 * 128 * 64 * 16 / target.mma_macs_per_clock);
  constexpr const char* kDense = "gemm m=512 n=512 k=1536 a=e2m1 scale=nv";
  EXPECT_NE(Refusal(kDense, "tile=128x128x768").find("of 96 elements of K, which sm_100a has not"), std::string::npos);
  EXPECT_NE(Refusal(kDense, "tile=128x128x384", "sm_103a").find("use 768"), std::string::npos);
  EXPECT_NE(Refusal("gemm m=512 n=48 k=1536 a=e2m1 scale=nv", "tile=128x48x768", "sm_103a").find("whole halves"),
            std::string::npos);
  EXPECT_NE(Refusal("gemm m=512 n=512 k=1536 a=e2m1 scale=nv sparse=a", "tile=128x128x768", "sm_103a").find("dense A"),
            std::string::npos);
}

// What the verifier says of the program after an edit.
template <typename Edit>
std::string VerdictOf(ir::Program program, const target::Target& target, const Edit& edit) {
  edit(program);
  const Status verified = ir::VerifyProgram(program, target);
  return verified ? "accepted" : verified.error().message;
}

TEST(BlockOperands, TheVerifierKnowsMetadata) {
  const target::Target& target = target::NamedTarget("sm_100a");
  const ir::Program program = Build(kProblem, "tile=128x128x128 stages=2 acc=1").value();
  ASSERT_TRUE(ir::VerifyProgram(program, target));
  const auto broken = [&](const auto& edit) { return VerdictOf(program, target, edit); };
  EXPECT_NE(broken([](ir::Program& p) { p.sparse_a = false; }).find("is not sparse"), std::string::npos);
  EXPECT_NE(broken([](ir::Program& p) { p.channels[1].columns = 8; }).find("does not hold 4 columns of metadata"),
            std::string::npos);
  EXPECT_NE(broken([](ir::Program& p) { p.channels[1].tmem_column = 2; }).find("begins at column 2"),
            std::string::npos);
  EXPECT_NE(broken([](ir::Program& p) { p.channels[0].tiles[2].layout.outer = 64; }), "accepted");
}

TEST(BlockOperands, TheVerifierKnowsMetadataNextToScaleFactors) {
  const target::Target& target = target::NamedTarget("sm_100a");
  const ir::Program program =
      Build("gemm m=512 n=512 k=512 a=e4m3 scale=mx sparse=a", "tile=128x128x256 stages=2 acc=1").value();
  ASSERT_TRUE(ir::VerifyProgram(program, target));
  const auto broken = [&](const auto& edit) { return VerdictOf(program, target, edit); };
  EXPECT_NE(broken([](ir::Program& p) { p.sparse_a = false; }), "accepted");
  EXPECT_NE(broken([](ir::Program& p) { p.channels[1].columns += 4; }).find("does not hold 8 columns of metadata"),
            std::string::npos);
}

}  // namespace
}  // namespace laneshift::compiler
