#include "measure/reference/group_offsets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>

#include "measure/reference/host_reference.h"

namespace laneshift::measure {
namespace {

const GroupedGemmProblem& Grouped(const Problem& problem) { return std::get<GroupedGemmProblem>(problem); }

HostTensor Offsets(const std::vector<int32_t>& values) {
  HostTensor tensor{.shape = {.type = DataType::kS32}, .bytes = {}};
  tensor.shape.extents.back() = static_cast<int64_t>(values.size());
  tensor.bytes.resize(values.size() * sizeof(int32_t));
  for (size_t i = 0; i < values.size(); ++i) {
    StoreElement(tensor.bytes.data(), DataType::kS32, static_cast<int64_t>(i), values[i]);
  }
  return tensor;
}

std::vector<int64_t> SizesFor(const Problem& problem, const std::string& text) {
  HostOperands operands;
  const Status divided = DivideRows(problem, text, 0, operands);
  EXPECT_TRUE(divided.has_value()) << divided.error().message;
  std::vector<int64_t> sizes;
  if (!divided) return sizes;
  for (const RowRange& group : RowsOfGroups(Grouped(problem), operands)) sizes.push_back(group.end - group.begin);
  return sizes;
}

// Of offsets, or of sizes with layout=masked.
std::vector<RowRange> RowsFor(std::string_view text, const std::vector<int32_t>& values) {
  HostOperands operands;
  const Problem problem = *ParseProblem(text);
  operands.group_offsets = operands.group_sizes = Offsets(values);
  return RowsOfGroups(Grouped(problem), operands);
}

TEST(GroupSizes, AreWhatTheTextSays) {
  const Problem problem = *ParseProblem("grouped_gemm groups=4 m=1002 n=8 k=8");
  EXPECT_EQ(SizesFor(problem, "uniform"), (std::vector<int64_t>{251, 251, 250, 250}));
  EXPECT_EQ(SizesFor(problem, "3,0,5,0"), (std::vector<int64_t>{3, 0, 5, 0}));
  const std::string path = testing::TempDir() + "/sizes.txt";
  std::ofstream(path) << "3 0\n5,7\n";
  EXPECT_EQ(SizesFor(problem, path), (std::vector<int64_t>{3, 0, 5, 7}));
  for (const char* drawn : {"random:1", "zipf:1"}) {
    const std::vector<int64_t> sizes = SizesFor(problem, drawn);
    EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), int64_t{0}), 1002) << drawn;
    EXPECT_EQ(sizes, SizesFor(problem, drawn)) << drawn;
  }
  EXPECT_NE(SizesFor(problem, "random:1"), SizesFor(problem, "random:2"));
  // 1 / (1 + 1/2 + 1/3 + 1/4) = 0.48 of the rows are in the most frequent group.
  const std::vector<int64_t> zipf = SizesFor(problem, "zipf:1");
  EXPECT_NEAR(static_cast<double>(*std::max_element(zipf.begin(), zipf.end())), 481, 60);
}

TEST(GroupSizes, MistakesAreNamed) {
  const Problem problem = *ParseProblem("grouped_gemm groups=2 m=10 n=8 k=8");
  const auto message = [&](std::string_view text) {
    const auto sizes = ParseGroupSizes(text);
    if (!sizes) return sizes.error().message;
    const auto tensor = GroupTensor(Grouped(problem), *sizes);
    return tensor ? std::string() : tensor.error().message;
  };
  EXPECT_NE(message("1,2,3").find("has 3 sizes, but groups=2"), std::string::npos);
  EXPECT_NE(message("5,6").find("the first 2 groups have 11 rows, but m=10"), std::string::npos);
  EXPECT_NE(message("random:x").find("write for example random:1"), std::string::npos);
  EXPECT_NE(message("/nowhere/sizes").find("; use uniform, random:SEED"), std::string::npos);
  HostOperands operands;
  EXPECT_NE(DivideRows(*ParseProblem("gemm m=1 n=1 k=1"), "uniform", 1, operands)
                .error()
                .message.find("a gemm has no groups"),
            std::string::npos);
  const Problem masked = *ParseProblem("grouped_gemm groups=2 m=10 n=8 k=8 layout=masked");
  EXPECT_NE(DivideRows(masked, "3,11", 1, operands).error().message.find("group 1 has 11 rows, but m=10"),
            std::string::npos);
}

TEST(GroupSizes, OfMaskedGroupsAreThoseOfEach) {
  const Problem problem = *ParseProblem("grouped_gemm groups=4 m=120 n=8 k=8 layout=masked");
  EXPECT_EQ(SizesFor(problem, "uniform"), (std::vector<int64_t>{120, 120, 120, 120}));
  EXPECT_EQ(SizesFor(problem, "3,0,120,0"), (std::vector<int64_t>{3, 0, 120, 0}));
  std::vector<int64_t> zipf = SizesFor(problem, "zipf:1");
  std::sort(zipf.begin(), zipf.end());
  EXPECT_EQ(zipf, (std::vector<int64_t>{30, 40, 60, 120}));
  for (const int64_t size : SizesFor(problem, "random:3")) EXPECT_LE(size, 120);
}

// What estimates are given is what kernels take.
TEST(SizesOfGroups, AreTheRowsOfEach) {
  const auto sizes = [](const char* problem, const char* text) {
    const auto rows = SizesOfGroups(*ParseProblem(problem), text);
    EXPECT_TRUE(rows.has_value()) << rows.error().message;
    return rows ? *rows : std::vector<int64_t>{};
  };
  constexpr const char* kGroups = "grouped_gemm groups=4 m=1002 n=8 k=8";
  EXPECT_EQ(sizes(kGroups, "3,0,5,0"), (std::vector<int64_t>{3, 0, 5, 0}));
  EXPECT_EQ(sizes(kGroups, "uniform"), (std::vector<int64_t>{251, 251, 250, 250}));
  EXPECT_EQ(sizes(kGroups, "zipf:1"), SizesFor(*ParseProblem(kGroups), "zipf:1"));
  EXPECT_EQ(sizes("grouped_gemm groups=3 m=120 n=8 k=8 layout=masked", "7,0,120"), (std::vector<int64_t>{7, 0, 120}));
  EXPECT_TRUE(sizes(kGroups, "").empty());
  EXPECT_TRUE(sizes("gemm m=1 n=1 k=1", "").empty());
  EXPECT_EQ(sizes("grouped_gemm groups=3 m=8 n=8 k=90 layout=k", "70,0,20"), (std::vector<int64_t>{70, 0, 20}));
}

TEST(SizesOfGroups, MistakesAreNamed) {
  const auto message = [](const char* problem, const char* text) {
    const auto rows = SizesOfGroups(*ParseProblem(problem), text);
    return rows ? std::string() : rows.error().message;
  };
  EXPECT_NE(message("gemm m=1 n=1 k=1", "uniform").find("a gemm has no groups"), std::string::npos);
  EXPECT_NE(message("grouped_gemm groups=2 m=10 n=8 k=8", "1,2,3").find("has 3 sizes, but groups=2"),
            std::string::npos);
  EXPECT_NE(message("grouped_gemm groups=2 m=10 n=8 k=8", "5,6").find("the first 2 groups have 11 rows, but m=10"),
            std::string::npos);
}

// laneshift/problem.h: clamped to 0 ... m, and no smaller than the one before.
TEST(RowsOfGroups, AreValidWhateverIsInMemory) {
  constexpr const char* kText = "grouped_gemm groups=3 m=10 n=8 k=8";
  constexpr int32_t kLeast = -2147483647 - 1;
  using Rows = std::vector<RowRange>;
  EXPECT_EQ(RowsFor(kText, {2, 5, 5, 9}), (Rows{{2, 5}, {5, 5}, {5, 9}}));
  EXPECT_EQ(RowsFor(kText, {-7, 5, 3, 6}), (Rows{{0, 5}, {5, 5}, {5, 6}}));
  EXPECT_EQ(RowsFor(kText, {0, 2147483647, 4, kLeast}), (Rows{{0, 10}, {10, 10}, {10, 10}}));
  EXPECT_EQ(RowsFor("grouped_gemm groups=3 m=10 n=8 k=8 layout=masked", {4, 11, kLeast}),
            (Rows{{0, 4}, {10, 20}, {20, 20}}));
  const std::vector<int64_t> groups = {-1, -1, 0, 0, 0, 2, 2, 2, 2, -1};
  for (size_t row = 0; row < groups.size(); ++row) {
    EXPECT_EQ(GroupOf(RowsFor(kText, {2, 5, 5, 9}), static_cast<int64_t>(row)), groups[row]);
  }
}

// Parts of K: sizes and offsets are those of rows of A and B.
TEST(GroupSizes, OfPartsOfKAddUpToK) {
  const Problem problem = *ParseProblem("grouped_gemm groups=4 m=8 n=8 k=1002 layout=k");
  EXPECT_EQ(SizesFor(problem, "uniform"), (std::vector<int64_t>{251, 251, 250, 250}));
  const std::vector<int64_t> drawn = SizesFor(problem, "random:1");
  EXPECT_EQ(std::accumulate(drawn.begin(), drawn.end(), int64_t{0}), 1002);
  HostOperands operands;
  const Status too_many = DivideRows(problem, "1,1,1,1000", 1, operands);
  ASSERT_FALSE(too_many.has_value());
  EXPECT_NE(too_many.error().message.find("the first 4 groups have 1003 rows, but k=1002"), std::string::npos);
  EXPECT_EQ(RowsFor("grouped_gemm groups=3 m=4 n=8 k=10 layout=k", {-7, 5, 3, 60}),
            (std::vector<RowRange>{{0, 5}, {5, 5}, {5, 10}}));
}

// Every element of D counts, and rows of A and B outside of a group do not.
TEST(GroupedReference, AgreesWithTheDefinitionForPartsOfK) {
  const Problem problem = *ParseProblem("grouped_gemm groups=3 m=3 n=4 k=9 d=f32 layout=k alpha=2 beta=3 bias=m");
  const GroupedGemmProblem& p = Grouped(problem);
  HostOperands operands = HostOperands::Random(problem, 7);
  operands.group_offsets = Offsets({1, 4, 4, 8});
  const std::vector<RowRange> parts = {{1, 4}, {4, 4}, {4, 8}};
  for (const int64_t row : {0, 8}) {
    for (int64_t i = 0; i < p.m; ++i) StoreElement(operands.a.bytes.data(), p.a, row * p.m + i, NAN);
    for (int64_t j = 0; j < p.n; ++j) StoreElement(operands.b.bytes.data(), p.b, row * p.n + j, NAN);
  }
  HostTensor d = HostTensor::Poisoned(Stored(problem, OperandRole::kD));
  for (int64_t g = 0; g < p.groups; ++g) {
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) {
        double sum = 0;
        for (int64_t q = parts[static_cast<size_t>(g)].begin; q < parts[static_cast<size_t>(g)].end; ++q)
          sum += ElementAt(operands.a.bytes.data(), p.a, q * p.m + i) *
                 ElementAt(operands.b.bytes.data(), p.b, q * p.n + j);
        const int64_t element = (g * p.m + i) * p.n + j;
        StoreElement(d.bytes.data(), p.d, element,
                     2 * sum + 3 * ElementAt(operands.c.bytes.data(), p.c, element) +
                         ElementAt(operands.bias.bytes.data(), p.d, i));
      }
    }
  }
  const Comparison right = CompareAll(problem, operands, d);
  EXPECT_EQ(right.compared, 3 * 3 * 4);
  EXPECT_EQ(right.not_finite + right.overwritten, 0);
  EXPECT_LT(right.RelativeError(), 1e-6);
  EXPECT_LT(CompareSample(problem, operands, d, 200, 1).RelativeError(), 1e-6);
  for (int64_t element = 0; element < 3 * 3 * 4; ++element) {
    HostTensor wrong = d;
    StoreElement(wrong.bytes.data(), p.d, element, 300);
    EXPECT_GT(CompareAll(problem, operands, wrong).RelativeError(), 1e-2) << element;
  }
}

// Scale factors of A are a matrix of all rows, or of the rows of each masked group; those of B one for each group.
TEST(GroupedReference, HasScaleFactorsOfRuns) {
  constexpr int64_t kRuns = 2, kK = 130, kN = 140;
  for (const bool masked : {false, true}) {
    const Problem problem =
        *ParseProblem(std::string("grouped_gemm groups=3 m=5 n=140 k=130 a=e4m3 d=f32 scale=block") +
                      (masked ? " layout=masked" : ""));
    const GroupedGemmProblem& p = Grouped(problem);
    HostOperands operands = HostOperands::Random(problem, 7);
    (masked ? operands.group_sizes : operands.group_offsets) =
        Offsets(masked ? std::vector<int32_t>{2, 0, 5} : std::vector<int32_t>{1, 2, 2, 4});
    HostTensor d = HostTensor::Poisoned(Stored(problem, OperandRole::kD));
    int64_t written = 0;
    const std::vector<RowRange> groups = RowsOfGroups(p, operands);
    for (int64_t g = 0; g < p.groups; ++g) {
      for (int64_t i = groups[static_cast<size_t>(g)].begin; i < groups[static_cast<size_t>(g)].end; ++i) {
        for (int64_t j = 0; j < kN; ++j, ++written) {
          double sum = 0;
          for (int64_t q = 0; q < kK; ++q) {
            const int64_t run = q / kScaleRun;
            const int64_t of_a = masked ? (g * kRuns + run) * p.m + i - g * p.m : run * p.m + i;
            sum += ElementAt(operands.a.bytes.data(), p.a, i * kK + q) *
                   ElementAt(operands.b.bytes.data(), p.b, (g * kN + j) * kK + q) *
                   ElementAt(operands.scale_a.bytes.data(), DataType::kF32, of_a) *
                   ElementAt(operands.scale_b.bytes.data(), DataType::kF32, (g * 2 + j / kScaleRun) * kRuns + run);
          }
          StoreElement(d.bytes.data(), p.d, i * kN + j, sum);
        }
      }
    }
    const Comparison found = CompareAll(problem, operands, d);
    EXPECT_EQ(found.compared, written);
    EXPECT_GT(found.reference_squares, 0);
    EXPECT_LT(found.RelativeError(), 1e-6);
    EXPECT_EQ(found.not_finite + found.overwritten, 0);
  }
}

// Against the definition in problem.h, element by element; and each element, and each row of no group, counts.
TEST(GroupedReference, AgreesWithTheDefinition) {
  const Problem problem = *ParseProblem("grouped_gemm groups=3 m=9 n=4 k=5 a=bf16 d=f32 bias=n alpha=2 b_major=n");
  const GroupedGemmProblem& p = Grouped(problem);
  HostOperands operands = HostOperands::Random(problem, 7);
  operands.group_offsets = Offsets({1, 4, 4, 8});
  HostTensor d = HostTensor::Poisoned(Stored(problem, OperandRole::kD));
  const std::vector<int64_t> groups = {-1, 0, 0, 0, 2, 2, 2, 2, -1};
  for (int64_t i = 0; i < p.m; ++i) {
    const int64_t group = groups[static_cast<size_t>(i)];
    if (group < 0) continue;
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = 0;
      for (int64_t q = 0; q < p.k; ++q) {
        sum += ElementAt(operands.a.bytes.data(), p.a, i * 5 + q) *
               ElementAt(operands.b.bytes.data(), p.b, group * 20 + q * 4 + j);
      }
      StoreElement(d.bytes.data(), p.d, i * 4 + j, 2 * sum + ElementAt(operands.bias.bytes.data(), p.d, group * 4 + j));
    }
  }
  const Comparison right = CompareAll(problem, operands, d);
  EXPECT_EQ(right.compared, 7 * 4);
  EXPECT_EQ(right.not_finite + right.overwritten, 0);
  EXPECT_GT(right.reference_squares, 0);
  EXPECT_LT(right.RelativeError(), 1e-7);
  EXPECT_LT(CompareSample(problem, operands, d, 200, 1).RelativeError(), 1e-7);
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      HostTensor wrong = d;
      StoreElement(wrong.bytes.data(), p.d, i * 4 + j, 30);
      const Comparison found = CompareAll(problem, operands, wrong);
      if (groups[static_cast<size_t>(i)] >= 0) {
        EXPECT_GT(found.RelativeError(), 1e-2) << i << ", " << j;
      } else {
        EXPECT_EQ(found.overwritten, 1);
        EXPECT_EQ(found.first_overwritten, i);
        EXPECT_EQ(CompareSample(problem, operands, wrong, 50, 1).overwritten, 1);
      }
    }
  }
}

}  // namespace
}  // namespace laneshift::measure
