// Grouped GEMMs through the public interface: what a kernel does with the offsets that are in device memory, valid or
// not. Rows that belong to no group keep their values, and the emulator reports any access outside of an operand.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "laneshift/c.h"
#include "laneshift/engine.h"
#include "laneshift/host_run.h"

namespace laneshift {
namespace {

constexpr int kGroups = 4, kM = 200, kN = 72, kK = 64;
constexpr float kUntouched = -12345;

// The group of each row by the rules of laneshift/problem.h; -1: none. With layout=masked there are kM for each group.
std::vector<int> GroupsBySizes(const std::vector<int32_t>& sizes) {
  std::vector<int> groups(kGroups * kM, -1);
  for (int g = 0; g < kGroups; ++g) {
    const auto first = groups.begin() + g * kM;
    std::fill(first, first + std::clamp(sizes[static_cast<size_t>(g)], 0, kM), g);
  }
  return groups;
}
std::vector<int> GroupsOf(const std::vector<int32_t>& offsets) {
  std::vector<int> groups(kM, -1);
  int begin = std::clamp(offsets[0], 0, kM);
  for (int g = 0; g < kGroups; ++g) {
    const int end = std::clamp(offsets[static_cast<size_t>(g) + 1], begin, kM);
    std::fill(groups.begin() + begin, groups.begin() + end, g);
    begin = end;
  }
  return groups;
}

// A is 1 everywhere, and B is the number of its group plus 1: exact in every order of summation.
struct Data {
  std::vector<uint16_t> a = std::vector<uint16_t>(kGroups * kM * kK, 0x3f80);
  std::vector<uint16_t> b;
  Data() {
    constexpr uint16_t kNumbers[kGroups] = {0x3f80, 0x4000, 0x4040, 0x4080};  // 1, 2, 3, 4 in bf16
    for (const uint16_t number : kNumbers) b.insert(b.end(), kN * kK, number);
  }
};

struct Case {
  const char* name;
  std::vector<int32_t> offsets;
};

class GroupedGemm : public testing::TestWithParam<const char*> {
 protected:
  Engine Open(const char* order) {
    EngineOptions options{.device = "emulator", .target = GetParam(), .store_directory = ":memory:"};
    options.async_order = *ParseAsyncOrder(order);
    options.emulator_multiprocessors = 5;
    return *Engine::Open(options);
  }
};

TEST_P(GroupedGemm, TakesOffsetsAsTheyAre) {
  const Case cases[] = {
      {"valid", {0, 7, 7, 150, 199}},
      {"the first group begins later", {30, 60, 61, 62, 200}},
      {"all rows in one group", {0, 0, 200, 200, 200}},
      {"no rows", {0, 0, 0, 0, 0}},
      {"no rows, at the end", {200, 200, 200, 200, 200}},
      {"descending", {0, 100, 50, 120, 90}},
      {"negative", {-100, -3, 40, -2147483647 - 1, 64}},
      {"beyond m", {0, 64, 201, 2147483647, 100}},
      {"all beyond m", {500, 600, 700, 800, 900}},
      {"a long fall", {2147483647, -2147483647 - 1, 5, 6, 7}},
  };
  const Data data;
  const char* schedules[] = {"tile=64x64x64 stages=2", "tile=16x64x64 stages=2 rows=n",
                             "tile=64x64x64 stages=2 d_store=rows",
                             "tile=64x64x64 stages=2 cluster=2x1 d_store=direct"};
  const auto problem = ParseProblem("grouped_gemm groups=4 m=200 n=72 k=64 a=bf16 d=f32");
  ASSERT_TRUE(problem.has_value()) << problem.error().message;
  for (const char* order : {"eager", "late", "random:4"}) {
    const Engine engine = Open(order);
    for (const char* schedule : schedules) {
      for (const Case& c : cases) {
        std::vector<float> d(kM * kN, kUntouched);
        const Status ran = RunFromHost(
            engine, *problem,
            GemmArguments{.a = data.a.data(), .b = data.b.data(), .d = d.data(), .group_offsets = c.offsets.data()},
            *ParseSchedule(schedule));
        ASSERT_TRUE(ran.has_value()) << c.name << ", " << schedule << ": " << ran.error().message;
        const std::vector<int> groups = GroupsOf(c.offsets);
        for (int row = 0; row < kM; ++row) {
          const int group = groups[static_cast<size_t>(row)];
          const float expected = group < 0 ? kUntouched : static_cast<float>(kK * (group + 1));
          const auto* first = d.data() + row * kN;
          ASSERT_TRUE(std::all_of(first, first + kN, [&](float value) { return value == expected; }))
              << c.name << ", " << schedule << ", " << order << ": row " << row << " of group " << group;
        }
        const auto report = engine.TakeReport();
        ASSERT_TRUE(report.has_value());
        EXPECT_TRUE(report->Clean()) << c.name << ": " << (report->hazards.empty() ? "" : report->hazards.front());
      }
    }
  }
}

TEST_P(GroupedGemm, TakesSizesAsTheyAre) {
  const Case cases[] = {
      {"valid", {7, 0, 200, 65}},
      {"no rows", {0, 0, 0, 0}},
      {"all rows", {200, 200, 200, 200}},
      {"invalid", {-1, 201, 2147483647, -2147483647 - 1}},
  };
  const Data data;
  const auto problem = ParseProblem("grouped_gemm groups=4 m=200 n=72 k=64 a=bf16 d=f32 layout=masked");
  ASSERT_TRUE(problem.has_value()) << problem.error().message;
  for (const char* order : {"eager", "late", "random:4"}) {
    const Engine engine = Open(order);
    for (const char* schedule : {"tile=64x64x64 stages=2", "tile=16x64x64 stages=2 rows=n"}) {
      for (const Case& c : cases) {
        std::vector<float> d(kGroups * kM * kN, kUntouched);
        const Status ran = RunFromHost(
            engine, *problem,
            GemmArguments{.a = data.a.data(), .b = data.b.data(), .d = d.data(), .group_sizes = c.offsets.data()},
            *ParseSchedule(schedule));
        ASSERT_TRUE(ran.has_value()) << c.name << ", " << schedule << ": " << ran.error().message;
        const std::vector<int> groups = GroupsBySizes(c.offsets);
        for (size_t i = 0; i < d.size(); ++i) {
          const int group = groups[i / kN];
          ASSERT_EQ(d[i], group < 0 ? kUntouched : static_cast<float>(kK * (group + 1)))
              << c.name << ", " << schedule << ", " << order << ": row " << i / kN;
        }
        const auto report = engine.TakeReport();
        EXPECT_TRUE(report && report->Clean()) << c.name;
      }
    }
  }
}

// Scale factors of blocks. A is 1 and B the number of its group plus 1; the scale factor of a row differs from those of
// its neighbours, that of a run of k is half of the one before, and that of B twice the number of its group plus 1.
struct ScaledData {
  std::vector<uint8_t> a, b;
  std::vector<float> scale_a, scale_b;
  int runs = 0, k = 0;

  ScaledData(int depth, bool masked) : runs((depth + 127) / 128), k(depth) {
    constexpr uint8_t kNumbers[kGroups] = {0x38, 0x40, 0x44, 0x48};  // 1, 2, 3, 4 in e4m3
    a.assign(static_cast<size_t>(kGroups * kM * k), kNumbers[0]);
    for (int g = 0; g < kGroups; ++g) {
      b.insert(b.end(), static_cast<size_t>(kN * k), kNumbers[g]);
      for (int run = 0; run < runs; ++run) scale_b.push_back(static_cast<float>(2 * (g + 1)));
    }
    for (int g = 0; g < (masked ? kGroups : 1); ++g) {
      for (int run = 0; run < runs; ++run) {
        for (int row = 0; row < kM; ++row) scale_a.push_back(OfRow(row, run));
      }
    }
  }
  static float OfRow(int row, int run) { return static_cast<float>(row % 61 + 1) / static_cast<float>(1 << run); }
  float Expected(int row, int group) const {
    float sum = 0;
    for (int run = 0; run < runs; ++run)
      sum += OfRow(row, run) * static_cast<float>(std::min(128, k - 128 * run) * (group + 1) * 2 * (group + 1));
    return sum;
  }
};

TEST_P(GroupedGemm, TakesScaleFactorsOfBlocks) {
  const Case cases[] = {
      {"valid", {0, 7, 7, 150, 199}},        {"the first group begins later", {30, 61, 63, 66, 200}},
      {"descending", {3, 101, 50, 123, 90}}, {"outside", {-2147483647 - 1, -5, 90, 2147483647, 2147483647}},
      {"no rows", {0, 0, 0, 0, 0}},
  };
  for (const bool masked : {false, true}) {
    for (const int k : {512, 272}) {  // with scale factors of B that the TMA can reach, and that it cannot
      const ScaledData data(k, masked);
      const auto problem = ParseProblem(std::string("grouped_gemm groups=4 m=200 n=72 a=e4m3 d=f32 scale=block k=") +
                                        std::to_string(k) + (masked ? " layout=masked" : ""));
      ASSERT_TRUE(problem.has_value()) << problem.error().message;
      for (const char* order : {"eager", "late", "random:4"}) {
        const Engine engine = Open(order);
        for (const char* schedule : {"tile=64x64x128 stages=2", "tile=128x64x128 stages=2 cluster=2x1",
                                     "tile=64x64x128 stages=2 cluster=1x2"}) {
          for (const Case& c : cases) {
            const std::vector<int> groups = masked ? GroupsBySizes(c.offsets) : GroupsOf(c.offsets);
            std::vector<float> d(groups.size() * kN, kUntouched);
            GemmArguments arguments{.a = data.a.data(),
                                    .b = data.b.data(),
                                    .d = d.data(),
                                    .scale_a = data.scale_a.data(),
                                    .scale_b = data.scale_b.data()};
            (masked ? arguments.group_sizes : arguments.group_offsets) = c.offsets.data();
            const Status ran = RunFromHost(engine, *problem, arguments, *ParseSchedule(schedule));
            ASSERT_TRUE(ran.has_value()) << c.name << ", " << schedule << ": " << ran.error().message;
            for (size_t i = 0; i < d.size(); ++i) {
              const int row = static_cast<int>(i / kN), group = groups[i / kN];
              ASSERT_EQ(d[i], group < 0 ? kUntouched : data.Expected(masked ? row % kM : row, group))
                  << c.name << ", k=" << k << ", " << schedule << ", " << order << ": row " << row << " of " << group;
            }
            const auto report = engine.TakeReport();
            ASSERT_TRUE(report.has_value());
            EXPECT_TRUE(report->Clean()) << c.name << ": " << (report->hazards.empty() ? "" : report->hazards.front());
          }
        }
      }
    }
  }
}

// Parts of K. Row p of A is 1, and row p of B a power of two of its group, except for rows of no group, which are NaN:
// sums are exact, and rows of another part would show. With beta the sums are added to what D has.
TEST_P(GroupedGemm, AddsOnlyTheRowsOfAPart) {
  const Case cases[] = {
      {"valid", {0, 7, 71, 72, 200}},
      {"whole blocks", {0, 64, 128, 128, 192}},
      {"the first part begins later", {30, 60, 61, 62, 150}},
      {"all of K in one part", {0, 0, 200, 200, 200}},
      {"no rows", {0, 0, 0, 0, 0}},
      {"no rows at the end", {200, 200, 200, 200, 200}},
      {"descending", {100, 50, 150, 20, 180}},
      {"outside", {-2147483647 - 1, -5, 90, 2147483647, 2147483647}},
  };
  constexpr int kRows = 136;
  const auto problem = ParseProblem("grouped_gemm groups=4 m=136 n=72 k=200 a=bf16 d=f32 layout=k beta=1");
  ASSERT_TRUE(problem.has_value()) << problem.error().message;
  for (const char* order : {"eager", "late", "random:4"}) {
    const Engine engine = Open(order);
    for (const char* schedule :
         {"tile=64x64x64 stages=2", "tile=64x64x128 stages=2 cluster=2x1",
          "tile=64x64x64 stages=2 a_load=copy b_load=copy", "tile=64x64x64 stages=2 a_load=pack b_load=pack"}) {
      for (const Case& c : cases) {
        const std::vector<int> groups = GroupsOf(c.offsets);
        std::vector<uint16_t> a, b;
        std::vector<int> lengths(kGroups, 0);
        for (const int group : groups) {
          constexpr uint16_t kNan = 0x7fc0;
          a.insert(a.end(), kRows, group < 0 ? kNan : 0x3f80);
          b.insert(b.end(), kN, group < 0 ? kNan : static_cast<uint16_t>(0x3f80 + 0x80 * group));
          if (group >= 0) ++lengths[static_cast<size_t>(group)];
        }
        std::vector<float> d(kGroups * kRows * kN, 5);
        const Status ran = RunFromHost(
            engine, *problem,
            GemmArguments{
                .a = a.data(), .b = b.data(), .c = d.data(), .d = d.data(), .group_offsets = c.offsets.data()},
            *ParseSchedule(schedule));
        ASSERT_TRUE(ran.has_value()) << c.name << ", " << schedule << ": " << ran.error().message;
        for (size_t i = 0; i < d.size(); ++i) {
          const size_t group = i / (kRows * kN);
          ASSERT_EQ(d[i], 5 + static_cast<float>(lengths[group] << group))
              << c.name << ", " << schedule << ", " << order << ": group " << group << ", element " << i;
        }
        const auto report = engine.TakeReport();
        ASSERT_TRUE(report.has_value());
        EXPECT_TRUE(report->Clean()) << c.name << ": " << (report->hazards.empty() ? "" : report->hazards.front());
      }
    }
  }
}

TEST_P(GroupedGemm, NeedsTheOffsets) {
  const Data data;
  std::vector<float> d(kM * kN);
  const Engine engine = Open("eager");
  const auto problem = ParseProblem("grouped_gemm groups=4 m=200 n=72 k=64 a=bf16 d=f32");
  const auto plan = engine.MakePlan(*problem);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  const Status ran =
      RunFromHost(engine, *problem, GemmArguments{.a = data.a.data(), .b = data.b.data(), .d = d.data()});
  ASSERT_FALSE(ran.has_value());
  EXPECT_NE(ran.error().message.find("pointer group_offsets is null"), std::string::npos) << ran.error().message;
  const Status launched = plan->Execute(nullptr, GemmArguments{.a = d.data(), .b = d.data(), .d = d.data()});
  ASSERT_FALSE(launched.has_value());
  EXPECT_NE(launched.error().message.find("pointer group_offsets is null"), std::string::npos)
      << launched.error().message;
}

TEST_P(GroupedGemm, RefusesSchedulesThatNeedToKnowTheSizes) {
  const Engine engine = Open("eager");
  const auto problem = ParseProblem("grouped_gemm groups=4 m=2000 n=256 k=256");
  const std::pair<const char*, const char*> refused[] = {
      {"split_k=2", "use split_k=1"},
      {"b_keep=4", "use b_keep=0"},
  };
  for (const auto& [schedule, cure] : refused) {
    const auto plan = engine.MakePlan(*problem, *ParseSchedule(schedule));
    ASSERT_FALSE(plan.has_value()) << schedule;
    EXPECT_NE(plan.error().message.find(cure), std::string::npos) << schedule << ": " << plan.error().message;
  }
}

TEST_P(GroupedGemm, RefusesSchedulesThatNeedToKnowTheParts) {
  const Engine engine = Open("eager");
  const auto problem = ParseProblem("grouped_gemm groups=4 m=2000 n=256 k=256 layout=k");
  std::vector<std::pair<const char*, const char*>> refused = {{"split_k=2", "use split_k=1"},
                                                              {"b_keep=4", "use b_keep=0"}};
  if (engine.target() == "sm_100a") refused.emplace_back("scheduler=clc", "use scheduler=static");
  for (const auto& [schedule, cure] : refused) {
    const auto plan = engine.MakePlan(*problem, *ParseSchedule(schedule));
    ASSERT_FALSE(plan.has_value()) << schedule;
    EXPECT_NE(plan.error().message.find(cure), std::string::npos) << schedule << ": " << plan.error().message;
  }
}

// The same from C.
TEST_P(GroupedGemm, RunsFromC) {
  char error[256] = {};
  laneshift_engine* engine = nullptr;
  ASSERT_EQ(laneshift_engine_open("emulator", GetParam(), ":memory:", &engine, error, sizeof error), LANESHIFT_OK)
      << error;
  const Data data;
  const auto upload = [&](const void* from, size_t bytes) {
    laneshift_memory* memory = nullptr;
    EXPECT_EQ(laneshift_memory_allocate(engine, bytes, &memory, error, sizeof error), LANESHIFT_OK) << error;
    EXPECT_EQ(laneshift_memory_write(memory, 0, from, bytes, error, sizeof error), LANESHIFT_OK) << error;
    return memory;
  };
  laneshift_memory* a = upload(data.a.data(), data.a.size() * sizeof(uint16_t));
  laneshift_memory* b = upload(data.b.data(), data.b.size() * sizeof(uint16_t));
  for (const std::string form : {"", " layout=masked", " rows=gather+scatter a_rows=1"}) {
    const bool masked = form.find("masked") != std::string::npos, indexed = form.find("rows") != std::string::npos;
    const std::vector<int32_t> numbers = {0, 7, 7, 150, 199};  // as sizes the first four of them
    std::vector<int> groups = masked ? GroupsBySizes(numbers) : GroupsOf(numbers);
    std::vector<int32_t> first_row(kM, 0), reversed(kM);
    for (int i = 0; i < kM; ++i) reversed[static_cast<size_t>(i)] = kM - 1 - i;
    if (indexed) std::reverse(groups.begin(), groups.end());
    laneshift_memory* of_a = upload(first_row.data(), kM * sizeof(int32_t));
    laneshift_memory* of_d = upload(reversed.data(), kM * sizeof(int32_t));
    std::vector<float> out(groups.size() * kN, kUntouched);
    laneshift_memory* d = upload(out.data(), out.size() * sizeof(float));
    laneshift_memory* offsets = upload(numbers.data(), numbers.size() * sizeof(int32_t));
    const std::string problem = "grouped_gemm groups=4 m=200 n=72 k=64 d=f32" + form;
    laneshift_plan* plan = nullptr;
    ASSERT_EQ(laneshift_plan_make(engine, problem.c_str(), nullptr, &plan, error, sizeof error), LANESHIFT_OK) << error;
    laneshift_arguments arguments = {};
    arguments.struct_bytes = sizeof arguments;
    arguments.a = laneshift_memory_address(a);
    arguments.b = laneshift_memory_address(b);
    arguments.d = laneshift_memory_address(d);
    (masked ? arguments.group_sizes : arguments.group_offsets) = laneshift_memory_address(offsets);
    if (indexed) {
      arguments.a_row_indices = laneshift_memory_address(of_a);
      arguments.d_row_indices = laneshift_memory_address(of_d);
    }
    ASSERT_EQ(laneshift_plan_execute_arguments(plan, nullptr, &arguments, error, sizeof error), LANESHIFT_OK) << error;
    ASSERT_EQ(laneshift_memory_read(d, 0, out.data(), out.size() * sizeof(float), error, sizeof error), LANESHIFT_OK);
    for (size_t i = 0; i < out.size(); ++i) {
      const int group = groups[i / kN];
      ASSERT_EQ(out[i], group < 0 ? kUntouched : static_cast<float>(kK * (group + 1))) << "row " << i / kN;
    }
    laneshift_plan_free(plan);
    laneshift_memory_free(d);
    laneshift_memory_free(offsets);
    laneshift_memory_free(of_a);
    laneshift_memory_free(of_d);
  }
  laneshift_memory_free(a);
  laneshift_memory_free(b);
  laneshift_engine_close(engine);
}

INSTANTIATE_TEST_SUITE_P(Targets, GroupedGemm, testing::Values("sm_100a", "sm_90a"));

}  // namespace
}  // namespace laneshift
