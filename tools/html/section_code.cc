#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "tools/html/markup.h"
#include "tools/html/sections.h"

namespace laneshift::tools {
namespace {

using base::Cat;

// Lines of the tile program are linked to those of the other texts by their number.
std::string ProgramLines(const std::string& text) {
  std::string lines;
  int number = 0;
  for (const std::string_view line : base::Split(text, '\n')) {
    ++number;
    if (!line.empty()) lines += Cat("<i data-l=\"", number, "\">", EscapeHtml(line), "\n</i>");
  }
  return lines;
}

// Of each line of the tile program, the role that it is in.
std::string_view RoleAt(const KernelReport& report, int line) {
  for (const ReportedRole& role : report.roles) {
    if (line >= role.first_line && line <= role.last_line) return role.name;
  }
  return {};
}

// What an op is called, without the results that it defines.
std::string_view OpText(std::string_view line) {
  line = base::Trim(line);
  if (const size_t equals = line.find(" = "); line.starts_with('%') && equals != std::string_view::npos)
    line = line.substr(equals + 3);
  return line.ends_with(" {") ? line.substr(0, line.size() - 2) : line;
}

// The name of the parameter that a line of PTX declares or reads: "map_a" of "…_param_0".
std::string ParameterOf(std::string_view line, const ir::Program& program) {
  constexpr std::string_view kParameter = "_param_";
  const size_t at = line.find(kParameter);
  if (at == std::string_view::npos) return {};
  const std::string_view digits = line.substr(at + kParameter.size());
  const auto index = base::ParseInt(digits.substr(0, digits.find_first_not_of("0123456789")));
  if (!index || *index < 0 || static_cast<size_t>(*index) >= program.params.size()) return {};
  return ir::PrintBinding(program.params[static_cast<size_t>(*index)].binding);
}

// A text whose lines are linked. Where another role or op begins, a comment says so; parameters are named.
std::string LinkedLines(const KernelReport& report, std::string_view text, const std::vector<int>& from,
                        std::string_view comment) {
  const std::vector<std::string_view> program = base::Split(report.code.program, '\n');
  std::string lines;
  std::string_view role;
  size_t number = 0;
  int current = 0;
  for (const std::string_view line : base::Split(text, '\n')) {
    const int of = number < from.size() ? from[number] : 0;
    ++number;
    if (of > 0 && of != current && static_cast<size_t>(of) <= program.size()) {
      const std::string_view now = RoleAt(report, of);
      if (now != role) lines += Cat("<em>", comment, " role ", EscapeHtml(now), "\n</em>");
      role = now;
      lines += Cat("<em>", comment, " ", of, ": ", EscapeHtml(OpText(program[static_cast<size_t>(of) - 1])), "\n</em>");
      current = of;
    }
    const std::string parameter = ParameterOf(line, report.compilation.Product().program);
    const std::string note = parameter.empty() ? std::string() : Cat("<em> ", comment, " ", parameter, "</em>");
    lines +=
        of > 0 ? Cat("<i data-l=\"", of, "\">", EscapeHtml(line), note, "\n</i>") : Cat(EscapeHtml(line), note, "\n");
  }
  return lines;
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
  Svg svg(720, 350, "schedules");
  svg.Line(60, 300, 700, 300, "axis");
  svg.Line(60, 20, 60, 300, "axis");
  for (int i = 0; i <= 4; ++i) {
    svg.Text(54, y(most_y * i / 4) + 4, PrintFixed(most_y * i / 4, 1), "faint", "end");
    const double at = measured ? most_x * i / 4 : std::round(most_x * i / 4);  // ranks are whole
    svg.Text(x(at), 316, PrintFixed(at, measured ? 1 : 0), "faint", "middle");
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
          : "<p>A line marks the lines of the other texts that belong to the same op (move or tap). Comments in green "
            "are the report's: where a role or an op begins, and the names of parameters.</p>";
  const auto pane = [&](std::string_view title, std::string_view id, std::string_view lines) {
    text += Cat("<div><h3>", title, "</h3><pre id=\"", id, "\">", lines, "</pre></div>");
  };
  text += "<div class=\"code\">";
  pane("Tile program", "program-text", ProgramLines(code.program));
  pane("LLVM IR, before its passes", "llvm-text", LinkedLines(report, code.llvm_ir, code.llvm_lines, ";"));
  pane("PTX", "ptx-text", LinkedLines(report, code.ptx, code.ptx_lines, "//"));
  if (!code.sass.text.empty()) pane("SASS", "sass-text", LinkedLines(report, code.sass.text, code.sass.lines, "//"));
  text += "</div>";
  if (code.sass.text.empty()) text += Cat("<p class=\"note\">No SASS: ", EscapeHtml(code.no_sass), "</p>");
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
