// The sweeps of convolutions, run on the emulator and checked against the double-precision reference.
//
// `make check` runs each line of conv.txt on each target in two of the modes that apply to it, one mode and one
// completion order further with every line, and some of the layers of conv_layers.txt as the chooser has them and in
// one mode with reuse. LANESHIFT_TEST_EXHAUSTIVE=1 runs each line of both in each mode under each order.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <iterator>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "laneshift/engine.h"
#include "tests/sweep.h"
#include "tools/problem_run.h"

namespace laneshift {
namespace {

constexpr size_t kOrders = 3;
constexpr const char* kOrderNames[kOrders] = {"eager", "late", "random:1"};

// A way to compute a convolution. `always`: it applies to every valid problem.
struct Mode {
  const char* name;
  const char* constraint;
  bool always;
  int least;  // geometries that come up and that it applies to
  bool without_tensor_memory = true;
};
constexpr Mode kModes[] = {
    {"lane_shift", "reuse=lane_shift shift=separate border=zeros", false, 60, false},
    {"chosen", "", true, 60},
    {"row_offset", "reuse=row_offset border=zeros", false, 60},
    {"gather", "reuse=im2col a_load=copy", true, 60},
    {"im2col", "reuse=im2col a_load=tma", false, 60},
    {"fused", "reuse=lane_shift shift=fused", false, 60, false},
    {"masked_row_offset", "reuse=row_offset border=mask", false, 10, false},
    {"masked_lane_shift", "reuse=lane_shift border=mask", false, 10, false},
};
constexpr size_t kModeCount = std::size(kModes);
constexpr size_t kModesOfLine = 2;
constexpr size_t kLayerStep = 4;  // of the layers one of so many runs on a target, and others on another

bool Exhaustive() { return std::getenv("LANESHIFT_TEST_EXHAUSTIVE") != nullptr; }

// The engines of a target, one for each completion order. The emulator's state is the process's: opening one replaces
// what was there, so they follow each other.
class ConvRun : public testing::TestWithParam<const char*> {
 protected:
  Engine Open(size_t order) const {
    EngineOptions options;
    options.device = "emulator";
    options.target = GetParam();
    options.async_order = *ParseAsyncOrder(kOrderNames[order]);
    return *Engine::Open(options);
  }

  // Whether the mode applies to the case; then it has been run and checked.
  bool Runs(const Engine& engine, const sweep::Case& c, const Mode& mode, size_t order) {
    tools::RunSettings settings;
    settings.check = true;
    settings.repeat = 1;
    settings.constraint = *ParseSchedule(mode.constraint);
    const auto outcome = tools::RunProblem(engine, c.problem, settings);
    const std::string name = c.Name() + ", " + mode.name + ", " + kOrderNames[order];
    if (!outcome) {
      ExpectRefusal(outcome.error(), mode, name);
      return false;
    }
    ++ran_[mode.name];
    std::string reasons;
    for (const std::string& failure : outcome->failures) reasons += failure + "; ";
    EXPECT_TRUE(outcome->verified.value_or(false)) << name << ": " << reasons;
    return true;
  }

  // For the record of an exhaustive run.
  void PrintCounts() const {
    for (const auto& [mode, count] : ran_) std::cout << mode << ": " << count << " runs\n";
  }

  std::map<std::string, int> ran_;  // by mode

 private:
  static void ExpectRefusal(const Error& error, const Mode& mode, const std::string& name) {
    EXPECT_FALSE(mode.always) << name << ": " << error.message;
    EXPECT_EQ(error.code, ErrorCode::kUnsupported) << name << ": " << error.message;
    EXPECT_EQ(error.message.find('\n'), std::string::npos) << name << ": " << error.message;
  }
};

std::vector<sweep::Case> CasesOf(const char* file, const char* target) {
  std::vector<sweep::Case> cases;
  for (sweep::Case& c : sweep::Cases(file)) {
    if (c.target->name == target) cases.push_back(std::move(c));
  }
  return cases;
}

TEST_P(ConvRun, EveryGeometryVerifiesWithoutHazard) {
  const std::vector<sweep::Case> cases = CasesOf("conv.txt", GetParam());
  for (size_t order = 0; order < kOrders; ++order) {
    const Engine engine = Open(order);
    for (size_t i = 0; i < cases.size(); ++i) {
      if (!Exhaustive() && i % kOrders != order) continue;
      size_t left = Exhaustive() ? kModeCount : kModesOfLine;
      // The number of modes has no factor in common with that of orders: every pair comes up.
      for (size_t k = 0; k < kModeCount && left > 0; ++k) {
        if (Runs(engine, cases[i], kModes[(i + k) % kModeCount], order)) --left;
      }
      EXPECT_TRUE(Exhaustive() || left == 0) << cases[i].Name() << ": fewer modes apply than to every problem";
    }
  }
  PrintCounts();
  for (const Mode& mode : kModes) {
    const bool exists = mode.without_tensor_memory || std::string(GetParam()) == "sm_100a";
    if (exists) {
      EXPECT_GE(ran_[mode.name], mode.least) << mode.name;
    } else {
      EXPECT_EQ(ran_[mode.name], 0) << mode.name;
    }
  }
}

TEST_P(ConvRun, EveryLayerVerifiesWithoutHazard) {
  const std::vector<sweep::Case> cases = CasesOf("conv_layers.txt", GetParam());
  const size_t first = std::string(GetParam()) == "sm_100a" ? 0 : kLayerStep / 2;
  const auto reuses = [](const Mode& mode) { return !mode.always && std::string(mode.name) != "im2col"; };
  for (size_t order = 0; order < kOrders; ++order) {
    const Engine engine = Open(order);
    for (size_t i = 0; i < cases.size(); ++i) {
      if (!Exhaustive() && (i % kOrders != order || i % kLayerStep != first)) continue;
      bool reused = false;
      for (size_t k = 0; k < kModeCount; ++k) {
        const Mode& mode = kModes[(i + k) % kModeCount];
        if (!Exhaustive() && mode.constraint[0] != '\0' && (reused || !reuses(mode))) continue;
        reused |= Runs(engine, cases[i], mode, order) && reuses(mode);
      }
    }
  }
  PrintCounts();
  int reused = 0;
  for (const Mode& mode : kModes) reused += reuses(mode) ? ran_[mode.name] : 0;
  EXPECT_GE(reused, Exhaustive() ? 50 : 10);
}

INSTANTIATE_TEST_SUITE_P(Targets, ConvRun, testing::Values("sm_100a", "sm_90a"),
                         [](const auto& target) { return std::string(target.param); });

}  // namespace
}  // namespace laneshift
