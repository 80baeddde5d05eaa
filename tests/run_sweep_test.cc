// Every line of the sweep, run and checked against the double-precision reference.
//
// On the emulator, under each completion order, with no hazard. With LANESHIFT_TEST_DEVICE=cuda[:N] the lines of that
// GPU's target run there instead, once with ptxas and once with the driver's own compiler.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ostream>

#include "laneshift/engine.h"
#include "tests/sweep.h"
#include "tools/problem_run.h"

namespace laneshift {
namespace {

// Each sweep, and how many of its cases there are at least for a target: it did not silently shrink.
struct File {
  const char* name;
  int fewest;
};
constexpr File kFiles[] = {{"gemm.txt", 70}, {"eight_bit.txt", 65}};

const char* TestDevice() { return std::getenv("LANESHIFT_TEST_DEVICE"); }

// Runs every case of the engine's target; `variation` names the run in failures.
void RunFile(const Engine& engine, const File& file, const std::string& variation) {
  int ran = 0;
  for (const sweep::Case& c : sweep::Cases(file.name)) {
    if (c.target->name != engine.target()) continue;
    ++ran;
    tools::RunSettings settings;
    settings.check = true;
    settings.repeat = 1;
    settings.constraint = c.constraint;
    const auto outcome = tools::RunProblem(engine, c.problem, settings);
    ASSERT_TRUE(outcome.has_value()) << c.Name() << ", " << variation << ": " << outcome.error().message;
    EXPECT_TRUE(outcome->verified.value_or(false)) << c.Name() << ", " << variation << ": " << [&] {
      std::string reasons;
      for (const std::string& failure : outcome->failures) reasons += failure + "; ";
      return reasons;
    }();
  }
  EXPECT_GE(ran, file.fewest) << file.name << ", " << variation;
}

void RunCases(const EngineOptions& options, const std::string& variation) {
  const auto engine = Engine::Open(options);
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  for (const File& file : kFiles) RunFile(*engine, file, variation);
}

struct Emulated {
  const char* target;
  const char* order;
  friend void PrintTo(const Emulated& e, std::ostream* out) { *out << e.target << " " << e.order; }
};

class EmulatedSweep : public testing::TestWithParam<Emulated> {};

TEST_P(EmulatedSweep, VerifiesWithoutHazard) {
  if (TestDevice() != nullptr) GTEST_SKIP() << "LANESHIFT_TEST_DEVICE=" << TestDevice() << " asks for a GPU";
  EngineOptions options;
  options.device = "emulator";
  options.target = GetParam().target;
  options.async_order = *ParseAsyncOrder(GetParam().order);
  RunCases(options, std::string(GetParam().target) + " " + GetParam().order);
}

INSTANTIATE_TEST_SUITE_P(All, EmulatedSweep,
                         testing::Values(Emulated{"sm_100a", "eager"}, Emulated{"sm_100a", "late"},
                                         Emulated{"sm_100a", "random:1"}, Emulated{"sm_100a", "random:2"},
                                         Emulated{"sm_90a", "eager"}, Emulated{"sm_90a", "late"},
                                         Emulated{"sm_90a", "random:1"}, Emulated{"sm_90a", "random:2"}),
                         [](const auto& swept) {
                           std::string name = std::string(swept.param.target) + "_" + swept.param.order;
                           std::replace(name.begin(), name.end(), ':', '_');
                           return name;
                         });

TEST(GpuSweep, Verifies) {
  if (TestDevice() == nullptr) GTEST_SKIP() << "runs where LANESHIFT_TEST_DEVICE=cuda names a GPU";
  for (const Assembler assembler : {Assembler::kDriver, Assembler::kAuto}) {
    EngineOptions options;
    options.device = TestDevice();
    options.assembler = assembler;
    RunCases(options, assembler == Assembler::kDriver ? "driver" : "auto");
  }
}

}  // namespace
}  // namespace laneshift
