// Every line of the sweep, run and checked against the double-precision reference.
//
// On the emulator, under each completion order, with no hazard. With LANESHIFT_TEST_DEVICE=cuda[:N] the lines of that
// GPU's target run there instead, once with ptxas and once with the driver's own compiler.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "laneshift/engine.h"
#include "tests/sweep.h"
#include "tests/test_device.h"
#include "tools/problem_run.h"

namespace laneshift {
namespace {

// The sweeps, and the minimum number of cases of a target: they must not silently shrink.
struct Sweep {
  const char* file;
  int least_sm_100a = 0, least_sm_90a = 0;
  bool repeats = false;  // D has the same bits under every order of completion
  int Least(std::string_view target) const { return target == "sm_90a" ? least_sm_90a : least_sm_100a; }
};
constexpr Sweep kSweeps[] = {{"gemm.txt", 70, 70},
                             {"eight_bit.txt", 65, 65},
                             {"clusters.txt", 20, 20},
                             {"pingpong.txt", 0, 30},
                             {"resident.txt", 35, 35},
                             {"packs.txt", 30, 30},
                             {"panels.txt", 20, 35},
                             {"pixels.txt", 9, 9},
                             {"registers.txt", 6, 16},
                             {"ordered.txt", 39, 43},
                             {"operand_types.txt", 60, 60},
                             {"block_scaled.txt", 56, 0},
                             {"narrow_types.txt", 92, 0},
                             {"quantized_outputs.txt", 55, 38},
                             {"sparse.txt", 38, 0},
                             {"grouped.txt", 63, 66},
                             {"conv_dgrad.txt", 53, 48, true},
                             {"conv_wgrad.txt", 44, 38, true},
                             {"depthwise.txt", 72, 72, true},
                             {"gemv.txt", 58, 51, true},
                             {"merged_groups.txt", 28, 27, true}};

// Runs every case of the engine's target that `wanted` takes, on the emulator under each of the orders; `variation`
// names the run in failures. Returns how many there were.
template <typename Wanted>
int RunCases(const Sweep& sweep, const Result<Engine>& engine, const std::string& variation,
             const std::vector<std::string>& orders, const Wanted& wanted) {
  EXPECT_TRUE(engine.has_value()) << engine.error().message;
  int ran = 0;
  for (const sweep::Case& c : sweep::Cases(sweep.file)) {
    if (!engine || c.target->name != engine->target() || !wanted(c)) continue;
    ++ran;
    tools::RunSettings settings;
    settings.check = true;
    settings.repeat = 1;
    settings.constraint = c.constraint;
    settings.group_sizes = c.group_sizes;
    settings.async_orders = orders;
    const auto outcome = tools::RunProblem(*engine, c.problem, settings);
    EXPECT_TRUE(outcome.has_value()) << c.Name() << ", " << variation << ": " << outcome.error().message;
    if (!outcome) continue;
    EXPECT_TRUE(outcome->verified.value_or(false)) << c.Name() << ", " << variation << ": " << [&] {
      std::string reasons;
      for (const std::string& failure : outcome->failures) reasons += failure + "; ";
      return reasons;
    }();
    const bool compared = sweep.repeats && orders.size() > 1;
    EXPECT_TRUE(!compared || outcome->same_bits.value_or(false)) << c.Name() << ", " << variation << ": other bits";
  }
  return ran;
}

EngineOptions Emulated(const char* target) {
  EngineOptions options;
  options.store_directory = ":memory:";
  options.device = "emulator";
  options.target = target;
  return options;
}

class EmulatedSweep : public testing::TestWithParam<std::tuple<const char*, Sweep>> {};

TEST_P(EmulatedSweep, VerifiesWithoutHazard) {
  if (TestDevice() != nullptr) GTEST_SKIP() << "LANESHIFT_TEST_DEVICE=" << TestDevice() << " asks for a GPU";
  const auto& [target, sweep] = GetParam();
  EngineOptions options = Emulated(target);
  std::set<int> devices;
  for (const sweep::Case& c : sweep::Cases(sweep.file)) devices.insert(c.multiprocessors());
  int ran = 0;
  for (const int multiprocessors : devices) {
    options.emulator_multiprocessors = multiprocessors;
    ran += RunCases(sweep, Engine::Open(options), target, {"eager", "late", "random:1"},
                    [&](const sweep::Case& c) { return c.multiprocessors() == multiprocessors; });
  }
  EXPECT_GE(ran, sweep.Least(target));
}

std::string NameOf(const testing::TestParamInfo<EmulatedSweep::ParamType>& swept) {
  std::string name = std::string(std::get<0>(swept.param)) + "_" + std::get<1>(swept.param).file;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, EmulatedSweep,
                         testing::Combine(testing::Values("sm_100a", "sm_90a"), testing::ValuesIn(kSweeps)), NameOf);
INSTANTIATE_TEST_SUITE_P(Relatives, EmulatedSweep,
                         testing::Combine(testing::Values("sm_103a", "sm_110a", "sm_100f"),
                                          testing::Values(Sweep{"relatives.txt", 8, 0})),
                         NameOf);

// Work stealing may be refused: then every cluster starts.
TEST(RefusedTakeover, Verifies) {
  if (TestDevice() != nullptr) GTEST_SKIP() << "LANESHIFT_TEST_DEVICE=" << TestDevice() << " asks for a GPU";
  EngineOptions options = Emulated("sm_100a");
  options.cluster_cancel = ClusterCancel::kRefuse;
  EXPECT_GE(RunCases({"clusters.txt"}, Engine::Open(options), "refused", {"eager", "late", "random:3"},
                     [](const sweep::Case& c) { return c.constraint.value.scheduler == Scheduler::kClc; }),
            10);
}

class GpuSweep : public testing::TestWithParam<Sweep> {};

TEST_P(GpuSweep, Verifies) {
  if (TestDevice() == nullptr) GTEST_SKIP() << "runs where LANESHIFT_TEST_DEVICE=cuda names a GPU";
  for (const Assembler assembler : {Assembler::kDriver, Assembler::kAuto}) {
    EngineOptions options;
    options.store_directory = ":memory:";
    options.device = TestDevice();
    options.assembler = assembler;
    const auto engine = Engine::Open(options);
    ASSERT_TRUE(engine.has_value()) << engine.error().message;
    EXPECT_GE(RunCases(GetParam(), engine, assembler == Assembler::kDriver ? "driver" : "auto", {},
                       [](const sweep::Case&) { return true; }),
              GetParam().Least(engine->target()));
  }
}
INSTANTIATE_TEST_SUITE_P(GpuAll, GpuSweep, testing::ValuesIn(kSweeps), [](const auto& swept) {
  std::string name = swept.param.file;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

}  // namespace
}  // namespace laneshift
