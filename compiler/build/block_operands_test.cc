// Programs with a sparse A: what their tiles and columns are, what is refused, and what the verifier rejects.
#include "compiler/build/block_operands.h"

#include <gtest/gtest.h>

#include "base/check.h"
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
}

// Without Tensor Memory tiles are of any rows that warpgroups have, and a block of K may be half of one of metadata.
TEST(BlockOperands, WarpgroupsReadMetadataFromTheSlot) {
  for (const char* schedule : {"tile=64x256x64 stages=4 acc=1", "tile=192x96x128 stages=2 acc=1"}) {
    const Schedule tile = ParseSchedule(schedule)->value;
    const auto program = Build(kProblem, schedule, "sm_90a");
    ASSERT_TRUE(program.has_value()) << program.error().message;
    const ir::Channel& ring = program->channels[0];
    ASSERT_EQ(ring.tiles.size(), 3u);
    EXPECT_EQ(ring.tiles[0].layout.inner, tile.tile_k / 2);
    EXPECT_EQ(ring.tiles[2].layout.Bytes(), tile.tile_m * 16);
    EXPECT_EQ(program->channels.size(), 1u);
    EXPECT_EQ(ir::ParseProgram(ir::PrintProgram(*program)).value(), *program);
  }
}

// Two instructions of 64 rows for a block of K of 64, four for one of 128.
TEST(BlockOperands, AWarpgroupsInstructionReadsTwiceAsMuchOfBAndTakesNoLonger) {
  const Problem problem = *ParseProblem("gemm m=128 n=64 k=256 a=bf16 sparse=a");
  const Schedule schedule = ParseSchedule("tile=128x64x64 stages=2 acc=1 math=2")->value;
  const target::Target& target = target::NamedTarget("sm_90a");
  const Traffic traffic = CountTraffic(problem, schedule, *BuildProgram(problem, schedule, target), target, 132).all;
  EXPECT_EQ(traffic.mma_instructions, 2 * 8);
  EXPECT_EQ(traffic.mma_shared_bytes, 2 * 8 * (64 * 32 + 64 * 64));
  EXPECT_EQ(traffic.mma_clocks, 2 * 8 * 64 * 64 * 16 / target.mma_macs_per_clock);
  EXPECT_EQ(traffic.bulk_bytes, 128 * 128 * 2 + 64 * 256 * 2 + 4 * 2048) << "each half comes with the whole block";
}

TEST(BlockOperands, SchedulesOfWarpgroupsAreRefused) {
  const auto refusal = [](std::string_view problem, std::string_view schedule) {
    return Refusal(problem, schedule, "sm_90a");
  };
  EXPECT_NE(refusal(kProblem, "tile=128x128x256 acc=1 math=2 stages=2 rows=n").find("only the first operand"),
            std::string::npos);
  EXPECT_NE(refusal(kProblem, "tile=128x128x32 acc=1 math=2").find("or half of one; use 64, 128 or 256"),
            std::string::npos);
  constexpr const char* kBytes = "gemm m=512 n=512 k=512 a=s8 sparse=a";
  EXPECT_NE(refusal(kBytes, "tile=128x128x64 acc=1 math=2").find("whole blocks of metadata; use 128 or 256"),
            std::string::npos);
  EXPECT_NE(refusal(kProblem, "tile=128x128x128 acc=1 math=2 a_load=copy").find("use a_load=tma or pack"),
            std::string::npos);
  EXPECT_NE(refusal("gemm m=512 n=512 k=512 a=s8 a_major=m sparse=a", "tile=128x128x128 acc=1 math=2 a_load=copy")
                .find("reads s8 along k; use a_major=k"),
            std::string::npos);
  constexpr const char* kPromoted = "gemm m=512 n=512 k=512 a=e4m3 sparse=a";
  EXPECT_EQ(refusal(kPromoted, "tile=128x128x256 acc=1 math=2 stages=2"), "accepted");
  EXPECT_NE(refusal(kPromoted, "tile=128x64x512 acc=1 math=2 stages=2").find("use k=256, or sum=fast"),
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

// The first op of a kind, of any role.
ir::Op* Find(std::vector<ir::Op>& body, ir::OpKind kind) {
  for (ir::Op& op : body) {
    if (op.kind == kind) return &op;
    if (ir::Op* inside = Find(op.body, kind)) return inside;
  }
  return nullptr;
}
ir::Op& Find(ir::Program& program, ir::OpKind kind) {
  for (ir::Role& role : program.roles) {
    if (ir::Op* op = Find(role.body, kind)) return *op;
  }
  LS_CHECK(false, "no role has the op");
}

TEST(BlockOperands, TheVerifierKnowsMetadataInRegisters) {
  const target::Target& target = target::NamedTarget("sm_90a");
  for (const char* schedule : {"tile=128x128x64 stages=2 acc=1 math=2", "tile=128x128x128 stages=2 acc=1 math=2"}) {
    const ir::Program program = Build(kProblem, schedule, "sm_90a").value();
    ASSERT_TRUE(ir::VerifyProgram(program, target));
    const auto broken = [&](const auto& edit) { return VerdictOf(program, target, edit); };
    EXPECT_NE(broken([](ir::Program& p) { p.sparse_a = false; }), "accepted");
    EXPECT_NE(broken([](ir::Program& p) { p.row_axis = ir::Axis::kN; }), "accepted");
    EXPECT_NE(broken([](ir::Program& p) { p.channels[0].tiles[2].layout.outer = 64; }), "accepted");
    EXPECT_NE(broken([](ir::Program& p) {
                Find(p, ir::OpKind::kReadMetadata).attrs = ir::ReadMetadataAttrs{.tile = 1};
              }).find("tile b has no metadata of 128 rows"),
              std::string::npos);
    EXPECT_NE(broken([](ir::Program& p) {
                Find(p, ir::OpKind::kReadMetadata).attrs = ir::ReadMetadataAttrs{.tile = 3};
              }).find("channel ab has no tile 3"),
              std::string::npos);
    EXPECT_NE(broken([](ir::Program& p) {
                Find(p, ir::OpKind::kMmaRegisters).operands.pop_back();
              }).find("an MMA has one value of metadata where A is sparse"),
              std::string::npos);
    EXPECT_NE(broken([](ir::Program& p) {
                std::vector<ir::ValueId>& operands = Find(p, ir::OpKind::kReadMetadata).operands;
                const ir::ValueId number = Find(p, ir::OpKind::kLess).operands[1];
                operands.size() == 1 ? operands.push_back(number) : operands.pop_back();
              }).find("of metadata, and its number is"),
              std::string::npos);
  }
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
