// D in blocks with scale factors, against the host's reference: what a correct kernel may store, and nothing else.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "ir/block_quantizer.h"
#include "laneshift/quantize.h"
#include "measure/reference/host_reference.h"

namespace laneshift::measure {
namespace {

// A is one column, B one row: sums are single products, and D is what it is made from.
class QuantizedReference : public testing::Test {
 protected:
  static constexpr int64_t kRows = 3, kColumns = 40;

  QuantizedReference() {
    for (int64_t i = 0; i < kRows; ++i) StoreElement(operands_.a.bytes.data(), problem_.a, i, 1 << i);
    // Far from ties of e4m3, which has even numbers there.
    for (int64_t j = 0; j < kColumns; ++j)
      StoreElement(operands_.b.bytes.data(), problem_.b, j, std::ldexp(18.25 + 2 * static_cast<double>(j % 5), -5));
    Quantise(1);
  }
  // All values times a number near 1.
  void Quantise(double times) {
    std::vector<float> numbers;
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t j = 0; j < kColumns; ++j)
        numbers.push_back(static_cast<float>(operands_.a.At(i, 0) * operands_.b.At(j, 0) * times));
    }
    const Status done = Quantize({.rows = kRows, .columns = kColumns, .type = problem_.d}, DataType::kF32,
                                 numbers.data(), 1, d_.bytes.data(), operands_.block_scale_d.bytes.data());
    ASSERT_TRUE(done.has_value()) << done.error().message;
  }
  std::optional<std::string> Verdict() const {
    return FailureOf(CompareAll(problem_, operands_, d_), problem_, target::Targets()[0]);
  }

  GemmProblem problem_ = std::get<GemmProblem>(*ParseProblem("gemm m=3 n=40 k=1 d=e4m3 d_scale=mx"));
  HostOperands operands_ = HostOperands::Random(problem_, 1);
  HostTensor d_ = HostTensor::Poisoned(Stored(problem_, OperandRole::kD));
};

TEST_F(QuantizedReference, TakesWhatTheFormulasGive) { EXPECT_EQ(Verdict(), std::nullopt); }

TEST_F(QuantizedReference, FindsOneElementThatIsOffByOneUnit) {
  for (const size_t at : {size_t{0}, size_t{33}, size_t{119}}) {
    const std::byte right = d_.bytes[at];
    for (const int off : {1, -1}) {
      d_.bytes[at] = static_cast<std::byte>(static_cast<int>(right) + off);
      const auto verdict = Verdict();
      ASSERT_TRUE(verdict) << at;
      EXPECT_NE(verdict->find("1 of 120 elements"), std::string::npos) << *verdict;
    }
    d_.bytes[at] = right;
  }
}

TEST_F(QuantizedReference, FindsAFactorThatIsOffByOneStep) {
  // Elements that fit the wrong factor do not excuse it.
  std::byte& factor = operands_.block_scale_d.bytes[static_cast<size_t>(ir::FactorOffset(kRows, 2, 0, 1, 1))];
  factor = static_cast<std::byte>(static_cast<int>(factor) + 1);
  for (size_t j = 32; j < 40; ++j) d_.bytes[40 + j] = static_cast<std::byte>(static_cast<int>(d_.bytes[40 + j]) - 8);
  const auto verdict = Verdict();
  ASSERT_TRUE(verdict);
  EXPECT_NE(verdict->find("1 scale factors of D are none"), std::string::npos) << *verdict;
}

TEST_F(QuantizedReference, FindsPaddingThatIsNotZero) {
  for (const int64_t at : {ir::FactorOffset(kRows, 2, 0, 3, 0), ir::FactorOffset(kRows, 2, 0, 0, 2)}) {
    operands_.block_scale_d.bytes[static_cast<size_t>(at)] = std::byte{127};
    const auto verdict = Verdict();
    ASSERT_TRUE(verdict);
    EXPECT_NE(verdict->find("first: byte " + std::to_string(at)), std::string::npos) << *verdict;
    operands_.block_scale_d.bytes[static_cast<size_t>(at)] = std::byte{0};
  }
}

// The largest magnitude is 448 * 2^-5: an f32 sum may be just above it.
TEST_F(QuantizedReference, ASumAtABoundaryMayFallToEitherSide) {
  for (int64_t j = 0; j < kColumns; ++j) StoreElement(operands_.b.bytes.data(), problem_.b, j, 14);
  for (const double times : {1.0, 1 + 0x1p-23, 1 - 0x1p-23}) {
    Quantise(times);
    EXPECT_EQ(Verdict(), std::nullopt) << times;
  }
  // From 13.75 no sum in f32 gets there.
  for (int64_t j = 0; j < kColumns; ++j) StoreElement(operands_.b.bytes.data(), problem_.b, j, 13.75);
  Quantise(1);
  EXPECT_EQ(Verdict(), std::nullopt);
  Quantise(1 + 0x1p-5);
  const auto verdict = Verdict();
  ASSERT_TRUE(verdict);
  EXPECT_NE(verdict->find("6 scale factors of D are none that a sum in f32 gives"), std::string::npos) << *verdict;
}

}  // namespace
}  // namespace laneshift::measure
