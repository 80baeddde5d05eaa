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

// The sweeps, and how many cases of a target they have at least: they did not silently shrink.
struct Sweep {
  const char* file;
  int least_sm_100a, least_sm_90a;
};
constexpr Sweep kSweeps[] = {
    {"gemm.txt", 70, 70}, {"eight_bit.txt", 65, 65}, {"clusters.txt", 20, 20}, {"turns.txt", 0, 30}};

const char* TestDevice() { return std::getenv("LANESHIFT_TEST_DEVICE"); }

// Runs every case of the engine's target; `variation` names the run in failures.
void RunCases(const Sweep& sweep, const EngineOptions& options, const std::string& variation) {
  const auto engine = Engine::Open(options);
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  int ran = 0;
  for (const sweep::Case& c : sweep::Cases(sweep.file)) {
    if (c.target->name != engine->target()) continue;
    ++ran;
    tools::RunSettings settings;
    settings.check = true;
    settings.repeat = 1;
    settings.constraint = c.constraint;
    const auto outcome = tools::RunProblem(*engine, c.problem, settings);
    ASSERT_TRUE(outcome.has_value()) << c.Name() << ", " << variation << ": " << outcome.error().message;
    EXPECT_TRUE(outcome->verified.value_or(false)) << c.Name() << ", " << variation << ": " << [&] {
      std::string reasons;
      for (const std::string& failure : outcome->failures) reasons += failure + "; ";
      return reasons;
    }();
  }
  EXPECT_GE(ran, engine->target() == "sm_90a" ? sweep.least_sm_90a : sweep.least_sm_100a) << variation;
}

struct Emulated {
  const char* target;
  const char* order;
  friend void PrintTo(const Emulated& e, std::ostream* out) { *out << e.target << " " << e.order; }
};

class EmulatedSweep : public testing::TestWithParam<std::tuple<Emulated, Sweep>> {};

TEST_P(EmulatedSweep, VerifiesWithoutHazard) {
  if (TestDevice() != nullptr) GTEST_SKIP() << "LANESHIFT_TEST_DEVICE=" << TestDevice() << " asks for a GPU";
  EngineOptions options;
  const auto& [emulated, sweep] = GetParam();
  options.device = "emulator";
  options.target = emulated.target;
  options.async_order = *ParseAsyncOrder(emulated.order);
  RunCases(sweep, options, std::string(emulated.target) + " " + emulated.order);
}

INSTANTIATE_TEST_SUITE_P(All, EmulatedSweep,
                         testing::Combine(testing::Values(Emulated{"sm_100a", "eager"}, Emulated{"sm_100a", "late"},
                                                          Emulated{"sm_100a", "random:1"},
                                                          Emulated{"sm_100a", "random:2"}, Emulated{"sm_90a", "eager"},
                                                          Emulated{"sm_90a", "late"}, Emulated{"sm_90a", "random:1"},
                                                          Emulated{"sm_90a", "random:2"}),
                                          testing::ValuesIn(kSweeps)),
                         [](const auto& swept) {
                           const Emulated emulated = std::get<0>(swept.param);
                           const std::string file = std::get<1>(swept.param).file;
                           std::string name = std::string(emulated.target) + "_" + emulated.order + "_" + file;
                           for (char& c : name) c = c == ':' || c == '.' ? '_' : c;
                           return name;
                         });

// Requests to take over other clusters may be refused: then every cluster starts.
TEST(RefusedTakeover, Verifies) {
  if (TestDevice() != nullptr) GTEST_SKIP() << "LANESHIFT_TEST_DEVICE=" << TestDevice() << " asks for a GPU";
  for (const char* order : {"eager", "late", "random:3"}) {
    EngineOptions options;
    options.device = "emulator";
    options.target = "sm_100a";
    options.async_order = *ParseAsyncOrder(order);
    options.takeover = Takeover::kRefused;
    RunCases({"clusters.txt", 20, 20}, options, std::string("refused, ") + order);
  }
}

TEST(GpuSweep, Verifies) {
  if (TestDevice() == nullptr) GTEST_SKIP() << "runs where LANESHIFT_TEST_DEVICE=cuda names a GPU";
  for (const Assembler assembler : {Assembler::kDriver, Assembler::kAuto}) {
    EngineOptions options;
    options.device = TestDevice();
    options.assembler = assembler;
    for (const Sweep& sweep : kSweeps) RunCases(sweep, options, assembler == Assembler::kDriver ? "driver" : "auto");
  }
}

}  // namespace
}  // namespace laneshift
