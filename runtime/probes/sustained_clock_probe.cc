// Probes of the clock at the limit of power: the MMAs of a point of `wgmma` or `mma`, on every SM at once, on random
// data, for longer than a chip takes to lower its clock.
#include <algorithm>
#include <cmath>

#include "autotune/statistics.h"
#include "base/text.h"
#include "runtime/probes/probe_operands.h"
#include "runtime/probes/rate_families.h"
#include "runtime/probes/rate_run.h"

namespace laneshift::runtime {
namespace {

using base::Cat;

constexpr double kSeconds = 1.5, kLaunchSeconds = 0.01;
constexpr size_t kPartAtLimit = 4;  // of the launches, the last one of so many parts
constexpr unsigned kSeed = 12;

struct LoadedKind {
  const char* name;
  const char* point;  // whose MMAs it has
  ElementCodes codes;
};
constexpr LoadedKind kKinds[] = {{"f16", "wgmma.f16.ss.n256", kCodesF16},
                                 {"e4m3", "wgmma.e4m3.ss.n256", kCodesE4m3},
                                 {"f16", "mma.f16.ss.m128.n256.cta1", kCodesF16},
                                 {"f8f6f4", "mma.f8f6f4.ss.m128.n256.cta1", kCodesE4m3}};

// `clocks`: of one unit, at the full rate.
Result<RateOutcome> RunSustained(const ProbeDevice& on, RateProbe probe, double clocks, const ElementCodes& codes) {
  probe.fills_device = true;
  LS_ASSIGN(const ProbeWords words, RunOnce(on, probe, kFewRepeats));
  if (!words.fault.empty()) return MakeError(ErrorCode::kDriver, words.fault);
  RateOutcome outcome{.wrong = words.wrong};
  if (on.clocks == ProbeClocks::kNone) return outcome;
  FillUniform(probe.in, codes, kSeed);
  const double iteration = probe.per_repeat * clocks;
  const double fastest = autotune::PublishedMachine(on.target).clock_ghz * 1e9;
  const auto repeats = static_cast<uint32_t>(kLaunchSeconds * fastest / iteration);
  LS_ASSIGN(const std::vector<double> times, TimeLaunches(on, probe, repeats, kSeconds));
  const auto gigahertz = [&](double microseconds) { return repeats * iteration / (microseconds * 1e3); };
  const auto part = static_cast<ptrdiff_t>(std::max<size_t>(1, times.size() / kPartAtLimit));
  const std::vector<double> last(times.end() - part, times.end());
  const auto [least, most] = std::minmax_element(last.begin(), last.end());
  const double at_limit = autotune::EstimateOf(last).median;
  outcome.figure = gigahertz(at_limit);
  outcome.spread = (*most - *least) / at_limit;
  outcome.detail = Cat(std::lround(1e3 * gigahertz(times.front())), " MHz at first");
  return outcome;
}

}  // namespace

std::vector<ProbePoint> SustainedClockPoints(const target::Target& target) {
  std::vector<ProbePoint> points, all = WgmmaPoints(target);
  for (ProbePoint& point : MmaPoints(target)) all.push_back(std::move(point));
  for (const LoadedKind& kind : kKinds) {
    const auto of = std::find_if(all.begin(), all.end(), [&](const auto& point) { return point.name == kind.point; });
    if (of == all.end()) continue;
    const auto run = [point = *of, codes = kind.codes](const ProbeDevice& on) {
      return RunSustained(on, point.build(), point.assumed(autotune::PublishedMachine(on.target)), codes);
    };
    points.push_back({.name = Cat("sustained_clock.", kind.name),
                      .unit = RateUnit::kGigahertz,
                      .build = {},
                      .run = run,
                      .assumed = [](const autotune::Machine& machine) { return machine.busy_clock_ghz; }});
  }
  return points;
}

}  // namespace laneshift::runtime
