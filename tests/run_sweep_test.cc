// Every line of the sweep, run and checked against the double-precision reference.
//
// On the emulator, under each completion order, with no hazard. With LANESHIFT_TEST_DEVICE=cuda[:N] the lines of that
// GPU's target run there instead, once with ptxas and once with the driver's own compiler.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "laneshift/engine.h"
#include "tests/sweep.h"
#include "tests/test_device.h"
#include "tools/problem_run.h"

namespace laneshift {
namespace {

// Runs every case of the engine's target that `wanted` takes, on the emulator under each of the orders; `variation`
// names the run in failures. Returns how many there were.
template <typename Wanted>
int RunCases(const sweep::File& file, const Result<Engine>& engine, const std::string& variation,
             const std::vector<std::string>& orders, const Wanted& wanted) {
  EXPECT_TRUE(engine.has_value()) << engine.error().message;
  int ran = 0;
  for (const sweep::Case& c : sweep::Cases(file.name)) {
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
    const bool compared = file.repeats && orders.size() > 1;
    EXPECT_TRUE(!compared || outcome->same_bits.value_or(false)) << c.Name() << ", " << variation << ": other bits";
  }
  return ran;
}

EngineOptions Emulated(std::string_view target) {
  EngineOptions options;
  options.store_directory = ":memory:";
  options.device = "emulator";
  options.target = target;
  return options;
}

using TargetAndFile = std::pair<std::string_view, sweep::File>;

class EmulatedSweep : public testing::TestWithParam<TargetAndFile> {};

TEST_P(EmulatedSweep, VerifiesWithoutHazard) {
  if (TestDevice() != nullptr) GTEST_SKIP() << "LANESHIFT_TEST_DEVICE=" << TestDevice() << " asks for a GPU";
  const auto& [target, file] = GetParam();
  EngineOptions options = Emulated(target);
  std::set<int> devices;
  for (const sweep::Case& c : sweep::Cases(file.name)) devices.insert(c.multiprocessors());
  int ran = 0;
  for (const int multiprocessors : devices) {
    options.emulator_multiprocessors = multiprocessors;
    ran += RunCases(file, Engine::Open(options), options.target, {"eager", "late", "random:1"},
                    [&](const sweep::Case& c) { return c.multiprocessors() == multiprocessors; });
  }
  EXPECT_GE(ran, file.Least(target));
}

std::vector<TargetAndFile> TargetsAndFiles() {
  std::vector<TargetAndFile> all;
  for (const target::Target& target : target::Targets()) {
    for (const sweep::File& file : sweep::kFiles) {
      if (file.Least(target.name) > 0) all.emplace_back(target.name, file);
    }
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, EmulatedSweep, testing::ValuesIn(TargetsAndFiles()), [](const auto& swept) {
  std::string name = std::string(swept.param.first) + "_" + swept.param.second.name;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

// Work stealing may be refused: then every cluster starts.
TEST(RefusedTakeover, Verifies) {
  if (TestDevice() != nullptr) GTEST_SKIP() << "LANESHIFT_TEST_DEVICE=" << TestDevice() << " asks for a GPU";
  EngineOptions options = Emulated("sm_100a");
  options.cluster_cancel = ClusterCancel::kRefuse;
  EXPECT_GE(RunCases({"clusters.txt"}, Engine::Open(options), "refused", {"eager", "late", "random:3"},
                     [](const sweep::Case& c) { return c.constraint.value.scheduler == Scheduler::kClc; }),
            10);
}

class GpuSweep : public testing::TestWithParam<sweep::File> {};

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
INSTANTIATE_TEST_SUITE_P(GpuAll, GpuSweep, testing::ValuesIn(sweep::kFiles), [](const auto& swept) {
  std::string name = swept.param.name;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

}  // namespace
}  // namespace laneshift
