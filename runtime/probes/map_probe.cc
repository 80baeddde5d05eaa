// Probes of where things are: which half of L2 is near an SM, and which SMs are in one GPC.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/placement.h"
#include "runtime/probes/ptx_text.h"
#include "runtime/probes/rate_families.h"
#include "runtime/probes/rate_run.h"

namespace laneshift::runtime {
namespace {

using base::Cat;

constexpr unsigned kThreads = 32;
constexpr int kLines = 64;
constexpr int kLineStride = 4096 + 128;  // bytes
constexpr int kChain = 4;                // dependent loads
constexpr uint32_t kTries = 64;
constexpr int kOutWords = 1 + kLines;
constexpr int kIterations = 20;  // of the power method

uint32_t MarkOf(size_t line) { return static_cast<uint32_t>(line) * 2246822519u + 1; }

// Thread 0 leaves the sum of the lines' marks, then for each line the clocks of the fastest chain of loads. The first
// word of a line is 0: the offset of the next load.
std::string DistanceKernel(const target::Target& target) {
  PtxText text(target, target.ptx_version, kThreads, 1, 0, false);
  text.Unless(text.other_threads(), [&] {
    const std::string out = text.OutOfCta(kOutWords), sum = text.Word("mov.u32", 0);
    const std::string began = text.Clock();
    text.ForEach("0", Cat(kLines), "1", [&](const std::string& line) {
      const std::string at = text.Wide("add.s64", text.in(), text.Wide("mul.wide.u32", line, kLineStride));
      text.Do("add.u32", sum, sum, text.Word("ld.relaxed.gpu.global.b32", Cat("[", at, "+4]")));
      const std::string least = text.Word("mov.u32", "0xffffffff");
      text.Repeat(text.repeats(), [&](const std::string&) {
        const std::string begin = text.Word("mov.u32", "%clock");
        std::string address = at, offset;
        for (int i = 0; i < kChain; ++i) {
          offset = text.Word("ld.relaxed.gpu.global.b32", Cat("[", address, "]"));
          address = text.Wide("add.s64", at, text.Wide("cvt.u64.u32", offset));
        }
        // The second reading of the clock has to wait for the last load.
        const std::string end = text.Word("mov.u32", "0xffffffff");
        text.DoIf(text.Predicate("setp.eq.u32", offset, 0), "mov.u32", end, "%clock");
        text.Do("min.u32", least, least, text.Word("sub.u32", end, begin));
      });
      text.Do("st.global.b32", Cat("[", text.Wide("add.s64", out, text.Wide("mul.wide.u32", line, 4)), "+4]"), least);
    });
    text.Do("st.global.b32", Cat("[", out, "]"), sum);
    const std::string ended = text.Clock();
    text.StoreClocks(began, ended);
  });
  return text.Finish();
}

RateProbe DistanceProbe(const target::Target& target) {
  RateProbe probe{.ptx = DistanceKernel(target),
                  .threads = kThreads,
                  .shared_bytes = target.smem_bytes * 3 / 5,  // one CTA on each SM
                  .fills_device = true,
                  .in = std::vector<uint32_t>(size_t{kLines} * kLineStride / 4, 0),
                  .out_words = kOutWords,
                  .expected = [](uint32_t) {
                    uint32_t sum = 0;
                    for (size_t line = 0; line < kLines; ++line) sum += MarkOf(line);
                    return std::vector<uint32_t>{sum};
                  }};
  for (size_t line = 0; line < kLines; ++line) probe.in[line * kLineStride / 4 + 1] = MarkOf(line);
  return probe;
}

}  // namespace

L2Sides SidesOf(const std::vector<std::vector<double>>& clocks) {
  const size_t sms = clocks.size(), lines = clocks.empty() ? 0 : clocks[0].size();
  L2Sides sides;
  if (sms < 2 || lines < 2) return sides;
  // Deviations from the means of the SM and of the line; with two halves they are the product of an SM's side and a
  // line's, which the power method finds.
  std::vector<double> of_line(lines, 0);
  std::vector<std::vector<double>> rest = clocks;
  for (auto& row : rest) {
    const double mean = std::accumulate(row.begin(), row.end(), 0.0) / static_cast<double>(lines);
    for (double& value : row) value -= mean;
  }
  for (size_t line = 0; line < lines; ++line) {
    for (const auto& row : rest) of_line[line] += row[line] / static_cast<double>(sms);
  }
  std::vector<double> side = rest[0], of_sm(sms);
  for (size_t line = 0; line < lines; ++line) {
    for (auto& row : rest) row[line] -= of_line[line];
    side[line] = rest[0][line];
  }
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    for (size_t sm = 0; sm < sms; ++sm) of_sm[sm] = std::inner_product(side.begin(), side.end(), rest[sm].begin(), 0.0);
    std::fill(side.begin(), side.end(), 0.0);
    for (size_t sm = 0; sm < sms; ++sm) {
      for (size_t line = 0; line < lines; ++line) side[line] += of_sm[sm] * rest[sm][line];
    }
    const double norm = std::sqrt(std::inner_product(side.begin(), side.end(), side.begin(), 0.0));
    if (norm == 0) return sides;  // every SM sees every line alike
    for (double& value : side) value /= norm;
  }
  double near = 0, far = 0;
  size_t near_count = 0, far_count = 0;
  for (size_t sm = 0; sm < sms; ++sm) {
    ++(of_sm[sm] > 0 ? sides.first_sms : sides.other_sms);
    for (size_t line = 0; line < lines; ++line) {
      const bool is_far = (of_sm[sm] > 0) == (side[line] > 0);
      (is_far ? far : near) += clocks[sm][line];
      ++(is_far ? far_count : near_count);
    }
  }
  if (near_count == 0 || far_count == 0) return sides;
  sides.near_clocks = near / static_cast<double>(near_count);
  sides.far_clocks = far / static_cast<double>(far_count);
  return sides;
}

std::vector<ProbePoint> L2Points(const target::Target& target) {
  const auto run = [&target](const ProbeDevice& on) -> Result<RateOutcome> {
    const bool timed = on.clocks == ProbeClocks::kMeasured;
    LS_ASSIGN(const ProbeWords words, RunOnce(on, DistanceProbe(target), timed ? kTries : kFewRepeats));
    if (!words.fault.empty()) return MakeError(ErrorCode::kDriver, words.fault);
    RateOutcome outcome{.wrong = words.wrong};
    if (!timed) return outcome;
    std::vector<std::vector<double>> clocks(words.ctas);
    for (size_t cta = 0; cta < words.ctas; ++cta) {
      for (size_t line = 0; line < kLines; ++line)
        clocks[cta].push_back(words.out[cta * kOutWords + 1 + line] / static_cast<double>(kChain));
    }
    const L2Sides sides = SidesOf(clocks);
    outcome.figure = sides.far_clocks - sides.near_clocks;
    outcome.detail = Cat("near ", std::lround(sides.near_clocks), " clk, far ", std::lround(sides.far_clocks), " clk; ",
                         sides.first_sms, " and ", sides.other_sms, " SMs");
    return outcome;
  };
  return {{.name = "l2.distance", .build = {}, .run = run}};
}

std::vector<ProbePoint> GpcPoints(const target::Target&) {
  const auto run = [](const ProbeDevice& on) -> Result<RateOutcome> {
    LS_ASSIGN(const std::vector<int> gpcs, PlaceClusters(on.device, on.target, on.stream));
    RateOutcome outcome;
    const int placed = std::accumulate(gpcs.begin(), gpcs.end(), 0);
    if (placed < 1 || placed > on.device.facts().sm_count)
      outcome.wrong = Cat("clusters were placed on ", placed, " SMs of ", on.device.facts().sm_count);
    if (on.clocks == ProbeClocks::kNone) return outcome;  // an emulator places clusters as it likes
    outcome.figure = static_cast<double>(gpcs.size());
    std::vector<std::string> sizes;
    for (const int sms : gpcs) sizes.push_back(Cat(sms));
    outcome.detail = Cat("SMs of each: ", base::Join(sizes, " "));
    return outcome;
  };
  return {{.name = "gpc.map", .unit = RateUnit::kGpcs, .build = {}, .run = run}};
}

}  // namespace laneshift::runtime
