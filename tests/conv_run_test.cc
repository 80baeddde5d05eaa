// The sweeps of convolutions, run on the emulator and checked against the double-precision reference.
//
// `make check` runs each line of conv.txt on each target in two of the modes that apply to it, one mode and one
// completion order further with every line, and some of the layers of conv_layers.txt as the chooser has them and in
// one mode with reuse. LANESHIFT_TEST_EXHAUSTIVE=1 runs each line of both in each mode under each order. With
// LANESHIFT_TEST_DEVICE=cuda[:N] the lines of that GPU's target run there; as a GPU has its own order, the tests named
// for an order then run a third of the lines each, exhaustive or not.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "laneshift/engine.h"
#include "tests/sweep.h"
#include "tests/test_device.h"
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
  int least;  // geometries that come up under one order and that it applies to
  bool without_tensor_memory = true;
};
constexpr Mode kModes[] = {
    {"lane_shift", "reuse=lane_shift shift=separate border=zeros", false, 20, false},
    {"chosen", "", true, 20},
    {"row_offset", "reuse=row_offset border=zeros", false, 20},
    {"gather", "reuse=im2col a_load=copy", true, 20},
    {"im2col", "reuse=im2col a_load=tma", false, 20},
    {"fused", "reuse=lane_shift shift=fused", false, 20, false},
    {"masked_row_offset", "reuse=row_offset border=mask", false, 3, false},
    {"masked_lane_shift", "reuse=lane_shift border=mask", false, 3, false},
    {"slices", "split_k=3", false, 20},
    {"transposed", "rows=n reuse=im2col a_load=tma", false, 20},
};
constexpr size_t kModeCount = std::size(kModes);
constexpr size_t kModesOfLine = 2;
constexpr size_t kLayerStep = 4;  // of the layers one of so many runs on a target, and others on another

bool Exhaustive() { return std::getenv("LANESHIFT_TEST_EXHAUSTIVE") != nullptr; }

// A target and the number of a completion order.
class ConvRun : public testing::TestWithParam<std::tuple<const char*, size_t>> {
 protected:
  const std::string target_ = std::get<0>(GetParam());
  const size_t order_ = std::get<1>(GetParam());
  // Of line i, whether this test runs it.
  bool Takes(size_t i) const { return (Exhaustive() && TestDevice() == nullptr) || i % kOrders == order_; }

  void SetUp() override {
    EngineOptions options;
    options.store_directory = ":memory:";
    if (TestDevice() == nullptr) {
      options.device = "emulator";
      options.target = target_;
      options.async_order = *ParseAsyncOrder(kOrderNames[order_]);
    } else {
      options.device = TestDevice();
    }
    Result<Engine> engine = Engine::Open(options);
    ASSERT_TRUE(engine.has_value()) << engine.error().message;
    engine_.emplace(std::move(*engine));
    if (engine_->target() != target_) GTEST_SKIP() << TestDevice() << " is a device of " << engine_->target();
  }

  // Whether the mode applies to the case; then it has been run and checked.
  bool Runs(const sweep::Case& c, const Mode& mode) {
    tools::RunSettings settings;
    settings.check = true;
    settings.repeat = 1;
    settings.constraint = *ParseSchedule(mode.constraint);
    const auto outcome = tools::RunProblem(*engine_, c.problem, settings);
    const std::string name = c.Name() + ", " + mode.name + ", " + kOrderNames[order_];
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
  std::optional<Engine> engine_;

  static void ExpectRefusal(const Error& error, const Mode& mode, const std::string& name) {
    EXPECT_FALSE(mode.always) << name << ": " << error.message;
    EXPECT_EQ(error.code, ErrorCode::kUnsupported) << name << ": " << error.message;
    EXPECT_EQ(error.message.find('\n'), std::string::npos) << name << ": " << error.message;
  }
};

std::vector<sweep::Case> CasesOf(const char* file, const std::string& target) {
  std::vector<sweep::Case> cases;
  for (sweep::Case& c : sweep::Cases(file)) {
    if (c.target->name == target) cases.push_back(std::move(c));
  }
  return cases;
}

TEST_P(ConvRun, EveryGeometryVerifiesWithoutHazard) {
  const std::vector<sweep::Case> cases = CasesOf("conv.txt", target_);
  for (size_t i = 0; i < cases.size(); ++i) {
    if (!Takes(i)) continue;
    size_t left = Exhaustive() ? kModeCount : kModesOfLine;
    // The number of modes is coprime to that of orders: every pair comes up.
    for (size_t k = 0; k < kModeCount && left > 0; ++k) {
      if (Runs(cases[i], kModes[(i + k) % kModeCount])) --left;
    }
    EXPECT_TRUE(Exhaustive() || left == 0) << cases[i].Name() << ": fewer modes apply than to every problem";
  }
  PrintCounts();
  for (const Mode& mode : kModes) {
    const bool exists = mode.without_tensor_memory || target_ == "sm_100a";
    if (exists) {
      EXPECT_GE(ran_[mode.name], mode.least) << mode.name;
    } else {
      EXPECT_EQ(ran_[mode.name], 0) << mode.name;
    }
  }
}

TEST_P(ConvRun, EveryLayerVerifiesWithoutHazard) {
  const std::vector<sweep::Case> cases = CasesOf("conv_layers.txt", target_);
  const size_t first = target_ == "sm_100a" ? 0 : kLayerStep / 2;
  const auto reuses = [](const Mode& mode) {
    const std::string constraint = mode.constraint;
    return constraint.find("reuse=") != std::string::npos && constraint.find("im2col") == std::string::npos;
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    if (!Takes(i) || (!Exhaustive() && i % kLayerStep != first)) continue;
    bool reused = false;
    for (size_t k = 0; k < kModeCount; ++k) {
      const Mode& mode = kModes[(i + k) % kModeCount];
      if (!Exhaustive() && mode.constraint[0] != '\0' && (reused || !reuses(mode))) continue;
      reused |= Runs(cases[i], mode) && reuses(mode);
    }
  }
  PrintCounts();
  int reused = 0;
  for (const Mode& mode : kModes) reused += reuses(mode) ? ran_[mode.name] : 0;
  EXPECT_GE(reused, Exhaustive() ? 15 : 3);
}

INSTANTIATE_TEST_SUITE_P(All, ConvRun,
                         testing::Combine(testing::Values("sm_100a", "sm_90a"), testing::Range(size_t{0}, kOrders)),
                         [](const auto& run) {
                           const std::string order = kOrderNames[std::get<1>(run.param)];
                           return std::string(std::get<0>(run.param)) + "_" + order.substr(0, order.find(':'));
                         });

}  // namespace
}  // namespace laneshift
