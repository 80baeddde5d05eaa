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

std::string MeasuredText(const KernelReport& report) {
  if (!report.measured) return "not measured on this device";
  const ReportedMeasurement& m = *report.measured;
  return Cat(PrintFixed(m.us, 2), " us, 95 % between ", PrintFixed(m.low_us, 2), " and ", PrintFixed(m.high_us, 2),
             " us, of ", m.samples.size(), " samples");
}

const Prediction& PredictionOf(const KernelReport& report) { return report.facts.advised.advice.prediction; }

// The causes of the predicted time as one bar, the largest first.
std::string BreakdownBar(const Prediction& p) {
  constexpr double kWidth = 900, kHeight = 34;
  std::vector<size_t> order;
  for (size_t i = 0; i < p.by_us.size(); ++i) {
    if (p.by_us[i] > 0.004 * p.us) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p.by_us[a] > p.by_us[b]; });
  Svg svg(kWidth, kHeight, "the critical path");
  std::vector<LegendEntry> legend;
  double x = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const std::string name(autotune::BoundName(static_cast<Bound>(order[i])));
    const double us = p.by_us[order[i]], width = kWidth * us / p.us;
    const std::string colour = Cat("c", i % 8);
    const std::string share = Cat(PrintFixed(100 * us / p.us, 0), " %");
    svg.Box(x, 0, width, kHeight, colour, Cat(name, ": ", PrintFixed(us, 2), " us, ", share));
    if (width > 44) svg.Text(x + width / 2, 22, share, "on", "middle");
    legend.push_back({colour, Cat(name, " ", PrintFixed(us, 2), " us")});
    x += width;
  }
  return svg.Take() + LegendOf(legend);
}

// A logarithmic axis.
struct LogAxis {
  double low, high, from, to;
  double At(double value) const {
    return from + (to - from) * (std::log10(value) - std::log10(low)) / (std::log10(high) - std::log10(low));
  }
};

std::string Power(double value) { return value >= 1 ? ShortNumber(value) : PrintFixed(value, 2); }

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
  text += Row("measured", MeasuredText(report));
  return text + "</dl>";
}

std::string AdviceSection(const KernelReport& report) {
  std::string text = BreakdownBar(PredictionOf(report)) + "<ul>";
  const std::string advice = AdviceText(report.facts.advised);
  for (const std::string_view line : base::Split(advice, '\n')) {
    if (!line.empty()) text += Cat("<li>", EscapeHtml(line), "</li>");
  }
  return text + "</ul>";
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
  const auto decade = [](double value) { return std::pow(10, std::floor(std::log10(value))); };
  const LogAxis x{decade(std::min({least, moved, ridge}) / 1.5), 10 * decade(std::max({least, moved, ridge}) * 1.5), 70,
                  740};
  const LogAxis y{decade(std::min(reached, peak) / 1.5), 10 * decade(peak * 1.05), 330, 20};
  Svg svg(760, 380, "roofline", 520);
  for (double v = x.low; v <= x.high * 1.01; v *= 10) {
    svg.Line(x.At(v), y.from, x.At(v), y.to, "grid");
    svg.Text(x.At(v), 348, Power(v), "faint", "middle");
  }
  for (double v = y.low; v <= y.high * 1.01; v *= 10) {
    svg.Line(x.from, y.At(v), x.to, y.At(v), "grid");
    svg.Text(62, y.At(v) + 4, Power(v), "faint", "end");
  }
  svg.Text(405, 372, "FLOP for each byte of memory traffic", "faint", "middle");
  svg.Text(70, 13, "TFLOP/s", "faint");
  const double low = std::max(x.low, y.low / rate);
  svg.Path(Cat("M", ShortNumber(x.At(low)), " ", ShortNumber(y.At(low * rate)), "L", ShortNumber(x.At(ridge)), " ",
               ShortNumber(y.At(peak)), "L", ShortNumber(x.to), " ", ShortNumber(y.At(peak))),
           "roof");
  const auto point = [&](double intensity, double tflops, const char* classes, const std::string& name) {
    svg.Dot(x.At(intensity), y.At(tflops), 6, classes, Cat(name, ": ", PrintFixed(tflops, 0), " TFLOP/s"));
  };
  const double best = flops / floor.Us() * 1e-6;
  point(least, best, "floor", "the floor of the problem, with its launch");
  point(moved, reached, "c0", "this kernel, predicted");
  std::vector<LegendEntry> legend = {{"floor", Cat("the floor of the problem with its launch, ", PrintFixed(best, 0))},
                                     {"c0", Cat("this kernel, predicted, ", PrintFixed(reached, 0))}};
  if (report.measured) {
    const double measured = flops / report.measured->us * 1e-6;
    point(moved, measured, "c1", "this kernel, measured");
    legend.push_back({"c1", Cat("this kernel, measured, ", PrintFixed(measured, 0))});
  }
  return Scrolled(svg.Take()) + LegendOf(legend) +
         Cat("<p class=\"note\">The roof: ", PrintFixed(peak, 0),
             " TFLOP/s of all tensor cores at their clock under load, and ", PrintFixed(rate, 1),
             " TB/s of memory.</p>");
}

std::string BytesSection(const KernelReport& report) {
  HtmlTable table({{"level"}, {"moved", true}, {"at least", true}, {"times", true}});
  for (const LevelBytes& level : report.facts.levels)
    table.Add({std::string(level.level), PrintBytes(level.moved), PrintBytes(level.least),
               PrintFixed(level.moved / level.least, 2)});
  return table.Take() +
         "<p class=\"note\">At least: operands and output once through memory; each operand once through the levels "
         "above. Memory is the timing model's count, the others are exact counts of the tile program.</p>";
}

std::string WavesSection(const KernelReport& report) {
  const KernelAnalysis& f = report.facts;
  constexpr int64_t kShownWaves = 12;
  constexpr double kWidth = 640, kBar = 16;
  const int64_t waves = f.division.waves, shown = std::min(waves, kShownWaves);
  Svg svg(kWidth + 110, static_cast<double>(shown) * kBar + 8, "waves of tiles");
  for (int64_t i = 0; i < shown; ++i) {
    const int64_t wave = i + 1 == shown ? waves - 1 : i;  // the last one is always shown
    const bool last = wave + 1 == waves;
    const int64_t idle = last ? f.last_wave_idle : f.sm_count - f.division.resident * f.geometry.cluster;
    const double busy = kWidth * static_cast<double>(f.sm_count - idle) / f.sm_count;
    const double y = static_cast<double>(i) * kBar;
    svg.Text(60, y + 12, Cat("wave ", wave + 1), "faint", "end");
    svg.Box(68, y + 2, busy, kBar - 4, "c0", Cat(f.sm_count - idle, " SMs busy"));
    svg.Box(68 + busy, y + 2, kWidth - busy, kBar - 4, "idle", Cat(idle, " SMs idle"));
  }
  const int warps = static_cast<int>(f.geometry.threads) / 32;
  return Cat("<p>", EscapeHtml(LaunchText(f, report.compilation)), ".</p>") + svg.Take() +
         LegendOf({{"c0", "SMs with a tile"}, {"idle", "idle SMs"}}) +
         Cat("<p class=\"note\">Occupancy: ", warps,
             " of 64 warps of an SM. Its shared memory and Tensor Memory would hold ", f.ctas_per_sm,
             f.ctas_per_sm == 1 ? " CTA" : " CTAs", "; one is launched, and its roles overlap.</p>");
}

}  // namespace laneshift::tools
