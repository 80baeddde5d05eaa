// The host's reference against the definitions of laneshift/problem.h: rows by index vectors, and scale factors of rows
// and packed ones.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "measure/reference/group_offsets.h"
#include "measure/reference/host_reference.h"

namespace laneshift::measure {
namespace {

double At(const HostTensor& tensor, int64_t element) {
  return ElementAt(tensor.bytes.data(), tensor.shape.type, element);
}

HostTensor Integers(const StoredTensor& shape, const std::vector<int64_t>& values) {
  HostTensor tensor = HostTensor::Poisoned(shape);
  for (size_t i = 0; i < values.size(); ++i) {
    StoreElement(tensor.bytes.data(), DataType::kS32, static_cast<int64_t>(i), static_cast<double>(values[i]));
  }
  return tensor;
}

std::map<int64_t, int> Drawn(const std::string& text, OperandRole role, uint64_t seed) {
  const Problem problem = *ParseProblem(text);
  const auto& p = std::get<GroupedGemmProblem>(problem);
  const HostTensor indices = RandomRowIndices(p, role, seed);
  std::map<int64_t, int> times;
  for (int64_t i = 0; i < p.Rows(); ++i) ++times[static_cast<int64_t>(At(indices, i))];
  return times;
}

TEST(RandomRowIndices, ArePermutations) {
  const std::string few = "grouped_gemm groups=2 m=10 n=8 k=8 rows=gather+scatter a_rows=3 d_rows=7";
  EXPECT_EQ(Drawn(few, OperandRole::kRowIndicesA, 1), (std::map<int64_t, int>{{0, 4}, {1, 3}, {2, 3}}));
  const auto of_d = Drawn(few, OperandRole::kRowIndicesD, 1);
  EXPECT_EQ(of_d.at(-1), 3) << "rows for which D has no room";
  EXPECT_EQ(of_d.size(), 8u);
  const std::string many = "grouped_gemm groups=2 m=10 n=8 k=8 rows=gather+scatter a_rows=30 d_rows=70 layout=masked";
  for (const OperandRole role : {OperandRole::kRowIndicesA, OperandRole::kRowIndicesD}) {
    const auto times = Drawn(many, role, 2);
    EXPECT_EQ(times.size(), 20u) << "none twice";
    EXPECT_GE(times.begin()->first, 0);
    EXPECT_LT(times.rbegin()->first, role == OperandRole::kRowIndicesA ? 30 : 70);
  }
}

// Every element of D counts, and so does every row that no index names.
TEST(RowIndicesReference, AgreesWithTheDefinition) {
  const Problem problem = *ParseProblem(
      "grouped_gemm groups=3 m=9 n=4 k=5 d=f32 rows=gather+scatter a_rows=4 d_rows=12 alpha=2 beta=3 epilogue=scale_m");
  const auto& p = std::get<GroupedGemmProblem>(problem);
  HostOperands operands = HostOperands::Random(problem, 7);
  operands.group_offsets = Integers(Stored(problem, OperandRole::kGroupOffsets), {1, 4, 4, 8});
  const std::vector<int64_t> groups = {-1, 0, 0, 0, 2, 2, 2, 2, -1};
  const std::vector<int64_t> of_a = {0, 3, -1, 1, 1, 0, 4, 2, 2}, of_d = {0, 11, 5, 12, 2, 0, 7, -1, 3};
  operands.a_row_indices = Integers(Stored(problem, OperandRole::kRowIndicesA), of_a);
  operands.d_row_indices = Integers(Stored(problem, OperandRole::kRowIndicesD), of_d);
  HostTensor d = HostTensor::Poisoned(Stored(problem, OperandRole::kD));
  std::vector<bool> named(12);
  for (int64_t i = 0; i < p.m; ++i) {
    const int64_t group = groups[static_cast<size_t>(i)], row = of_d[static_cast<size_t>(i)];
    const int64_t source = of_a[static_cast<size_t>(i)];
    if (group < 0 || row < 0 || row >= 12) continue;
    named[static_cast<size_t>(row)] = true;
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = 0;
      for (int64_t q = 0; q < p.k && source >= 0 && source < 4; ++q)
        sum += At(operands.a, source * 5 + q) * At(operands.b, (group * 4 + j) * 5 + q);
      const double value = (2 * sum + 3 * At(operands.c, row * 4 + j)) * At(operands.epilogue[0], row);
      StoreElement(d.bytes.data(), p.d, row * 4 + j, value);
    }
  }
  const Comparison right = CompareAll(problem, operands, d);
  EXPECT_EQ(right.compared, 5 * 4);
  EXPECT_EQ(right.not_finite + right.overwritten, 0);
  EXPECT_LT(right.RelativeError(), 1e-6);
  for (int64_t element = 0; element < 12 * 4; ++element) {
    HostTensor wrong = d;
    StoreElement(wrong.bytes.data(), p.d, element, 300);
    const Comparison found = CompareAll(problem, operands, wrong);
    if (named[static_cast<size_t>(element / 4)]) {
      EXPECT_GT(found.RelativeError(), 1e-2) << element;
    } else {
      EXPECT_EQ(found.overwritten, 1) << element;
    }
  }
}

TEST(ScaleFactorsReference, AreOfRowsAndOfColumns) {
  const Problem problem = *ParseProblem("gemm m=5 n=4 k=16 a=s8 d=f32 batch=2 scale=row alpha=0.5");
  HostOperands operands = HostOperands::Random(problem, 3);
  HostTensor d = HostTensor::Poisoned(Stored(problem, OperandRole::kD));
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t i = 0; i < 5; ++i) {
      for (int64_t j = 0; j < 4; ++j) {
        double sum = 0;
        for (int64_t q = 0; q < 16; ++q)
          sum += At(operands.a, (b * 5 + i) * 16 + q) * At(operands.b, (b * 4 + j) * 16 + q);
        const double factors = At(operands.scale_a, b * 5 + i) * At(operands.scale_b, b * 4 + j);
        StoreElement(d.bytes.data(), DataType::kF32, (b * 5 + i) * 4 + j, 0.5 * sum * factors);
      }
    }
  }
  const Comparison found = CompareAll(problem, operands, d);
  EXPECT_EQ(found.compared, 2 * 5 * 4);
  EXPECT_LT(found.RelativeError(), 1e-6);
}

TEST(ScaleFactorsReference, ArePackedAsTheProblemSays) {
  const Problem problem = *ParseProblem("gemm m=5 n=140 k=700 a=e4m3 d=f32 batch=2 scale=block scale_type=ue8m0");
  HostOperands operands = HostOperands::Random(problem, 3);
  HostTensor d = HostTensor::Poisoned(Stored(problem, OperandRole::kD));
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t i = 0; i < 5; ++i) {
      for (int64_t j = 0; j < 140; ++j) {
        double sum = 0;
        for (int64_t q = 0; q < 700; ++q) {
          const int64_t run = q / 128;  // of six, which are two words
          sum += At(operands.a, (b * 5 + i) * 700 + q) * At(operands.b, (b * 140 + j) * 700 + q) *
                 At(operands.scale_a, ((b * 2 + run / 4) * 5 + i) * 4 + run % 4) *
                 At(operands.scale_b, (b * 2 + j / 128) * 16 + run);
        }
        StoreElement(d.bytes.data(), DataType::kF32, (b * 5 + i) * 140 + j, sum);
      }
    }
  }
  const Comparison found = CompareAll(problem, operands, d);
  EXPECT_EQ(found.compared, 2 * 5 * 140);
  EXPECT_GT(found.reference_squares, 0);
  EXPECT_LT(found.RelativeError(), 1e-6);
}

}  // namespace
}  // namespace laneshift::measure
