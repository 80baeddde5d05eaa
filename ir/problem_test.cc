#include "laneshift/problem.h"

#include <gtest/gtest.h>

namespace laneshift {
namespace {

GemmProblem Parse(std::string_view text) {
  auto problem = ParseProblem(text);
  EXPECT_TRUE(problem.has_value()) << (problem ? "" : problem.error().message);
  return problem ? std::get<GemmProblem>(*problem) : GemmProblem{};
}

TEST(Problem, TypesFollowA) {
  const GemmProblem p = Parse("gemm m=3 n=5 k=7 a=f16");
  EXPECT_EQ(p.b, DataType::kF16);
  EXPECT_EQ(p.d, DataType::kF16);
  EXPECT_EQ(p.c, DataType::kF16);
}

TEST(Problem, PitchesAndStridesArePacked) {
  const GemmProblem p = Parse("gemm m=3 n=5 k=7 batch=2 a_major=m lda=8");
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
       {"gemm m=1 n=1 k=1", "gemm m=7 n=129 k=1000 batch=2 beta=1 bias=m d=f32", "gemm m=2 n=2 k=2 alpha=0.1"}) {
    const Problem problem = *ParseProblem(text);
    EXPECT_EQ(*ParseProblem(PrintProblem(problem)), problem) << text;
  }
}

struct BadCase {
  const char* text;
  const char* message;
};

class BadProblem : public testing::TestWithParam<BadCase> {};

TEST_P(BadProblem, IsRefusedByName) {
  const auto problem = ParseProblem(GetParam().text);
  ASSERT_FALSE(problem.has_value());
  EXPECT_EQ(problem.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(problem.error().message.find(GetParam().message), std::string::npos) << problem.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    All, BadProblem,
    testing::Values(
        BadCase{"", "empty problem"}, BadCase{"gem m=1", "unknown kind of problem 'gem'"},
        BadCase{"gemm m=0 n=1 k=1", "m=0 is out of range"}, BadCase{"gemm m=1 n=-4 k=1", "n=-4 is out of range"},
        BadCase{"gemm m=1 n=1", "key 'k' is missing"}, BadCase{"gemm m=1 n=1 k=1 m=2", "given twice"},
        BadCase{"gemm m=1 n=1 k=1 aa=bf16", "did you mean 'a'"}, BadCase{"gemm m=1 n=1 k=1 a=int4", "known types"},
        BadCase{"gemm m=1 n=1 k=1x", "not a whole number"},
        BadCase{"gemm m=1 n=1 k=9 lda=8", "lda=8 is below the row of 9"},
        BadCase{"gemm m=4 n=1 k=9 batch=2 stride_a=8", "overlap"},
        BadCase{"gemm m=1 n=1 k=1 a=f16 b=bf16", "both f16 or both bf16"},
        BadCase{"gemm m=1 n=1 k=1 align_a=3", "power of two"}, BadCase{"gemm m=1 n=1 k=1 alpha=nan", "finite"},
        BadCase{"gemm m=1 n=1 k=1 a_major=n", "use k or m"}, BadCase{"gemm m=1 n=1 k=1 hello", "key=value"}));

TEST(Problem, FlopsAndBytes) {
  const Problem p = *ParseProblem("gemm m=2 n=3 k=4 batch=5 a=f16 d=f32 beta=1 bias=n");
  EXPECT_EQ(ProblemFlops(p), 2.0 * 2 * 3 * 4 * 5);
  EXPECT_EQ(ProblemBytes(p), 5.0 * (2 * 4 * 2 + 4 * 3 * 2 + 2 * (2 * 3 * 4)) + 3 * 4);
}

}  // namespace
}  // namespace laneshift
