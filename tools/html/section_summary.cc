#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "tools/html/markup.h"
#include "tools/html/sections.h"
#include "tools/reports/schedule_view.h"

namespace laneshift::tools {
namespace {

using autotune::Bound;
using autotune::Prediction;
using base::Cat;

std::string Row(std::string_view name, std::string_view value) {
  return Cat("<dt>", EscapeHtml(name), "</dt><dd>", EscapeHtml(value), "</dd>");
}

// The samples of a measured time along a line, with their mean and the interval.
std::string DrawSamples(const Measurement& m) {
  if (m.samples.empty()) return {};
  const auto [least, most] = std::minmax_element(m.samples.begin(), m.samples.end());
  const double low = std::min(*least, m.low_us), high = std::max(*most, m.high_us);
  const auto x = [&](double us) { return 20 + 640 * (high > low ? (us - low) / (high - low) : 0.5); };
  Svg svg(680, 62, "samples of the measured time");
  svg.Line(20, 34, 660, 34, "axis");
  svg.Box(x(m.low_us), 22, std::max(1.0, x(m.high_us) - x(m.low_us)), 24, "wait",
          Cat("95 % between ", PrintFixed(m.low_us, 2), " and ", PrintFixed(m.high_us, 2), " us"));
  for (const double us : m.samples) svg.Dot(x(us), 34, 3, "sample", Cat(PrintFixed(us, 3), " us"));
  svg.Line(x(m.us), 18, x(m.us), 50, "roof");
  svg.Text(20, 60, Cat(PrintFixed(low, 2), " us"), "faint");
  svg.Text(660, 60, Cat(PrintFixed(high, 2), " us"), "faint", "end");
  svg.Text(x(m.us), 13, Cat(PrintFixed(m.us, 2), " us"), {}, "middle");
  return Scrolled(svg.Take());
}

const Prediction& PredictionOf(const KernelReport& report) { return report.facts.advised.advice.prediction; }

// The causes of the predicted time as one bar, the largest first.
std::string BreakdownBar(const Prediction& p) {
  std::vector<size_t> order;
  for (size_t i = 0; i < p.by_us.size(); ++i) {
    if (p.by_us[i] > 0.004 * p.us) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p.by_us[a] > p.by_us[b]; });
  std::string bar = "<div class=\"bar\">";
  std::vector<LegendEntry> legend;
  for (size_t i = 0; i < order.size(); ++i) {
    const std::string name(autotune::BoundName(static_cast<Bound>(order[i])));
    const double us = p.by_us[order[i]], part = 100 * us / p.us;
    const std::string colour = Cat("c", i % 8), share = Cat(PrintFixed(part, 0), " %");
    bar += Cat("<span class=\"", colour, "\" style=\"flex:", PrintFixed(part, 2), "\" title=\"",
               EscapeHtml(Cat(name, ": ", PrintFixed(us, 2), " us, ", share)), "\">", part > 6 ? share : std::string(),
               "</span>");
    legend.push_back({colour, Cat(name, " ", PrintFixed(us, 2), " us")});
  }
  return Cat("<p>The critical path:</p>", bar, "</div>", LegendOf(legend));
}

// What works, and for how much of the time, whatever the critical path is made of.
std::string BusyTable(const Prediction& p) {
  HtmlTable table({{"unit of the busiest SM"}, {"works", true}});
  const auto add = [&](std::string_view unit, double part) {
    table.Add({std::string(unit), Cat(PrintFixed(100 * part, 0), " %")});
  };
  add("tensor core, MMAs", p.busy.tensor_core);
  add("loads from L2", p.busy.l2);
  add("memory", p.busy.memory);
  return table.Take();
}

// A logarithmic axis, from a bit below the least value to a bit above the largest.
struct LogAxis {
  double low, high, from, to;
  double At(double value) const {
    return from + (to - from) * (std::log10(value) - std::log10(low)) / (std::log10(high) - std::log10(low));
  }
  // 1, 2, 5, 10, …
  std::vector<double> Ticks() const {
    std::vector<double> ticks;
    for (double decade = std::pow(10, std::floor(std::log10(low))); decade <= high; decade *= 10) {
      for (const double step : {1, 2, 5}) {
        if (decade * step >= low && decade * step <= high) ticks.push_back(decade * step);
      }
    }
    return ticks;
  }
};

std::string Power(double value) { return value >= 1 ? ShortNumber(value) : PrintFixed(value, 2); }

struct RooflinePoint {
  double intensity, tflops;
  const char* classes;
  std::string name;
};

// Names are put below each other, on that side of all points that has more room.
void DrawPoints(std::vector<RooflinePoint> points, const LogAxis& x, const LogAxis& y, Svg& svg) {
  std::stable_sort(points.begin(), points.end(),
                   [](const RooflinePoint& a, const RooflinePoint& b) { return a.tflops > b.tflops; });
  constexpr double kLine = 15;
  std::vector<double> taken;  // heights of names
  double first = x.to, last = x.from;
  for (const RooflinePoint& point : points) {
    first = std::min(first, x.At(point.intensity));
    last = std::max(last, x.At(point.intensity));
  }
  const bool left = first - x.from > x.to - last;
  const double side = left ? -1 : 1, edge = left ? first : last;
  for (const RooflinePoint& point : points) {
    const double px = x.At(point.intensity), py = y.At(point.tflops);
    double label = py + 24;  // below the roof
    while (std::any_of(taken.begin(), taken.end(), [&](double other) { return std::abs(other - label) < kLine; }))
      label += kLine;
    taken.push_back(label);
    svg.Line(px, py, edge + 16 * side, label - 4, "axis");
    svg.Dot(edge + 16 * side, label - 4, 4, point.classes);
    svg.Text(edge + 24 * side, label, point.name, {}, left ? "end" : "start");
    svg.Dot(px, py, 6, point.classes, point.name);
  }
}

}  // namespace

std::string SummarySection(const KernelReport& report) {
  const Compilation& c = report.compilation;
  std::string text = "<dl class=\"facts\">";
  text += Row("problem", PrintProblem(c.problem));
  text += Row("target", Cat(c.target->name, " (", c.device.description, ")"));
  text += Row("schedule", Cat(ShowSchedule(PrintSchedule(c.schedule), ScheduleView::kShort),
                              "; all other keys have "
                              "their defaults"));
  text +=
      Row("origin", Cat(ChoiceOriginName(c.choice),
                        c.choice == ChoiceOrigin::kGiven  ? ": the caller's constraint, completed by the timing model"
                        : c.choice == ChoiceOrigin::kRule ? ": the timing model's best; nothing was measured"
                                                          : ": from the store"));
  text += Row("kernel", compiler::KernelKey(c.Product().program));
  text += Row("launch", LaunchText(report.facts, c));
  text += Row("predicted", PredictionText(report.facts, c));
  text += Row("measured", MeasurementText(report.measured.ours));
  for (const PeerTime& peer : report.measured.peers) text += Row(peer.name, PeerText(peer, c.problem));
  text += "</dl>";
  return report.measured.ours ? text + DrawSamples(*report.measured.ours) : text;
}

std::string AdviceSection(const KernelReport& report) {
  std::string text = "<ul>";
  const std::string advice = AdviceText(report.facts.advised);
  for (const std::string_view line : base::Split(advice, '\n')) {
    if (!line.empty()) text += Cat("<li>", EscapeHtml(line), "</li>");
  }
  const Prediction& p = PredictionOf(report);
  return text + "</ul>" + BreakdownBar(p) + BusyTable(p);
}

std::string RooflineSection(const KernelReport& report) {
  const Compilation& c = report.compilation;
  const autotune::ProblemFloor& floor = report.facts.advised.advice.floor;
  const Prediction& p = PredictionOf(report);
  const double flops = ProblemFlops(c.problem);
  const double peak = flops / floor.tensor_us * 1e-6;  // TFLOP/s
  const double rate = c.device.machine.memory_rate;    // TB/s
  const double ridge = peak / rate;                    // FLOP a byte
  const double least = flops / ProblemBytes(c.problem), moved = flops / p.memory_bytes;
  const double reached = flops / p.us * 1e-6;
  const double best = flops / floor.Us() * 1e-6;
  std::vector<RooflinePoint> points = {
      {least, best, "floor", Cat("the floor, with its launch: ", PrintFixed(best, 0), " TFLOP/s")},
      {moved, reached, "c0", Cat("this kernel, predicted: ", PrintFixed(reached, 0))}};
  if (const auto& ours = report.measured.ours) {
    const double measured = flops / ours->us * 1e-6;
    points.push_back({moved, measured, "c1", Cat("this kernel, measured: ", PrintFixed(measured, 0))});
  }
  for (const PeerTime& peer : report.measured.peers) {
    const double other = flops / peer.us * 1e-6;
    points.push_back({least, other, "c4", Cat(peer.name, ", ", PrintFixed(peer.us, 2), " us: ", PrintFixed(other, 0))});
  }
  if (const auto& rival = report.facts.advised.rival) {
    const double other = flops / rival->prediction.us * 1e-6;
    points.push_back(
        {flops / rival->prediction.memory_bytes, other, "c3", Cat(rival->what, ": ", PrintFixed(other, 0))});
  }
  double low_x = ridge, high_x = ridge, low_y = peak;
  for (const RooflinePoint& point : points) {
    low_x = std::min(low_x, point.intensity), high_x = std::max(high_x, point.intensity);
    low_y = std::min(low_y, point.tflops);
  }
  const LogAxis x{low_x / 3, high_x * 3, 70, 780}, y{low_y / 4, peak * 1.6, 330, 24};
  Svg svg(800, 380, "roofline");
  for (const double v : x.Ticks()) {
    svg.Line(x.At(v), y.from, x.At(v), y.to, "grid");
    svg.Text(x.At(v), 348, Power(v), "faint", "middle");
  }
  for (const double v : y.Ticks()) {
    svg.Line(x.from, y.At(v), x.to, y.At(v), "grid");
    svg.Text(62, y.At(v) + 4, Power(v), "faint", "end");
  }
  svg.Text(425, 372, "FLOP for each byte of memory traffic", "faint", "middle");
  svg.Text(70, 13, "TFLOP/s", "faint");
  const double low = std::max(x.low, y.low / rate);
  svg.Path(Cat("M", ShortNumber(x.At(low)), " ", ShortNumber(y.At(low * rate)), "L", ShortNumber(x.At(ridge)), " ",
               ShortNumber(y.At(peak)), "L", ShortNumber(x.to), " ", ShortNumber(y.At(peak))),
           "roof");
  svg.Text(x.to, y.At(peak) - 6, Cat("tensor cores: ", PrintFixed(peak, 0), " TFLOP/s"), "strong", "end");
  const double foot = low * std::pow(ridge / low, 0.12);  // below the names of points
  svg.Text(x.At(foot) + 14, y.At(foot * rate) + 12, Cat("memory: ", PrintFixed(rate, 1), " TB/s"), "strong");
  DrawPoints(points, x, y, svg);
  return Scrolled(svg.Take()) +
         Cat("<p class=\"note\">The roof: all tensor cores at their clock under load, and the rate of memory. ",
             report.measured.peers.empty() ? "No library is among the points: laneshift bench --json compares with "
                                             "cuBLAS and cuDNN on a GPU, and "
                                             "inspect --peers reads what it printed."
                                           : "Peers are drawn above the fewest bytes; how many they move is not known.",
             "</p>");
}

std::string BytesSection(const KernelReport& report) {
  HtmlTable table({{"level"}, {"moved", true}, {"at least", true}, {"times", true}});
  for (const LevelBytes& level : report.facts.levels)
    table.Add({std::string(level.level), PrintBytes(level.moved), level.Least(), level.Times()});
  return table.Take() +
         "<p class=\"note\">At least: operands and output once through memory; each operand once through the levels "
         "above, and D once on its way out. Memory is the timing model's count, the others are counts of the tile "
         "program; D's tiles are whole ones there.</p>";
}

std::string WavesSection(const KernelReport& report) {
  const KernelAnalysis& f = report.facts;
  constexpr int64_t kShownWaves = 12;
  constexpr double kWidth = 640, kBar = 16;
  const int64_t waves = f.division.waves, shown = std::min(waves, kShownWaves);
  Svg svg(kWidth + 170, static_cast<double>(shown) * kBar + 8, "waves of tiles");
  for (int64_t i = 0; i < shown; ++i) {
    const int64_t wave = i + 1 == shown ? waves - 1 : i;  // the last one is always shown
    const bool last = wave + 1 == waves;
    const int64_t idle =
        last ? f.advised.advice.last_wave.idle_sms : f.sm_count - f.division.resident * f.geometry.cluster;
    const double busy = kWidth * static_cast<double>(f.sm_count - idle) / f.sm_count;
    const double y = static_cast<double>(i) * kBar;
    svg.Text(60, y + 12, Cat("wave ", wave + 1), "faint", "end");
    svg.Box(68, y + 2, busy, kBar - 4, "c0", Cat(f.sm_count - idle, " SMs busy"));
    svg.Box(68 + busy, y + 2, kWidth - busy, kBar - 4, "idle", Cat(idle, " SMs idle"));
    if (idle > 0) svg.Text(76 + kWidth, y + 12, Cat(idle, " SMs idle"), "faint");
  }
  const int warps = static_cast<int>(f.geometry.threads) / 32;
  return Cat("<p>", EscapeHtml(LaunchText(f, report.compilation)), ".</p>") + Scrolled(svg.Take()) +
         LegendOf({{"c0", "SMs with a tile"}, {"idle", "idle SMs"}}) +
         Cat("<p class=\"note\">Occupancy: ", warps,
             " of 64 warps of an SM. Its shared memory and Tensor Memory would hold ", f.ctas_per_sm,
             f.ctas_per_sm == 1 ? " CTA" : " CTAs", "; one is launched, and its roles overlap.</p>");
}

}  // namespace laneshift::tools
