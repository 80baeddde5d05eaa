#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "tools/html/markup.h"
#include "tools/html/sections.h"

namespace laneshift::tools {
namespace {

using base::Cat;

// Lines of the tile program are linked to those of the PTX by their number.
std::string ProgramLines(const std::string& text) {
  std::string lines;
  int number = 0;
  for (const std::string_view line : base::Split(text, '\n')) {
    ++number;
    if (!line.empty()) lines += Cat("<i data-l=\"", number, "\">", EscapeHtml(line), "\n</i>");
  }
  return lines;
}

std::string PtxLines(const ReportedCode& code) {
  std::string lines;
  size_t number = 0;
  for (const std::string_view line : base::Split(code.ptx, '\n')) {
    const int from = number < code.ptx_lines.size() ? code.ptx_lines[number] : 0;
    ++number;
    lines += from > 0 ? Cat("<i data-l=\"", from, "\">", EscapeHtml(line), "\n</i>") : Cat(EscapeHtml(line), "\n");
  }
  return lines;
}

std::string Folded(std::string_view title, std::string_view text) {
  return Cat("<details><summary>", EscapeHtml(title), "</summary><pre>", EscapeHtml(text), "</pre></details>");
}

std::string OptionalUs(const std::optional<double>& us) { return us ? PrintFixed(*us, 2) : std::string(); }

// Predicted against measured where there are measurements; otherwise the predictions, from the fastest on.
std::string Scatter(const KernelReport& report) {
  const bool measured = std::any_of(report.candidates.begin(), report.candidates.end(),
                                    [](const ReportedCandidate& c) { return c.measured_us && c.predicted_us; });
  double most_x = 0, most_y = 0;
  struct ScatterPoint {
    double x, y;
    const ReportedCandidate* of;
  };
  std::vector<ScatterPoint> points;
  double rank = 0;
  for (const ReportedCandidate& candidate : report.candidates) {
    ++rank;
    if (!candidate.predicted_us || (measured && !candidate.measured_us)) continue;
    points.push_back({measured ? *candidate.measured_us : rank, *candidate.predicted_us, &candidate});
    most_x = std::max(most_x, points.back().x);
    most_y = std::max(most_y, points.back().y);
  }
  if (points.empty()) return {};
  if (measured) most_x = most_y = std::max(most_x, most_y);
  const auto x = [&](double value) { return 60 + 640 * value / most_x; };
  const auto y = [&](double value) { return 300 - 280 * value / most_y; };
  Svg svg(720, 350, "schedules", 460);
  svg.Line(60, 300, 700, 300, "axis");
  svg.Line(60, 20, 60, 300, "axis");
  for (int i = 0; i <= 4; ++i) {
    svg.Text(54, y(most_y * i / 4) + 4, PrintFixed(most_y * i / 4, 1), "faint", "end");
    svg.Text(x(most_x * i / 4), 316, PrintFixed(most_x * i / 4, measured ? 1 : 0), "faint", "middle");
  }
  if (measured) svg.Line(x(0), y(0), x(most_x), y(most_y), "grid");
  svg.Text(60, 12, "predicted us", "faint");
  svg.Text(700, 336, measured ? "measured us" : "rank", "faint", "end");
  for (const ScatterPoint& point : points)
    svg.Dot(x(point.x), y(point.y), point.of->taken ? 6 : 3, point.of->taken ? "c1" : "c0",
            Cat(point.of->shown, ": ", OptionalUs(point.of->predicted_us), " us predicted"));
  return Scrolled(svg.Take()) + LegendOf({{"c1", "this kernel"}, {"c0", "other schedules"}});
}

}  // namespace

std::string CodeSection(const KernelReport& report) {
  const ReportedCode& code = report.code;
  std::string text =
      code.ptx_lines.empty()
          ? std::string("<p>Lines of this kernel cannot be linked.</p>")
          : "<p>A line of the tile program or of the PTX marks the lines that belong to it in the other one "
            "(move or tap).</p>";
  text += Cat("<div class=\"code\"><div><h3>Tile program</h3><pre id=\"program-text\">", ProgramLines(code.program),
              "</pre></div><div><h3>PTX</h3><pre id=\"ptx-text\">", PtxLines(code), "</pre></div></div>");
  text += Folded("LLVM IR, before its passes", code.llvm_ir);
  text += code.sass.empty() ? Cat("<p class=\"note\">No SASS: ", EscapeHtml(code.no_sass), "</p>")
                            : Folded("SASS", code.sass);
  return text;
}

std::string SchedulesSection(const KernelReport& report) {
  HtmlTable table({{"#", true}, {"predicted us", true}, {"measured us", true}, {"bound"}, {"trial"}, {"schedule"}},
                  "sortable");
  size_t rank = 0;
  for (const ReportedCandidate& candidate : report.candidates)
    table.Add({Cat(++rank), OptionalUs(candidate.predicted_us), OptionalUs(candidate.measured_us), candidate.bound,
               candidate.verdict, candidate.shown},
              candidate.taken);
  std::string text = Scatter(report) + Cat("<div class=\"long\">", table.Take(), "</div>");
  if (report.candidates_left_out > 0)
    text += Cat("<p class=\"note\">", report.candidates_left_out,
                " slower ones are left out; laneshift explain --top 0 lists "
                "them.</p>");
  return text;
}

}  // namespace laneshift::tools
