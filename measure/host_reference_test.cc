#include "measure/host_reference.h"

#include <gtest/gtest.h>

#include <cmath>

namespace laneshift::measure {
namespace {

GemmProblem Parse(std::string_view text) { return std::get<GemmProblem>(*ParseProblem(text)); }

HostOperands RandomOperands(const GemmProblem& p) { return HostOperands::Random(p, 5); }

// The definition in problem.h, element by element, by offsets of its own.
double Definition(const GemmProblem& p, const HostOperands& o, int64_t batch, int64_t i, int64_t j) {
  const auto a = [&](int64_t q) {
    const int64_t at = p.a_major == Major::kK ? i * p.lda + q : q * p.lda + i;
    return static_cast<double>(ElementAt(o.a.bytes.data(), p.a, batch * p.stride_a + at));
  };
  const auto b = [&](int64_t q) {
    const int64_t at = p.b_major == Major::kK ? j * p.ldb + q : q * p.ldb + j;
    return static_cast<double>(ElementAt(o.b.bytes.data(), p.b, batch * p.stride_b + at));
  };
  double sum = 0;
  for (int64_t q = 0; q < p.k; ++q) sum += a(q) * b(q);
  double value = p.alpha * sum;
  if (p.beta != 0) value += p.beta * ElementAt(o.c.bytes.data(), p.c, batch * p.stride_c + i * p.ldc + j);
  if (p.bias != BiasAxis::kNone) value += ElementAt(o.bias.bytes.data(), p.d, p.bias == BiasAxis::kM ? i : j);
  return value;
}

HostTensor ComputeByDefinition(const GemmProblem& p, const HostOperands& operands) {
  HostTensor d = HostTensor::Poisoned(Stored(p, OperandRole::kD));
  for (int64_t batch = 0; batch < p.batch; ++batch) {
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) {
        StoreElement(d.bytes.data(), p.d, batch * p.stride_d + i * p.ldd + j,
                     static_cast<float>(Definition(p, operands, batch, i, j)));
      }
    }
  }
  return d;
}

class Reference : public testing::TestWithParam<const char*> {};

TEST_P(Reference, AgreesWithTheDefinition) {
  const GemmProblem p = Parse(GetParam());
  const HostOperands operands = RandomOperands(p);
  const HostTensor d = ComputeByDefinition(p, operands);
  const Comparison all = CompareAll(p, operands, d);
  EXPECT_EQ(all.compared, p.batch * p.m * p.n);
  EXPECT_EQ(all.not_finite, 0);
  EXPECT_GT(all.reference_squares, 0);
  EXPECT_LT(all.RelativeError(), 1e-7) << GetParam();  // d is the reference rounded to f32
  const Comparison sample = CompareSample(p, operands, d, 200, 1);
  EXPECT_EQ(sample.compared, 200);
  EXPECT_LT(sample.RelativeError(), 1e-7);
  EXPECT_FALSE(FindOverwrittenPadding(d).has_value());
}

INSTANTIATE_TEST_SUITE_P(All, Reference,
                         testing::Values("gemm m=1 n=1 k=1 d=f32", "gemm m=7 n=129 k=33 d=f32 alpha=0.5 beta=-2 bias=n",
                                         "gemm m=65 n=64 k=5 a=f16 d=f32 a_major=m b_major=n batch=3 bias=m",
                                         "gemm m=9 n=70 k=12 d=f32 lda=20 ldb=16 ldd=77 batch=2 beta=1 ldc=80"));

TEST(ReferenceFinds, OneWrongElement) {
  const GemmProblem p = Parse("gemm m=20 n=70 k=16 d=f32");
  const HostOperands operands = RandomOperands(p);
  HostTensor d = ComputeByDefinition(p, operands);
  StoreElement(d.bytes.data(), p.d, 19 * 70 + 69, d.At(19, 69) + 1.0f);
  EXPECT_GT(CompareAll(p, operands, d).RelativeError(), ErrorBound(p, target::Targets()[0]));
}

TEST(ReferenceFinds, ElementsThatWereNeverWritten) {
  const GemmProblem p = Parse("gemm m=4 n=5 k=16 batch=2");
  const HostOperands operands = RandomOperands(p);
  HostTensor d = ComputeByDefinition(p, operands);
  const HostTensor poison = HostTensor::Poisoned(d.shape);
  StoreElement(d.bytes.data(), p.d, (1 * 4 + 2) * 5 + 3, poison.At(1 * 4 + 2, 3));
  const Comparison comparison = CompareAll(p, operands, d);
  EXPECT_EQ(comparison.not_finite, 1);
  EXPECT_EQ(comparison.first_not_finite, (1 * 4 + 2) * 5 + 3);
  EXPECT_TRUE(std::isinf(comparison.RelativeError()));
}

// Infinity is what f16 has for what is too large, and nothing else is.
TEST(ReferenceFinds, OverflowsThatAreNone) {
  const GemmProblem p = Parse("gemm m=20 n=30 k=16 a=f16 alpha=100000");
  const HostOperands operands = RandomOperands(p);
  HostTensor d = ComputeByDefinition(p, operands);
  int64_t infinite = -1;
  for (int64_t i = 0; i < 30 && infinite < 0; ++i) {
    if (std::isinf(d.At(7, i))) infinite = i;
  }
  ASSERT_GE(infinite, 0) << "there is nothing to be tested";
  const double bound = ErrorBound(p, target::Targets()[0]);
  EXPECT_TRUE(CompareAll(p, operands, d).Accepted(bound));
  const float value = d.At(7, infinite);
  StoreElement(d.bytes.data(), p.d, 7 * 30 + infinite, -value);
  EXPECT_EQ(CompareAll(p, operands, d).not_finite, 1) << "of the other sign";
  StoreElement(d.bytes.data(), p.d, 7 * 30 + infinite, 1.0f);
  EXPECT_FALSE(CompareAll(p, operands, d).Accepted(bound));
}

TEST(ReferenceFinds, WritesIntoThePadding) {
  const GemmProblem p = Parse("gemm m=3 n=5 k=2 ldd=8");
  HostTensor d = HostTensor::Random(Stored(p, OperandRole::kD), OperandRole::kD, 1);
  EXPECT_FALSE(FindOverwrittenPadding(d).has_value());
  StoreElement(d.bytes.data(), p.d, 8 + 6, 0.0f);
  ASSERT_TRUE(FindOverwrittenPadding(d).has_value());
  EXPECT_NE(FindOverwrittenPadding(d)->find("element 14"), std::string::npos);
}

TEST(RandomData, IsUniformAndTheSameEverywhere) {
  const HostTensor x =
      HostTensor::Random(StoredTensor::Matrices(DataType::kF32, 1, 100, 100, 100, 10000), OperandRole::kA, 1);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < 100; ++i) {
    for (int64_t j = 0; j < 100; ++j) {
      const double value = x.At(i, j);
      EXPECT_GE(value, -1);
      EXPECT_LT(value, 1);
      sum += value;
      squares += value * value;
    }
  }
  EXPECT_NEAR(sum / 1e4, 0, 0.03);
  EXPECT_NEAR(squares / 1e4, 1.0 / 3, 0.02);
  // Pitches do not change the numbers; seeds and matrices do.
  EXPECT_EQ(
      HostTensor::Random(StoredTensor::Matrices(DataType::kF32, 1, 100, 100, 120, 12000), OperandRole::kA, 1).At(7, 9),
      x.At(7, 9));
  EXPECT_NE(
      HostTensor::Random(StoredTensor::Matrices(DataType::kF32, 1, 100, 100, 100, 10000), OperandRole::kB, 1).At(7, 9),
      x.At(7, 9));
  EXPECT_NE(
      HostTensor::Random(StoredTensor::Matrices(DataType::kF32, 1, 100, 100, 100, 10000), OperandRole::kA, 2).At(7, 9),
      x.At(7, 9));
}

}  // namespace
}  // namespace laneshift::measure
