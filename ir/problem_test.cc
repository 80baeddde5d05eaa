#include "laneshift/problem.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "ir/stored_tensor.h"

namespace laneshift {
namespace {

GemmProblem ParseGemm(std::string_view text) {
  auto problem = ParseProblem(text);
  EXPECT_TRUE(problem.has_value()) << (problem ? "" : problem.error().message);
  return problem ? std::get<GemmProblem>(*problem) : GemmProblem{};
}

TEST(Problem, TypesFollowA) {
  const GemmProblem p = ParseGemm("gemm m=3 n=5 k=7 a=f16");
  EXPECT_EQ(p.b, DataType::kF16);
  EXPECT_EQ(p.d, DataType::kF16);
  EXPECT_EQ(p.c, DataType::kF16);
}

TEST(Problem, EightBitOperandsGiveWiderResults) {
  const GemmProblem p = ParseGemm("gemm m=3 n=5 k=7 a=e4m3");
  EXPECT_EQ(p.b, DataType::kE4m3);
  EXPECT_EQ(p.d, DataType::kBf16);
  EXPECT_EQ(p.c, DataType::kBf16);
  EXPECT_EQ(p.sum, SumPrecision::kF32);
  // What is added to a D of 8 bits is not of 8 bits itself.
  EXPECT_EQ(ParseGemm("gemm m=3 n=5 k=7 a=e4m3 b=e5m2 d=e5m2").c, DataType::kBf16);
}

TEST(Problem, PitchesAndStridesArePacked) {
  const GemmProblem p = ParseGemm("gemm m=3 n=5 k=7 batch=2 a_major=m lda=8");
  EXPECT_EQ(p.lda, 8);
  EXPECT_EQ(p.ldb, 7);
  EXPECT_EQ(p.ldd, 5);
  EXPECT_EQ(p.stride_a, 7 * 8);
  EXPECT_EQ(p.stride_b, 5 * 7);
}

TEST(Problem, PrintsOnlyWhatIsNotDefault) {
  EXPECT_EQ(PrintProblem(*ParseProblem("gemm k=64 n=32 m=16")), "gemm m=16 n=32 k=64 a=bf16 b=bf16 d=bf16");
  const std::string full =
      "gemm m=16 n=32 k=64 batch=3 a=f16 b=f16 c=f32 d=f16 a_major=m b_major=n lda=24 ldb=40 ldc=33 ldd=34 "
      "stride_a=2000 stride_b=3000 stride_c=1000 stride_d=1001 alpha=0.5 beta=-1.25 bias=n align_a=2 align_d=4";
  EXPECT_EQ(PrintProblem(*ParseProblem(full)), full);
}

TEST(Problem, EveryPrintedFormParsesBack) {
  for (const char* text :
       {"gemm m=1 n=1 k=1", "gemm m=7 n=129 k=1000 batch=2 beta=1 bias=m d=f32", "gemm m=2 n=2 k=2 alpha=0.1",
        "gemm m=2 n=2 k=2 a=e4m3 b=e5m2 d=e4m3 c=e4m3 beta=1 sum=fast scale=block", "gemm m=2 n=2 k=2 a=e5m2",
        "conv w=9 c=8 k=8 s=3 x=e4m3 y=e4m3 z=f32 beta=1 sum=fast scale=tensor"}) {
    const Problem problem = *ParseProblem(text);
    EXPECT_EQ(*ParseProblem(PrintProblem(problem)), problem) << text;
  }
}

TEST(Problem, GroupsShareAAndDAndHaveTheirOwnB) {
  const std::string text = "grouped_gemm groups=3 m=10 n=6 k=4 a=f16 b=f16 d=f32 bias=n epilogue=swiglu+scale_n";
  const Problem problem = *ParseProblem(text);
  EXPECT_EQ(PrintProblem(problem), text);
  const auto& p = std::get<GroupedGemmProblem>(problem);
  EXPECT_EQ(p.lda, 4);
  EXPECT_EQ(p.ldd, 3);
  EXPECT_EQ(p.stride_b, 24);
  EXPECT_EQ(ir::Stored(problem, ir::OperandRole::kA).Shape(), (std::vector<int64_t>{10, 4}));
  EXPECT_EQ(ir::Stored(problem, ir::OperandRole::kB).Shape(), (std::vector<int64_t>{3, 6, 4}));
  EXPECT_EQ(ir::Stored(problem, ir::OperandRole::kD).Shape(), (std::vector<int64_t>{10, 3}));
  EXPECT_EQ(ir::Stored(problem, ir::OperandRole::kBias).Shape(), (std::vector<int64_t>{3, 6}));
  EXPECT_EQ(ir::Stored(problem, ir::OperandRole::kGroupOffsets).Shape(), (std::vector<int64_t>{4}));
  EXPECT_EQ(ir::EpilogueTensors(problem)[0].tensor.Shape(), (std::vector<int64_t>{3, 3})) << "after the gate";
  EXPECT_EQ(ProblemFlops(problem), 2.0 * 10 * 6 * 4);
  EXPECT_EQ(ProblemBytes(problem), 10 * 4 * 2 + 3 * 24 * 2 + 10 * 3 * 4 + 3 * 6 * 4 + 4 * 4 + 3 * 3 * 4);
  const std::string masked = "grouped_gemm groups=3 m=10 n=6 k=4 a=f16 b=f16 d=f32 layout=masked bias=m";
  const Problem rooms = *ParseProblem(masked);
  EXPECT_EQ(PrintProblem(rooms), masked);
  EXPECT_EQ(ir::Stored(rooms, ir::OperandRole::kA).Shape(), (std::vector<int64_t>{30, 4}));
  EXPECT_EQ(ir::Stored(rooms, ir::OperandRole::kBias).Shape(), (std::vector<int64_t>{30}));
  EXPECT_EQ(ir::Stored(rooms, ir::OperandRole::kGroupSizes).Shape(), (std::vector<int64_t>{3}));
  EXPECT_FALSE(ir::Uses(rooms, ir::OperandRole::kGroupOffsets));
  EXPECT_EQ(ProblemFlops(rooms), 2.0 * 30 * 6 * 4);
  const std::string parts =
      "grouped_gemm groups=3 m=10 n=6 k=40 a=f16 b=f16 d=f32 layout=k bias=n epilogue=swiglu+scale_n";
  const Problem weights = *ParseProblem(parts);
  EXPECT_EQ(PrintProblem(weights), parts);
  EXPECT_EQ(std::get<GroupedGemmProblem>(weights).lda, 10);
  EXPECT_EQ(std::get<GroupedGemmProblem>(weights).stride_d, 30);
  EXPECT_EQ(ir::Stored(weights, ir::OperandRole::kA).Shape(), (std::vector<int64_t>{40, 10}));
  EXPECT_EQ(ir::Stored(weights, ir::OperandRole::kB).Shape(), (std::vector<int64_t>{40, 6}));
  EXPECT_EQ(ir::Stored(weights, ir::OperandRole::kD).Shape(), (std::vector<int64_t>{3, 10, 3}));
  EXPECT_EQ(ir::Stored(weights, ir::OperandRole::kBias).Shape(), (std::vector<int64_t>{6}));
  EXPECT_EQ(ir::Stored(weights, ir::OperandRole::kGroupOffsets).Shape(), (std::vector<int64_t>{4}));
  EXPECT_EQ(ir::EpilogueTensors(weights)[0].tensor.Shape(), (std::vector<int64_t>{3})) << "one for all groups";
  EXPECT_EQ(ProblemFlops(weights), 2.0 * 10 * 6 * 40) << "every row of A and B is in one group";
  EXPECT_EQ(ProblemBytes(weights), 40 * 16 * 2 + 3 * 10 * 3 * 4 + 6 * 4 + 4 * 4 + 3 * 4);
  const std::string apart =
      "grouped_gemm groups=3 m=10 n=6 k=40 a=bf16 b=bf16 d=bf16 layout=k lda=16 ldb=7 ldd=9 stride_c=70 stride_d=100 "
      "beta=1";
  EXPECT_EQ(PrintProblem(*ParseProblem(apart)), apart);
  const std::string padded =
      "grouped_gemm groups=3 m=10 n=6 k=4 a=bf16 b=bf16 d=bf16 b_major=n lda=8 ldb=7 ldd=9 stride_b=40 alpha=2 beta=1";
  EXPECT_EQ(PrintProblem(*ParseProblem(padded)), padded);
}

TEST(Problem, RowsByIndexHaveTheirOwnNumberInMemory) {
  const std::string text =
      "grouped_gemm groups=3 m=10 n=6 k=4 a=f16 b=f16 d=f16 rows=gather+scatter a_rows=5 d_rows=12 beta=1 bias=m "
      "epilogue=swiglu+scale_m:f32+sum_n";
  const Problem problem = *ParseProblem(text);
  EXPECT_EQ(PrintProblem(problem), text);
  EXPECT_EQ(ir::Stored(problem, ir::OperandRole::kA).Shape(), (std::vector<int64_t>{5, 4}));
  EXPECT_EQ(ir::Stored(problem, ir::OperandRole::kC).Shape(), (std::vector<int64_t>{12, 6}));
  EXPECT_EQ(ir::Stored(problem, ir::OperandRole::kD).Shape(), (std::vector<int64_t>{12, 3}));
  EXPECT_EQ(ir::Stored(problem, ir::OperandRole::kBias).Shape(), (std::vector<int64_t>{12}));
  EXPECT_EQ(ir::Stored(problem, ir::OperandRole::kRowIndicesA).Shape(), (std::vector<int64_t>{10}));
  EXPECT_EQ(ir::Stored(problem, ir::OperandRole::kRowIndicesD).Shape(), (std::vector<int64_t>{10}));
  EXPECT_EQ(ir::EpilogueTensors(problem)[0].tensor.Shape(), (std::vector<int64_t>{12})) << "a weight for a row of D";
  EXPECT_EQ(ProblemFlops(problem), 2.0 * 10 * 6 * 4);
  const Problem masked = *ParseProblem("grouped_gemm groups=3 m=10 n=6 k=4 layout=masked rows=gather");
  EXPECT_EQ(PrintProblem(masked), "grouped_gemm groups=3 m=10 n=6 k=4 a=bf16 b=bf16 d=bf16 layout=masked rows=gather");
  EXPECT_EQ(ir::Stored(masked, ir::OperandRole::kRowIndicesA).Shape(), (std::vector<int64_t>{30}));
  EXPECT_EQ(ir::Stored(masked, ir::OperandRole::kA).Shape(), (std::vector<int64_t>{30, 4}));
  EXPECT_FALSE(ir::Uses(masked, ir::OperandRole::kRowIndicesD));
}

TEST(Problem, ScaleFactorsOfRowsAndPackedOnes) {
  const Problem rows = *ParseProblem("gemm m=10 n=6 k=16 batch=2 a=s8 d=bf16 scale=row");
  EXPECT_EQ(ir::Stored(rows, ir::OperandRole::kScaleA).Shape(), (std::vector<int64_t>{2, 10}));
  EXPECT_EQ(ir::Stored(rows, ir::OperandRole::kScaleB).Shape(), (std::vector<int64_t>{2, 6}));
  const Problem experts = *ParseProblem("grouped_gemm groups=3 m=10 n=6 k=16 a=e4m3 scale=row rows=gather a_rows=4");
  EXPECT_EQ(ir::Stored(experts, ir::OperandRole::kScaleA).Shape(), (std::vector<int64_t>{4}));
  EXPECT_EQ(ir::Stored(experts, ir::OperandRole::kScaleB).Shape(), (std::vector<int64_t>{3, 6}));
  const std::string text = "gemm m=10 n=300 k=700 a=e4m3 b=e4m3 d=bf16 scale=block scale_type=ue8m0";
  const Problem packed = *ParseProblem(text);
  EXPECT_EQ(PrintProblem(packed), text);
  EXPECT_EQ(ir::Stored(packed, ir::OperandRole::kScaleA).Shape(), (std::vector<int64_t>{2, 40})) << "two words a row";
  EXPECT_EQ(ir::Stored(packed, ir::OperandRole::kScaleB).Shape(), (std::vector<int64_t>{3, 16}));
}

struct ProblemLine {
  const char* text;
  const char* message;
};

class BadProblem : public testing::TestWithParam<ProblemLine> {};

TEST_P(BadProblem, IsRefusedByName) {
  const auto problem = ParseProblem(GetParam().text);
  ASSERT_FALSE(problem.has_value());
  EXPECT_EQ(problem.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(problem.error().message.find(GetParam().message), std::string::npos) << problem.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    All, BadProblem,
    testing::Values(
        ProblemLine{"", "empty problem"}, ProblemLine{"gem m=1", "unknown kind of problem 'gem'"},
        ProblemLine{"gemm m=0 n=1 k=1", "m=0 is out of range"},
        ProblemLine{"gemm m=1 n=-4 k=1", "n=-4 is out of range"}, ProblemLine{"gemm m=1 n=1", "key 'k' is missing"},
        ProblemLine{"gemm m=1 n=1 k=1 m=2", "given twice"}, ProblemLine{"gemm m=1 n=1 k=1 aa=bf16", "did you mean 'a'"},
        ProblemLine{"gemm m=1 n=1 k=1 a=int4", "known types"}, ProblemLine{"gemm m=1 n=1 k=1x", "not a whole number"},
        ProblemLine{"gemm m=1 n=1 k=9 lda=8", "lda=8 is below the row of 9"},
        ProblemLine{"gemm m=339483903 n=8 k=4 ldd=1099511627775", "more than 2^46 elements"},
        ProblemLine{"gemm m=1 n=1 k=1 batch=2147483647 stride_a=1099511627775", "more than 2^46 elements"},
        ProblemLine{"gemm m=4 n=1 k=9 batch=2 stride_a=8", "overlap"},
        ProblemLine{"gemm m=1 n=1 k=1 a=f16 b=bf16",
                    "both f16, both bf16, both tf32, each e4m3, e5m2, e2m3, e3m2 or e2m1, or each u8 or s8"},
        ProblemLine{"gemm m=1 n=1 k=1 a=e4m3 b=f16", "each e4m3, e5m2, e2m3"},
        ProblemLine{"gemm m=1 n=1 k=1 a=f32", "f32 in memory is a=tf32"},
        ProblemLine{"gemm m=1 n=1 k=1 a=e4m3 sum=exact", "use f32, fast"},
        ProblemLine{"gemm m=1 n=1 k=1 a=f16 sum=fast", "sum=fast is for e4m3 and e5m2"},
        ProblemLine{"gemm m=1 n=1 k=1 a=ue8m0", "a=ue8m0 is not a type"},
        ProblemLine{"gemm m=1 n=128 k=128 a=e4m3 scale=block epilogue=swiglu:halves", "scale=block does not support"},
        ProblemLine{"grouped_gemm groups=2 m=9 n=64 k=64 a=e2m1 scale=nv epilogue=swiglu:halves",
                    "a grouped_gemm with scale=nv reads the scale factors of B where they lie"},
        ProblemLine{"grouped_gemm groups=2 m=8 n=8 k=8 rows=shuffle",
                    "rows=shuffle says nothing of rows; use none, gather"},
        ProblemLine{"grouped_gemm groups=2 m=8 n=8 k=8 a_rows=4", "a_rows is for rows=gather"},
        ProblemLine{"grouped_gemm groups=2 m=8 n=8 k=8 rows=gather d_rows=4", "d_rows is for rows=scatter"},
        ProblemLine{"grouped_gemm groups=2 m=8 n=8 k=8 rows=gather a_rows=4294967296",
                    "a_rows=4294967296 is out of range"},
        ProblemLine{"grouped_gemm groups=2 m=8 n=8 k=8 layout=k rows=gather",
                    "rows=gather is for groups of rows; with layout=k groups are parts of K"},
        ProblemLine{"grouped_gemm groups=2 m=8 n=8 k=128 a=e4m3 scale=mx rows=gather",
                    "rows=gather would take the blocks of 128 scale factors apart that scale=mx reads"},
        ProblemLine{"gemm m=8 n=8 k=8 scale=row",
                    "scale=row is for e4m3, e5m2, s8 and u8; for bf16 use "
                    "epilogue=scale_m+scale_n"},
        ProblemLine{"gemm m=8 n=8 k=8 a=s8 scale=row", "d=s32 is the sum as it is, without scale factors"},
        ProblemLine{"gemm m=8 n=8 k=8 a=s8 d=f32 scale=tensor", "scale=tensor is for e4m3 and e5m2; for s8 use alpha="},
        ProblemLine{"conv w=9 c=16 k=16 s=3 x=e4m3 scale=row", "scale=row is for gemm"},
        ProblemLine{"gemm m=8 n=8 k=8 a=e4m3 scale=tensor scale_type=ue8m0",
                    "scale_type=ue8m0 is for scale=block, not tensor; leave it out"},
        ProblemLine{"gemm m=8 n=8 k=8 a=e4m3 scale=block scale_type=e8m0",
                    "scale_type=e8m0 is not a type of the scale factors of scale=block"},
        ProblemLine{"gemm m=1 n=1 k=1 a=e4m3 scale=tensor scale_layout=linear",
                    "scale_layout=linear is for scale=mx and nv, not tensor"},
        ProblemLine{"gemm m=1 n=1 k=1 a=e4m3 scale=mx scale_layout=row",
                    "scale_layout=row is not a layout of scale factors; use 128x4 (blocks of 128 rows x 4 factors) or "
                    "linear (row-major)"},
        ProblemLine{"gemm m=1 n=1 k=1 a=s8 scale=mx", "a=s8 with b=s8 is not supported with scale=mx"},
        ProblemLine{"gemm m=1 n=1 k=1 a=s8 scale=tensor", "scale=tensor is for e4m3 and e5m2; for s8 use alpha="},
        ProblemLine{"conv w=9 c=8 k=8 s=3 x=e4m3 w=e4m3 scale=mx", "scale=mx is for gemm"},
        ProblemLine{"gemm m=1 n=1 k=2 a=e2m1 b=bf16", "each e4m3, e5m2, e2m3, e3m2 or e2m1"},
        ProblemLine{"gemm m=1 n=1 k=4 a=e3m2 b=s8 scale=mx",
                    "not supported with scale=mx; a and b are each e4m3, e5m2, e2m3, e3m2 or e2m1"},
        ProblemLine{"gemm m=1 n=1 k=2 a=e4m3 scale=nv", "not supported with scale=nv; a and b are both e2m1"},
        ProblemLine{"gemm m=1 n=1 k=2 a=e2m1 scale=block", "scale=block is for e4m3 and e5m2; for e2m1"},
        ProblemLine{"gemm m=1 n=1 k=4 a=e4m3 b=e3m2 scale=block", "scale=block is for e4m3 and e5m2; for e3m2"},
        ProblemLine{"gemm m=1 n=1 k=4 a=e4m3 b=e3m2 sum=fast", "sums of e3m2 are f32; leave it out"},
        ProblemLine{"gemm m=1 n=1 k=6 a=e3m2", "k=6 elements of e3m2 are not whole bytes; use a multiple of 4"},
        ProblemLine{"gemm m=1 n=1 k=8 ldb=10 a=e2m3", "ldb=10 elements of e2m3 are not whole bytes"},
        ProblemLine{"gemm m=4 n=1 k=8 b=e2m3 b_major=n a=e4m3", "b=e2m3 is packed along k; use b_major=k"},
        ProblemLine{"gemm m=1 n=1 k=8 a=e2m3 d=e2m3", "is a type of operands, not of results"},
        ProblemLine{"gemm m=1 n=1 k=8 a=fp6", "did you mean e3m2?"},
        ProblemLine{"conv w=9 c=128 k=8 s=3 x=e3m2", "x=e3m2 is for gemm and grouped_gemm"},
        ProblemLine{"gemm m=1 n=1 k=3 a=e2m1 scale=nv", "k=3 elements of e2m1 are not whole bytes"},
        ProblemLine{"gemm m=1 n=1 k=2 lda=33 a=e2m1 scale=nv", "lda=33 elements of e2m1 are not whole bytes"},
        ProblemLine{"gemm m=2 n=1 k=2 a=e2m1 a_major=m scale=nv", "a=e2m1 is packed along k; use a_major=k"},
        ProblemLine{"gemm m=1 n=1 k=2 a=e2m1 sum=fast scale=nv", "sum=fast is for e4m3 and e5m2"},
        ProblemLine{"gemm m=1 n=1 k=2 a=e2m1 d=e2m1 scale=nv", "d=e2m1 needs scale factors of blocks of D"},
        ProblemLine{"gemm m=1 n=32 k=2 c=e2m1 beta=1", "c=e2m1 is a type of operands, not of results"},
        ProblemLine{"gemm m=1 n=32 k=2 d=e2m1 d_scale=nv epilogue=residual:e2m1", "has an operand of e2m1"},
        ProblemLine{"gemm m=1 n=1 k=2 d_scale=mx", "d_scale=mx quantises D to e4m3, e5m2 or e2m1, not bf16"},
        ProblemLine{"gemm m=1 n=1 k=2 d=e5m2 d_scale=nv", "d_scale=nv quantises D to e2m1, not e5m2"},
        ProblemLine{"gemm m=1 n=1 k=2 d_scale=block", "use none, mx"},
        ProblemLine{"gemm m=1 n=16 k=2 d=e2m1 d_scale=nv", "n=16 is not a multiple of 32"},
        ProblemLine{"gemm m=1 n=32 k=2 d=e2m1 d_scale=nv epilogue=swiglu", "n / 2=16 is not a multiple of 32"},
        ProblemLine{"gemm m=2 n=32 k=2 ldd=48 d=e2m1 d_scale=nv", "ldd=48 is not a multiple of 32"},
        ProblemLine{"gemm m=1 n=32 k=2 d=e2m1 d_scale=mx align_d=8", "use align_d=16"},
        ProblemLine{"grouped_gemm groups=2 m=8 n=32 k=8 d=e4m3 d_scale=mx", "unknown key 'd_scale' of a grouped_gemm"},
        ProblemLine{"grouped_gemm groups=2 m=8 n=32 k=8 d=e2m1", "d=e2m1 needs scale factors of blocks of D"},
        ProblemLine{"gemm m=1 n=1 k=1 a=tf32 sum=fast", "sums of tf32 are f32; leave it out"},
        ProblemLine{"gemm m=1 n=1 k=1 a=s8 sum=fast", "sums of s8 are s32; leave it out"},
        ProblemLine{"gemm m=1 n=1 k=1 a=bf16 sum=saturate", "is for s8 and u8, not bf16"},
        ProblemLine{"gemm m=1 n=1 k=1 a=s8 b=e4m3", "each u8 or s8"},
        ProblemLine{"gemm m=1 n=1 k=1 a=s8 d=s8", "is a type of operands, not of results; use f16, bf16, f32"},
        ProblemLine{"gemm m=1 n=1 k=1 d=tf32", "is a type of operands, not of results"},
        ProblemLine{"gemm m=1 n=1 k=1 a=bf16 d=s32", "d=s32 is for integer operands (s8, u8), not bf16; use d=bf16"},
        ProblemLine{"gemm m=1 n=1 k=1 a=s8 alpha=2", "d=s32 is the sum as it is"},
        ProblemLine{"gemm m=1 n=1 k=1 a=s8 bias=n", "for these use d=f32, f16 or bf16"},
        ProblemLine{"gemm m=1 n=1 k=1 a=s8 epilogue=relu", "d=s32 is the sum as it is"},
        ProblemLine{"gemm m=1 n=1 k=1 a=s8 c=s32 beta=1 d=f32", "only the type of an s32 result; use c=f32"},
        ProblemLine{"gemm m=1 n=1 k=1 a=s8 d=f32 epilogue=residual:s8", "has an operand of s8; use f16, bf16"},
        ProblemLine{"conv w=9 c=8 k=8 s=3 x=s8 w=s8 beta=1", "y=s32 is the sum as it is"},
        ProblemLine{"gemm m=1 n=1 k=1 scale=tensor", "use alpha="},
        ProblemLine{"conv w=9 c=8 k=8 s=3 x=e4m3 scale=block", "a conv has scale=tensor"},
        ProblemLine{"gemm m=1 n=1 k=1 align_a=3", "power of two"}, ProblemLine{"gemm m=1 n=1 k=1 alpha=nan", "finite"},
        ProblemLine{"gemm m=1 n=1 k=1 a_major=n", "use k or m"}, ProblemLine{"gemm m=1 n=1 k=1 hello", "key=value"},
        ProblemLine{"gemm m=1 n=1 k=1 batch=16777217 stride_a=549755813888", "more than 2^46 elements"},
        ProblemLine{"gemm m=2147483647 n=1 k=1 lda=1099511627775", "more than 2^46 elements"},
        ProblemLine{"gemm m=2147483647 n=1 k=2147483647", "more than 2^46 elements"},
        ProblemLine{"gemm m=65 n=9 k=1 batch=2147483647", "output tiles; split"},
        ProblemLine{"grouped_gemm m=4 n=4 k=4", "key 'groups' is missing; a grouped_gemm needs groups="},
        ProblemLine{"grouped_gemm groups=0 m=4 n=4 k=4", "groups=0 is out of range"},
        ProblemLine{"grouped_gemm groups=2 m=4 n=4 k=4 layout=ragged", "use contiguous, masked or k"},
        ProblemLine{"grouped_gemm groups=2 m=4 n=4 k=4 layout=k a=e4m3", "layout=k multiplies f16 or bf16, not e4m3"},
        ProblemLine{"grouped_gemm groups=2 m=4 n=4 k=4 layout=k b_major=k", "layout=k needs b_major=n"},
        ProblemLine{"grouped_gemm groups=2 m=4 n=4 k=4 layout=k stride_b=16", "stride_b is for groups of rows"},
        ProblemLine{"grouped_gemm groups=2 m=4 n=4 k=4 layout=k stride_d=15",
                    "stride_d=15 makes the matrices of groups"},
        ProblemLine{"grouped_gemm groups=2 m=4 n=4 k=4 stride_d=16", "stride_c and stride_d are for layout=k"},
        ProblemLine{"grouped_gemm groups=65536 m=65536 n=65536 k=4 layout=k", "rows, columns or output tiles; split"},
        ProblemLine{"grouped_gemm groups=65536 m=65536 n=4 k=4 layout=masked", "rows, columns or output tiles; split"},
        ProblemLine{"grouped_gemm groups=2 m=4 n=4 k=4 batch=2", "unknown key 'batch'"},
        ProblemLine{"grouped_gemm groups=2 m=4 n=4 k=4 lda=3", "lda=3 is below the row of 4"},
        ProblemLine{"grouped_gemm groups=2 m=4 n=4 k=4 stride_b=15", "the matrices of groups overlap; use at least 16"},
        ProblemLine{"grouped_gemm groups=1073741824 m=4 n=4 k=4", "rows, columns or output tiles; split"},
        ProblemLine{"grouped_gemm groups=16777216 m=4 n=8 k=4 stride_b=8388608", "more than 2^46 elements"},
        ProblemLine{"grouped_gemm groups=2 m=4 n=4 k=4 numerics=deterministic epilogue=sum_m",
                    "reductions over groups"},
        ProblemLine{"grouped_gemm groups=2 m=4 n=4 k=4 epilogue=scale_block", "may be of several groups"}));

// Every size and distance at its largest, with and without others that are large: the problem is refused by name, or
// all of its operands end below 2^48 bytes and completing it again changes nothing.
TEST(Problem, NoSizeOverflows) {
  const std::pair<std::string_view, int64_t> largest[] = {
      {"m", 2147483647},           {"n", 2147483647},           {"k", 2147483647},
      {"batch", 2147483647},       {"lda", 1099511627775},      {"ldb", 1099511627775},
      {"ldc", 1099511627775},      {"ldd", 1099511627775},      {"stride_a", 1099511627775},
      {"stride_b", 1099511627775}, {"stride_c", 1099511627775}, {"stride_d", 1099511627775}};
  int accepted = 0, refused = 0;
  // Every pair of them, and each by itself.
  for (size_t i = 0; i < std::size(largest); ++i) {
    for (size_t j = i; j < std::size(largest); ++j) {
      for (const int64_t divisor : {1, 2, 128, 65536}) {
        std::string text = "gemm";
        for (const std::string_view size : {"m", "n", "k"}) {
          if (size != largest[i].first && size != largest[j].first) text += base::Cat(" ", size, "=3");
        }
        text += base::Cat(" ", largest[i].first, "=", largest[i].second);
        if (i != j) text += base::Cat(" ", largest[j].first, "=", largest[j].second / divisor);
        const auto problem = ParseProblem(text + " beta=1");
        if (!problem) {
          ++refused;
          EXPECT_EQ(problem.error().code, ErrorCode::kInvalidArgument) << text;
          continue;
        }
        ++accepted;
        EXPECT_EQ(*CompleteProblem(*problem), *problem) << text;
        for (const auto role : {ir::OperandRole::kA, ir::OperandRole::kB, ir::OperandRole::kC, ir::OperandRole::kD}) {
          EXPECT_LT(ir::Stored(*problem, role).Bytes(), size_t{1} << 48) << text;
        }
      }
    }
  }
  EXPECT_GT(accepted, 20);
  EXPECT_GT(refused, 20);
}

TEST(Problem, BytesOfScaleFactors) {
  const auto bytes = [](std::string_view text) { return ProblemBytes(*ParseProblem(text)); };
  const double plain = bytes("gemm m=130 n=200 k=300 a=e4m3 d=e4m3 batch=2");
  EXPECT_EQ(bytes("gemm m=130 n=200 k=300 a=e4m3 d=e4m3 batch=2 scale=tensor"), plain + 3 * 4);
  EXPECT_EQ(bytes("gemm m=130 n=200 k=300 a=e4m3 d=e4m3 batch=2 scale=block"), plain + 4 * (2 * (3 * 130 + 2 * 3) + 1));
  const double groups = bytes("grouped_gemm groups=3 m=130 n=200 k=300 a=e4m3");
  EXPECT_EQ(bytes("grouped_gemm groups=3 m=130 n=200 k=300 a=e4m3 scale=block"), groups + 4 * (3 * 130 + 3 * 2 * 3));
  const double masked = bytes("grouped_gemm groups=3 m=130 n=200 k=300 a=e4m3 layout=masked");
  EXPECT_EQ(bytes("grouped_gemm groups=3 m=130 n=200 k=300 a=e4m3 layout=masked scale=block"),
            masked + 4 * 3 * (3 * 130 + 2 * 3));
  EXPECT_EQ(bytes("gemm m=1 n=8 k=8 a=e4m3 d=e4m3 bias=n"), bytes("gemm m=1 n=8 k=8 a=e4m3 d=e4m3") + 8 * 2);
}

TEST(Problem, FlopsAndBytes) {
  const Problem p = *ParseProblem("gemm m=2 n=3 k=4 batch=5 a=f16 d=f32 beta=1 bias=n");
  EXPECT_EQ(ProblemFlops(p), 2.0 * 2 * 3 * 4 * 5);
  EXPECT_EQ(ProblemBytes(p), 5.0 * (2 * 4 * 2 + 4 * 3 * 2 + 2 * (2 * 3 * 4)) + 3 * 4);
}

}  // namespace
}  // namespace laneshift
