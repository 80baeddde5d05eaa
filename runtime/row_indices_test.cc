// Rows of grouped GEMMs that have their places from index vectors, through the public interface: what a kernel does
// with the indices that are in device memory, valid or not. The emulator reports any access outside of an operand.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "laneshift/engine.h"
#include "laneshift/host_run.h"

namespace laneshift {
namespace {

constexpr int kGroups = 3, kM = 150, kN = 72, kK = 64, kRowsOfA = 7, kRowsOfD = 160;
constexpr float kUntouched = -12345;
constexpr int kLeast = std::numeric_limits<int32_t>::min(), kMost = std::numeric_limits<int32_t>::max();

// Row r of A is r + 1, B is the number of its group plus 1: exact in every order of summation.
struct Data {
  std::vector<uint16_t> a, b;
  std::vector<int32_t> offsets = {2, 70, 70, 149};

  Data() {
    constexpr uint16_t kNumbers[kRowsOfA] = {0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0};  // bf16: 1 to 7
    for (const uint16_t number : kNumbers) a.insert(a.end(), kK, number);
    for (int g = 0; g < kGroups; ++g) b.insert(b.end(), kN * kK, kNumbers[g]);
  }
  // Of row i of the product; 0: none.
  int GroupOf(int i) const {
    for (int g = 0; g < kGroups; ++g) {
      if (i >= offsets[static_cast<size_t>(g)] && i < offsets[static_cast<size_t>(g) + 1]) return g + 1;
    }
    return 0;
  }
};

class RowIndices : public testing::TestWithParam<const char*> {
 protected:
  Engine Open(const char* order) {
    EngineOptions options{.device = "emulator", .target = GetParam(), .store_directory = ":memory:"};
    options.async_order = *ParseAsyncOrder(order);
    options.emulator_multiprocessors = 5;
    return *Engine::Open(options);
  }
};

constexpr const char* kSchedules[] = {"tile=64x64x64 stages=2",
                                      "tile=128x64x64 stages=2 cluster=1x2",
                                      "tile=16x64x64 stages=2 rows=n",
                                      "tile=64x64x64 stages=2 cluster=2x1 d_store=direct",
                                      "tile=64x64x64 stages=2 a_load=copy b_load=copy",
                                      "tile=64x64x64 stages=2 a_load=pack"};

std::vector<int32_t> Repeated(const std::vector<int32_t>& values, int count) {
  std::vector<int32_t> all;
  for (int i = 0; i < count; ++i) all.push_back(values[static_cast<size_t>(i) % values.size()]);
  return all;
}

TEST_P(RowIndices, NoneLeadsOutsideOfA) {
  const Problem problem = *ParseProblem("grouped_gemm groups=3 m=150 n=72 k=64 d=f32 rows=gather a_rows=7");
  const Data data;
  const std::vector<int32_t> indices = Repeated({6, -1, 0, kRowsOfA, 3, kMost, kLeast, 3, 100000000, 2, 2}, kM);
  for (const char* order : {"eager", "late", "random:4"}) {
    const Engine engine = Open(order);
    for (const char* schedule : kSchedules) {
      std::vector<float> d(kM * kN, kUntouched);
      const Status ran = RunFromHost(engine, problem,
                                     GemmArguments{.a = data.a.data(),
                                                   .b = data.b.data(),
                                                   .d = d.data(),
                                                   .group_offsets = data.offsets.data(),
                                                   .a_row_indices = indices.data()},
                                     *ParseSchedule(schedule));
      ASSERT_TRUE(ran.has_value()) << schedule << ": " << ran.error().message;
      for (int i = 0; i < kM; ++i) {
        const int index = indices[static_cast<size_t>(i)], group = data.GroupOf(i);
        const int row = index >= 0 && index < kRowsOfA ? index + 1 : 0;
        const float expected = group == 0 ? kUntouched : static_cast<float>(kK * row * group);
        const auto* first = d.data() + i * kN;
        ASSERT_TRUE(std::all_of(first, first + kN, [&](float value) { return value == expected; }))
            << schedule << ", " << order << ": row " << i << " of index " << index << " is " << first[0] << ", not "
            << expected;
      }
      const auto report = engine.TakeReport();
      ASSERT_TRUE(report.has_value() && report->hazards.empty() && report->faults.empty()) << schedule;
    }
  }
}

TEST_P(RowIndices, NoneLeadsOutsideOfD) {
  const Problem problem = *ParseProblem(
      "grouped_gemm groups=3 m=150 n=72 k=64 d=f32 rows=gather+scatter a_rows=7 d_rows=160 epilogue=sum_m");
  const Data data;
  const std::vector<int32_t> of_a = Repeated({1, 2, 0, 4}, kM);
  std::vector<int32_t> of_d(kM);
  for (int i = 0; i < kM; ++i) of_d[static_cast<size_t>(i)] = (i * 7 + 3) % kRowsOfD;
  for (const auto& [i, index] : {std::pair{5, -1}, {40, kLeast}, {41, kMost}, {75, kRowsOfD}, {100, -160}})
    of_d[static_cast<size_t>(i)] = index;
  of_d[90] = of_d[20];  // twice
  for (const char* order : {"eager", "late", "random:4"}) {
    const Engine engine = Open(order);
    for (const char* schedule : kSchedules) {
      std::vector<float> d(kRowsOfD * kN, kUntouched), sums(kRowsOfD, 0);
      GemmArguments arguments{.a = data.a.data(),
                              .b = data.b.data(),
                              .d = d.data(),
                              .group_offsets = data.offsets.data(),
                              .a_row_indices = of_a.data(),
                              .d_row_indices = of_d.data()};
      arguments.epilogue[0] = sums.data();
      const Status ran = RunFromHost(engine, problem, arguments, *ParseSchedule(schedule));
      ASSERT_TRUE(ran.has_value()) << schedule << ": " << ran.error().message;
      std::array<std::vector<float>, kRowsOfD> expected;  // what each row may be
      for (int i = 0; i < kM; ++i) {
        const int row = of_d[static_cast<size_t>(i)], group = data.GroupOf(i);
        if (group == 0 || row < 0 || row >= kRowsOfD) continue;
        expected[static_cast<size_t>(row)].push_back(
            static_cast<float>(kK * (of_a[static_cast<size_t>(i)] + 1) * group));
      }
      for (int row = 0; row < kRowsOfD; ++row) {
        const std::vector<float>& any = expected[static_cast<size_t>(row)];
        float sum = 0;
        for (const float value : any) sum += kN * value;
        EXPECT_EQ(sums[static_cast<size_t>(row)], sum) << schedule << ", " << order << ": row " << row;
        const auto* first = d.data() + row * kN;
        ASSERT_TRUE(std::all_of(first, first + kN,
                                [&](float value) {
                                  return any.empty() ? value == kUntouched
                                                     : std::find(any.begin(), any.end(), value) != any.end();
                                }))
            << schedule << ", " << order << ": row " << row << " is " << first[0];
      }
      const auto report = engine.TakeReport();
      ASSERT_TRUE(report.has_value() && report->faults.empty()) << schedule;
    }
  }
}

// Weights of a router are those of rows of D, and residuals lie there.
TEST_P(RowIndices, WeightsAndResidualsAreThoseOfRowsOfD) {
  const Problem problem = *ParseProblem(
      "grouped_gemm groups=3 m=150 n=72 k=64 d=f32 rows=scatter d_rows=160 epilogue=scale_m:f32+residual:f32");
  Data data;
  data.a.assign(static_cast<size_t>(kM) * kK, 0x3f80);
  std::vector<int32_t> of_d(kM);
  for (int i = 0; i < kM; ++i) of_d[static_cast<size_t>(i)] = kRowsOfD - 1 - i;
  std::vector<float> weights(kRowsOfD), residual(kRowsOfD * kN);
  for (int row = 0; row < kRowsOfD; ++row) {
    weights[static_cast<size_t>(row)] = static_cast<float>(row);
    std::fill_n(residual.begin() + row * kN, kN, static_cast<float>(-2 * row));
  }
  const Engine engine = Open("random:5");
  for (const char* schedule : kSchedules) {
    std::vector<float> d(kRowsOfD * kN, kUntouched);
    GemmArguments arguments{.a = data.a.data(),
                            .b = data.b.data(),
                            .d = d.data(),
                            .group_offsets = data.offsets.data(),
                            .d_row_indices = of_d.data()};
    arguments.epilogue[0] = weights.data();
    arguments.epilogue[1] = residual.data();
    const Status ran = RunFromHost(engine, problem, arguments, *ParseSchedule(schedule));
    ASSERT_TRUE(ran.has_value()) << schedule << ": " << ran.error().message;
    for (int i = 0; i < kM; ++i) {
      const int row = of_d[static_cast<size_t>(i)], group = data.GroupOf(i);
      const float expected = group == 0 ? kUntouched : static_cast<float>(kK * group * row - 2 * row);
      EXPECT_EQ(d[static_cast<size_t>(row) * kN + 5], expected) << schedule << ": row " << row;
    }
  }
}

TEST_P(RowIndices, MissingVectorsAreNamed) {
  const Engine engine = Open("eager");
  const Data data;
  std::vector<float> d(kM * kN);
  const Problem problem = *ParseProblem("grouped_gemm groups=3 m=150 n=72 k=64 d=f32 rows=gather a_rows=7");
  const Status ran = RunFromHost(
      engine, problem,
      GemmArguments{.a = data.a.data(), .b = data.b.data(), .d = d.data(), .group_offsets = data.offsets.data()}, {});
  ASSERT_FALSE(ran.has_value());
  EXPECT_NE(ran.error().message.find("pointer a_row_indices is null"), std::string::npos) << ran.error().message;
}

INSTANTIATE_TEST_SUITE_P(Targets, RowIndices, testing::Values("sm_100a", "sm_90a"));

}  // namespace
}  // namespace laneshift
