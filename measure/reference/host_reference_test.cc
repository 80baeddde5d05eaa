#include "measure/reference/host_reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>

#include "laneshift/sparsity.h"

namespace laneshift::measure {
namespace {

GemmProblem Parse(std::string_view text) { return std::get<GemmProblem>(*ParseProblem(text)); }

HostOperands RandomOperands(const GemmProblem& p) { return HostOperands::Random(p, 5); }

// The definition in problem.h, element by element, with independent offsets.
// `dense`: a sparse A with all of its elements.
double Definition(const GemmProblem& p, const HostOperands& o, const std::vector<std::byte>& dense, int64_t batch,
                  int64_t i, int64_t j) {
  const auto a = [&](int64_t q) {
    if (p.sparse == Sparsity::kA)
      return ElementAt(
          dense.data(), p.a,
          (batch * p.m + (p.a_major == Major::kK ? i : 0)) * p.k + (p.a_major == Major::kK ? q : q * p.m + i));
    const int64_t at = p.a_major == Major::kK ? i * p.lda + q : q * p.lda + i;
    return static_cast<double>(ElementAt(o.a.bytes.data(), p.a, batch * p.stride_a + at));
  };
  const auto b = [&](int64_t q) {
    const int64_t at = p.b_major == Major::kK ? j * p.ldb + q : q * p.ldb + j;
    return static_cast<double>(ElementAt(o.b.bytes.data(), p.b, batch * p.stride_b + at));
  };
  // In blocks of 128 rows and four runs, 512 bytes each.
  const auto factor = [&](const HostTensor& factors, int64_t rows, int64_t row, int64_t q) {
    if (p.scale == Scaling::kNone) return 1.0;
    const int64_t run = q / (p.scale == Scaling::kNv ? 16 : 32);
    const int64_t along_k = (p.k + (p.scale == Scaling::kNv ? 63 : 127)) / (p.scale == Scaling::kNv ? 64 : 128);
    const int64_t block = (batch * ((rows + 127) / 128) + row / 128) * along_k + run / 4;
    return ElementAt(factors.bytes.data(), factors.shape.type,
                     block * 512 + row % 32 * 16 + row % 128 / 32 * 4 + run % 4);
  };
  double sum = 0;
  for (int64_t q = 0; q < p.k; ++q) sum += a(q) * factor(o.scale_a, p.m, i, q) * b(q) * factor(o.scale_b, p.n, j, q);
  double value = p.alpha * sum;
  if (p.scale == Scaling::kNv) value *= o.tensor_scale_a.At(0, 0) * o.tensor_scale_b.At(0, 0);
  if (p.beta != 0) value += p.beta * ElementAt(o.c.bytes.data(), p.c, batch * p.stride_c + i * p.ldc + j);
  if (p.bias != BiasAxis::kNone) value += ElementAt(o.bias.bytes.data(), p.d, p.bias == BiasAxis::kM ? i : j);
  return value;
}

HostTensor ComputeByDefinition(const GemmProblem& p, const HostOperands& operands) {
  HostTensor d = HostTensor::Poisoned(Stored(p, OperandRole::kD));
  const std::vector<std::byte> dense = p.sparse == Sparsity::kA
                                           ? *ExpandSparse(p, operands.a.bytes, operands.metadata_a.bytes)
                                           : std::vector<std::byte>{};
  for (int64_t batch = 0; batch < p.batch; ++batch) {
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) {
        StoreElement(d.bytes.data(), p.d, batch * p.stride_d + i * p.ldd + j,
                     static_cast<float>(Definition(p, operands, dense, batch, i, j)));
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
                                         "gemm m=9 n=70 k=12 d=f32 lda=20 ldb=16 ldd=77 batch=2 beta=1 ldc=80",
                                         "gemm m=130 n=9 k=70 a=e2m1 d=f32 lda=96 batch=2 scale=nv",
                                         "gemm m=9 n=130 k=140 a=e2m1 d=f32 scale=mx",
                                         "gemm m=9 n=33 k=140 a=e3m2 b=e2m3 d=f32 lda=144 batch=2",
                                         "gemm m=9 n=33 k=140 a=e2m1 b=e3m2 d=f32 scale=mx",
                                         "gemm m=140 n=6 k=136 a=bf16 d=f32 lda=70 batch=2 sparse=a",
                                         "gemm m=20 n=6 k=68 a=tf32 d=f32 a_major=m sparse=a",
                                         "gemm m=130 n=6 k=132 a=e4m3 d=f32 beta=1 sparse=a"));

TEST(ReferenceFinds, OneWrongElement) {
  const GemmProblem p = Parse("gemm m=20 n=70 k=16 d=f32");
  const HostOperands operands = RandomOperands(p);
  HostTensor d = ComputeByDefinition(p, operands);
  StoreElement(d.bytes.data(), p.d, 19 * 70 + 69, d.At(19, 69) + 1.0f);
  EXPECT_FALSE(CompareAll(p, operands, d).Accepted(ValueErrorsOf(p, target::Targets()[0])));
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

// f16 has infinity for values that are too large, and for no others.
TEST(ReferenceFinds, OverflowsThatAreNone) {
  const GemmProblem p = Parse("gemm m=20 n=30 k=16 a=f16 alpha=100000");
  const HostOperands operands = RandomOperands(p);
  HostTensor d = ComputeByDefinition(p, operands);
  int64_t infinite = -1;
  for (int64_t i = 0; i < 30 && infinite < 0; ++i) {
    if (std::isinf(d.At(7, i))) infinite = i;
  }
  ASSERT_GE(infinite, 0) << "there is nothing to be tested";
  const ValueErrors bound = ValueErrorsOf(p, target::Targets()[0]);
  EXPECT_TRUE(CompareAll(p, operands, d).Accepted(bound));
  const float value = d.At(7, infinite);
  StoreElement(d.bytes.data(), p.d, 7 * 30 + infinite, -value);
  EXPECT_EQ(CompareAll(p, operands, d).not_finite, 1) << "of the other sign";
  StoreElement(d.bytes.data(), p.d, 7 * 30 + infinite, 1.0f);
  EXPECT_FALSE(CompareAll(p, operands, d).Accepted(bound));
}

// Exact sums that all lie just below a tie, at a distance that a sum in f32 may cross.
class NearTies : public testing::Test {
 protected:
  // One row of A is (1, tiny), B is (j + 0.5, -1): sums are j + 0.5 - tiny.
  static constexpr int64_t kColumns = 8;
  explicit NearTies(float tiny = 0x1p-22f) { Fill(tiny); }
  void Fill(float tiny) {
    operands_ = HostOperands::Random(problem_, 1);
    StoreElement(operands_.a.bytes.data(), problem_.a, 0, 1.0f);
    StoreElement(operands_.a.bytes.data(), problem_.a, 1, tiny);
    for (int64_t j = 0; j < kColumns; ++j) {
      StoreElement(operands_.b.bytes.data(), problem_.b, j * problem_.ldb, static_cast<float>(j) + 0.5f);
      StoreElement(operands_.b.bytes.data(), problem_.b, j * problem_.ldb + 1, -1.0f);
    }
  }
  // D for sums that are off by `shift`.
  HostTensor Computed(double shift) const {
    HostTensor d = HostTensor::Poisoned(Stored(problem_, OperandRole::kD));
    for (int64_t j = 0; j < kColumns; ++j) {
      const double sum = static_cast<double>(j) + 0.5 - 0x1p-22 + shift;
      StoreElement(d.bytes.data(), problem_.d, j, static_cast<float>(std::rint(sum)));
    }
    return d;
  }
  std::optional<std::string> Verdict(const HostTensor& d) const {
    return FailureOf(CompareAll(problem_, operands_, d), problem_, target::Targets()[0]);
  }

  GemmProblem problem_ = Parse("gemm m=1 n=8 k=2 d=bf16 epilogue=rint");
  HostOperands operands_;
};

TEST_F(NearTies, EitherSideIsRight) {
  EXPECT_EQ(Verdict(Computed(0)), std::nullopt);
  EXPECT_EQ(Verdict(Computed(0x1p-21)), std::nullopt) << "the sum fell to the other side of its tie";
}

TEST_F(NearTies, WhatNoSumLeadsToIsWrong) {
  for (int64_t j = 0; j < kColumns; ++j) {
    for (const float off : {-1.0f, 2.0f}) {
      HostTensor d = Computed(0);
      StoreElement(d.bytes.data(), problem_.d, j, d.At(0, j) + off);
      // If the tie rounds up by one, two more is one too many; one less is always wrong.
      const auto verdict = Verdict(d);
      ASSERT_TRUE(verdict) << j << " " << off;
      EXPECT_NE(verdict->find("first: (0, " + std::to_string(j) + ")"), std::string::npos) << *verdict;
    }
  }
}

TEST_F(NearTies, ASumThatIsFarFromATieHasOneValue) {
  Fill(0x1p-4f);
  const HostTensor right = Computed(-0x1p-4);
  EXPECT_EQ(Verdict(right), std::nullopt);
  for (int64_t j = 0; j < kColumns; ++j) {
    HostTensor d = right;
    StoreElement(d.bytes.data(), problem_.d, j, d.At(0, j) + 1.0f);
    EXPECT_TRUE(Verdict(d)) << j;
  }
}

// In a large D one wrong element is little in the norm.
TEST(ReferenceFinds, OneRoundedElementOfMany) {
  const GemmProblem p = Parse("gemm m=200 n=200 k=300 alpha=10 d=bf16 epilogue=rint");
  const HostOperands operands = RandomOperands(p);
  HostTensor d = ComputeByDefinition(p, operands);
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      const double rounded = std::rint(Definition(p, operands, {}, 0, i, j));
      StoreElement(d.bytes.data(), p.d, i * p.ldd + j, static_cast<float>(rounded));
    }
  }
  EXPECT_EQ(FailureOf(CompareAll(p, operands, d), p, target::Targets()[0]), std::nullopt);
  StoreElement(d.bytes.data(), p.d, 77 * p.ldd + 5, d.At(77, 5) + 1);
  const Comparison wrong = CompareAll(p, operands, d);
  EXPECT_EQ(wrong.outside, 1);
  EXPECT_EQ(wrong.first_outside, 77 * p.n + 5);
  EXPECT_TRUE(FailureOf(wrong, p, target::Targets()[0]));
}

// What a kernel computes that loses one product, with operands of every kind of sum.
TEST(ReferenceFinds, OneProductThatIsMissingInOneElementOfMany) {
  for (const char* text :
       {"gemm m=256 n=256 k=64 d=bf16", "gemm m=256 n=256 k=64 a=f16 d=f16",
        "gemm m=256 n=256 k=64 a=tf32 d=bf16 alpha=2 beta=1 bias=n", "gemm m=256 n=256 k=64 a=e4m3 d=bf16",
        "gemm m=256 n=256 k=128 a=e4m3 b=e5m2 d=bf16", "gemm m=256 n=256 k=512 a=e5m2 d=f16",
        "gemm m=256 n=256 k=256 a=e4m3 d=bf16 sum=fast", "gemm m=256 n=256 k=128 a=e4m3 d=bf16 scale=mx",
        "gemm m=256 n=256 k=128 a=e2m1 d=bf16 scale=nv"}) {
    const GemmProblem p = Parse(text);
    const HostOperands operands = RandomOperands(p);
    HostTensor d = ComputeByDefinition(p, operands);
    ASSERT_EQ(FailureOf(CompareAll(p, operands, d), p, target::Targets()[0]), std::nullopt) << text;
    constexpr int64_t kRow = 100, kColumn = 200;
    const auto without = [&](int64_t q) {
      HostOperands missing = operands;
      StoreElement(missing.a.bytes.data(), p.a, kRow * p.lda + q, 0);
      return Definition(p, missing, {}, 0, kRow, kColumn);
    };
    const double right = Definition(p, operands, {}, 0, kRow, kColumn);
    double wrong = right;
    for (int64_t q = 0; q < p.k; ++q) {
      if (std::abs(without(q) - right) > std::abs(wrong - right)) wrong = without(q);
    }
    StoreElement(d.bytes.data(), p.d, kRow * p.ldd + kColumn, static_cast<float>(wrong));
    const Comparison found = CompareAll(p, operands, d);
    EXPECT_EQ(found.outside, 1) << text;
    EXPECT_EQ(found.first_outside, kRow * p.n + kColumn) << text;
    EXPECT_TRUE(FailureOf(found, p, target::Targets()[0])) << text;
  }
}

// A sum that nearly cancels is as far off as any other, which is much of it.
TEST(ReferenceAllows, OneSumThatCancels) {
  const GemmProblem p = Parse("gemm m=1 n=1 k=16 a=f16 d=f32");
  HostOperands operands = RandomOperands(p);
  for (int64_t q = 0; q < p.k; ++q) {
    StoreElement(operands.a.bytes.data(), p.a, q, q == 0 ? 1 : q == 1 ? -1 + 0x1p-10 : 0);
    StoreElement(operands.b.bytes.data(), p.b, q, 1);
  }
  HostTensor d = HostTensor::Poisoned(Stored(p, OperandRole::kD));
  const auto failure = [&](double off) {
    StoreElement(d.bytes.data(), p.d, 0, 0x1p-10 + off);
    return FailureOf(CompareAll(p, operands, d), p, target::Targets()[0]);
  };
  EXPECT_EQ(failure(0), std::nullopt);
  EXPECT_EQ(failure(0x1p-25), std::nullopt) << "the place at which the tensor core cuts a product of 1";
  EXPECT_TRUE(failure(0x1p-14));
}

// The tensor core cuts addends relative to the exponent of the largest, and that of a subnormal f16 is the least normal
// one: the smaller products of such a row lose their last bits.
TEST(ReferenceAllows, WhatSubnormalOperandsLose) {
  const GemmProblem p = Parse("gemm m=1 n=8 k=16 a=f16 d=f32");
  HostOperands operands = RandomOperands(p);
  HostTensor d = HostTensor::Poisoned(Stored(p, OperandRole::kD));
  for (int64_t q = 0; q < p.k; ++q) StoreElement(operands.a.bytes.data(), p.a, q, 0x1p-24f);
  constexpr double kUnit = 0x1p-39;  // 25 bits below 2^-14 times 1
  for (int64_t j = 0; j < p.n; ++j) {
    double sum = 0;
    for (int64_t q = 0; q < p.k; ++q) {
      const float b = q == 0 ? 1.0f : std::ldexp(1.0f + static_cast<float>(q + j) / 1024, -7 - static_cast<int>(q % 4));
      StoreElement(operands.b.bytes.data(), p.b, j * p.ldb + q, b);
      sum += std::trunc(0x1p-24 * double{b} / kUnit) * kUnit;
    }
    StoreElement(d.bytes.data(), p.d, j, static_cast<float>(sum));
  }
  const Comparison comparison = CompareAll(p, operands, d);
  EXPECT_GT(comparison.RelativeError(), 0x1p-24) << "more than the rounding to f32";
  EXPECT_EQ(comparison.outside, 0);
}

TEST(ReferenceFinds, ReductionsThatCancel) {
  // Rows come in pairs of opposite sign: every reduction is about zero, with nothing but rounding errors.
  const GemmProblem p = Parse("gemm m=256 n=4 k=64 d=f32 epilogue=sum_n");
  HostOperands operands = RandomOperands(p);
  for (int64_t i = 1; i < p.m; i += 2) {
    for (int64_t q = 0; q < p.k; ++q) {
      StoreElement(operands.a.bytes.data(), p.a, i * p.lda + q, -operands.a.At(i - 1, q));
    }
  }
  const HostTensor d = ComputeByDefinition(p, operands);
  const auto verdict = [&](float total) {
    for (int64_t j = 0; j < p.n; ++j) StoreElement(operands.epilogue[0].bytes.data(), DataType::kF32, j, total);
    return FailureOf(CompareAll(p, operands, d), p, target::Targets()[0]);
  };
  EXPECT_EQ(verdict(2e-5f), std::nullopt) << "a few places of values of about 5";
  EXPECT_TRUE(verdict(0.5f)) << "a value was left out";
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
