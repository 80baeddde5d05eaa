#include "runtime/probes/rate_probe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "autotune/machine.h"
#include "base/text.h"
#include "device/assembler.h"
#include "emulator/driver/driver.h"
#include "runtime/engine_parts.h"
#include "runtime/open_device.h"
#include "runtime/probes/probe_operands.h"
#include "runtime/probes/rate_families.h"
#include "runtime/probes/rate_run.h"

namespace laneshift::runtime {
namespace {

class RateProbes : public testing::TestWithParam<const char*> {
 protected:
  const target::Target& target() const { return target::NamedTarget(GetParam()); }
  std::vector<ProbePoint> Points() const {
    std::vector<ProbePoint> all;
    for (const RateFamily& family : RateFamilies()) {
      for (ProbePoint& point : family.points(target())) all.push_back(std::move(point));
    }
    return all;
  }
};

// Every word that a probe leaves is right, whatever completes first, and nothing in it is undefined.
TEST_P(RateProbes, AreRightUnderEveryOrder) {
  const auto engine = Engine::Open({.device = "emulator", .target = GetParam(), .store_directory = ":memory:"});
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  const Engine::Parts& parts = engine->parts();
  const auto active = parts.device.Activate();
  const auto stream = device::Stream::Create(parts.device.context());
  ASSERT_TRUE(active.has_value() && stream.has_value());
  for (const char* order : {"eager", "late", "random:3"}) {
    SetAsyncOrder(*ParseAsyncOrder(order));
    std::set<std::string> seen;
    for (const ProbePoint& point : Points()) {
      // Points whose kernels are the same differ only in their data.
      if (std::string_view(order) != "eager" && point.build && !seen.insert(point.build().ptx).second) continue;
      (void)emulator::TakeReport();
      const auto outcome = RunPoint({parts.device, *stream, parts.target, ProbeClocks::kNone}, point);
      const emulator::Report report = emulator::TakeReport();
      ASSERT_TRUE(outcome.has_value()) << point.name << ", " << order << ": " << outcome.error().message
                                       << report.Print();
      EXPECT_EQ(outcome->wrong, "") << point.name << ", " << order;
      EXPECT_TRUE(report.Clean()) << point.name << ", " << order << ": " << report.Print();
      EXPECT_FALSE(outcome->figure.has_value());
    }
  }
}

// Whether the kernel would be measured as it is written.
TEST_P(RateProbes, AreAssembledAsWritten) {
  const auto ptxas = device::PtxAssembler::Find({});
  if (!ptxas) GTEST_SKIP() << ptxas.error().message;
  std::set<std::string> seen;  // points of one family often differ only in their parameters
  for (const ProbePoint& point : Points()) {
    if (!point.build) continue;  // its kernel is in placement_probe_test.cc or below
    const RateProbe probe = point.build();
    if (!seen.insert(probe.ptx).second) continue;
    const auto made = ptxas->Assemble(probe.ptx, GetParam());
    ASSERT_TRUE(made.has_value()) << point.name << ": " << made.error().message;
    EXPECT_EQ(made->stack_bytes + made->spill_store_bytes + made->spill_load_bytes, 0) << point.name;
    EXPECT_TRUE(made->advisories.empty()) << point.name << ": " << made->log;
  }
  EXPECT_GT(seen.size(), 10u);
}

// One thread issues these for all of its warp. If ptxas does not know that it is one, it adds a loop to each.
TEST_P(RateProbes, SingleThreadsAreElected) {
  for (const ProbePoint& point : Points()) {
    const std::string ptx = point.build ? point.build().ptx : "";
    for (const char* single : {"tcgen05.mma", "tcgen05.shift", "tcgen05.cp", "cp.async.bulk"}) {
      const size_t first = ptx.find(single);
      if (first != std::string::npos) {
        EXPECT_LT(ptx.find("elect.sync"), first) << point.name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, RateProbes, testing::Values("sm_100a", "sm_90a"));

// A family's code names block scaling in the one way that all of its chips take.
TEST(RateProbe, MmasAreAssembledForAFamily) {
  const auto ptxas = device::PtxAssembler::Find({});
  if (!ptxas) GTEST_SKIP() << ptxas.error().message;
  std::set<std::string> seen;
  for (const ProbePoint& point : MmaPoints(target::NamedTarget("sm_100f"))) {
    const std::string ptx = point.build().ptx;
    if (!seen.insert(ptx).second) continue;
    const auto made = ptxas->Assemble(ptx, "sm_100f");
    ASSERT_TRUE(made.has_value()) << point.name << ": " << made.error().message;
  }
  EXPECT_GT(seen.size(), 20u);
}

// The square of a number that is uniform in [-1, 1) is 1/3 in the mean.
TEST(FillUniform, HasNumbersOfEveryMagnitudeBelowOne) {
  const auto mean_square = [](const ElementCodes& codes, int mantissa_bits) {
    std::vector<uint32_t> words(20'000);
    FillUniform(words, codes, 5);
    const uint32_t bias = codes.codes[1] >> mantissa_bits;
    double sum = 0, squares = 0;
    int count = 0;
    for (const uint32_t word : words) {
      for (int at = 0; at < 32; at += codes.bits, ++count) {
        const uint32_t code = word >> at & ((2u << (codes.bits - 1)) - 1), sign = code >> (codes.bits - 1);
        const uint32_t exponent = code >> mantissa_bits & ((1u << (codes.bits - 1 - mantissa_bits)) - 1);
        const double mantissa = 1 + std::ldexp(code & ((1u << mantissa_bits) - 1), -mantissa_bits);
        const double size = exponent == 0 ? 0 : std::ldexp(mantissa, static_cast<int>(exponent - bias));
        EXPECT_LT(size, 1);
        sum += sign != 0 ? -size : size;
        squares += size * size;
      }
    }
    EXPECT_NEAR(sum / count, 0, 0.02);
    return squares / count;
  };
  EXPECT_NEAR(mean_square(kCodesF16, 10), 1.0 / 3, 0.01);
  EXPECT_NEAR(mean_square(kCodesE4m3, 3), 1.0 / 3, 0.03);  // toward zero to four bits
}

// Two SMs are near the even lines, one is near the odd ones; each has its own offset, and so has each line.
TEST(L2Sides, AreFoundWhateverElseDiffers) {
  std::vector<std::vector<double>> clocks;
  for (const int even : {1, 1, 0}) {
    clocks.emplace_back();
    for (int line = 0; line < 16; ++line)
      clocks.back().push_back(200 + 3.0 * static_cast<double>(clocks.size()) + line % 3 + (line % 2 == even ? 180 : 0));
  }
  const L2Sides sides = SidesOf(clocks);
  EXPECT_NEAR(sides.far_clocks - sides.near_clocks, 180, 4);
  EXPECT_EQ(std::max(sides.first_sms, sides.other_sms), 2);
  EXPECT_EQ(std::min(sides.first_sms, sides.other_sms), 1);
  EXPECT_EQ(SidesOf({{5, 5}, {5, 5}}).far_clocks, 0) << "all alike";
}

// A wrong word is found, and is not the figure's fault.
TEST(RateProbe, WrongDataAreReported) {
  const auto engine = Engine::Open({.device = "emulator", .target = "sm_90a", .store_directory = ":memory:"});
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  const Engine::Parts& parts = engine->parts();
  const auto active = parts.device.Activate();
  const auto stream = device::Stream::Create(parts.device.context());
  for (const RateFamily& family : RateFamilies()) {
    if (family.name != "shared") continue;
    ProbePoint point = family.points(parts.target).front();
    point.build = [build = point.build] {
      RateProbe probe = build();
      probe.expected = [right = probe.expected](uint32_t cta) {
        std::vector<uint32_t> words = right(cta);
        words[5] += 1;
        return words;
      };
      return probe;
    };
    const auto outcome = RunPoint({parts.device, *stream, parts.target, ProbeClocks::kNone}, point);
    ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
    EXPECT_NE(outcome->wrong.find("1 of 1024 words of CTA 0 differ, first word 5"), std::string::npos)
        << outcome->wrong;
    return;
  }
  FAIL() << "no family 'shared'";
}

TEST(RateProbe, NamesAreUniqueAndFactsExist) {
  for (const target::Target& target : target::Targets()) {
    std::set<std::string> names;
    for (const RateFamily& family : RateFamilies()) {
      EXPECT_FALSE(family.doc.empty()) << family.name;
      for (const ProbePoint& point : family.points(target)) {
        EXPECT_TRUE(names.insert(point.name).second) << point.name;
        EXPECT_TRUE(point.name.starts_with(base::Cat(family.name, "."))) << point.name;
        autotune::Machine machine = autotune::PublishedMachine(target);
        if (!point.fact.empty()) {
          EXPECT_TRUE(autotune::SetFact(machine, point.fact, "1").has_value()) << point.name;
        }
        if (point.assumed) {
          EXPECT_GT(point.assumed(machine), 0) << point.name;
        }
      }
    }
    EXPECT_GT(names.size(), 40u) << target.name;
  }
}

}  // namespace
}  // namespace laneshift::runtime
