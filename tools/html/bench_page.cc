#include "tools/html/bench_page.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tools/html/markup.h"
#include "tools/html/page_frame.h"
#include "tools/reports/schedule_view.h"

namespace laneshift::tools {
namespace {

using base::Cat;

constexpr double kBarLeft = 20, kBarWidth = 760, kBarHeight = 14, kProblemGap = 34;

std::string ColourOf(const std::vector<std::string>& peers, std::string_view name) {
  const auto peer = std::find(peers.begin(), peers.end(), name);
  return peer == peers.end() ? "c0" : Cat("c", 1 + (peer - peers.begin()) % (kColours - 1));
}

// Higher is faster; the thin line is the interval that holds the true median with 95 %.
std::string DrawBars(const BenchPage& page, const std::vector<std::string>& peers) {
  double most = 0, height = 10;
  for (const BenchedProblem& one : page.problems) {
    for (const ContenderTime& contender : one.timed) most = std::max(most, one.flops / contender.us.low * 1e-6);
    height += kProblemGap + kBarHeight * static_cast<double>(one.timed.size());
  }
  const auto width = [&](double tflops) { return kBarWidth * tflops / most; };
  Svg svg(kBarLeft + kBarWidth + 220, height, "rates");
  double y = 0;
  for (const BenchedProblem& one : page.problems) {
    svg.Text(kBarLeft, y + 22, one.problem, "strong");
    y += 28;
    for (const ContenderTime& contender : one.timed) {
      const double rate = one.Tflops(contender);
      svg.Box(kBarLeft, y, width(rate), kBarHeight - 2, ColourOf(peers, contender.name),
              Cat(contender.name, ": ", PrintFixed(contender.us.median, 2), " us, ", PrintFixed(rate, 1), " TFLOP/s"));
      const double low = width(one.flops / contender.us.high * 1e-6), high = width(one.flops / contender.us.low * 1e-6);
      svg.Line(kBarLeft + low, y + kBarHeight / 2 - 1, kBarLeft + high, y + kBarHeight / 2 - 1, "roof");
      std::string text = Cat(PrintFixed(rate, 1), " ", contender.name);
      if (&contender != &one.timed.front()) text += Cat(", we are ", PrintFixed(one.Ratio(contender), 3), " x");
      svg.Text(kBarLeft + std::max(high, width(rate)) + 6, y + 10, text, "faint");
      y += kBarHeight;
    }
    y += kProblemGap - 28;
  }
  std::vector<LegendEntry> legend = {{"c0", "laneshift"}};
  for (const std::string& peer : peers) legend.push_back({ColourOf(peers, peer), peer});
  return "<p>TFLOP/s of each, longer is faster; a thin line is the interval that holds the true median with 95 %.</p>" +
         LegendOf(legend) + Scrolled(svg.Take());
}

std::string MeansOf(const BenchPage& page, const std::vector<std::string>& peers) {
  HtmlTable table({{"peer"}, {"problems", true}, {"geometric mean of the speedups", true}, {"we are faster in", true}});
  for (const std::string& peer : peers) {
    double sum = 0;
    int count = 0, faster = 0;
    for (const BenchedProblem& one : page.problems) {
      const ContenderTime* time = TimeOf(one, peer);
      if (time == nullptr) continue;
      sum += std::log(one.Ratio(*time));
      ++count;
      faster += one.Ratio(*time) > 1 ? 1 : 0;
    }
    table.Add({peer, Cat(count), PrintFixed(std::exp(sum / count), 3), Cat(faster)});
  }
  return table.Take();
}

std::string TableOf(const BenchPage& page, const std::vector<std::string>& peers) {
  std::string head = "<tr><th>problem</th><th class=\"n\">us</th><th class=\"n\">TFLOP/s</th>";
  for (const std::string& peer : peers)
    head += Cat("<th class=\"n\">", EscapeHtml(peer), " us</th><th class=\"n\">speedup</th>");
  std::string rows;
  for (const BenchedProblem& one : page.problems) {
    const ContenderTime& ours = one.timed.front();
    rows += Cat("<tr><td>", EscapeHtml(one.problem), "</td><td class=\"n\">", PrintFixed(ours.us.median, 2),
                "</td><td class=\"n\">", PrintFixed(one.Tflops(ours), 1), "</td>");
    for (const std::string& peer : peers) {
      const ContenderTime* time = TimeOf(one, peer);
      rows += time == nullptr ? std::string("<td class=\"n\"></td><td class=\"n\"></td>")
                              : Cat("<td class=\"n\">", PrintFixed(time->us.median, 2), "</td><td class=\"n\">",
                                    PrintFixed(one.Ratio(*time), 3), "</td>");
    }
    rows += Cat("<td>", EscapeHtml(one.choice), "</td><td>",
                EscapeHtml(ShowSchedule(ours.schedule, ScheduleView::kShort)), "</td></tr>");
  }
  return Scrolled(Cat("<table class=\"sortable\"><thead>", head, "<th>choice</th><th>schedule</th></tr></thead><tbody>",
                      rows, "</tbody></table>"));
}

std::string NotesOf(const BenchPage& page) {
  std::vector<std::string> notes;
  const auto add = [&](const std::string& note) {
    if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
  };
  for (const BenchedProblem& one : page.problems) {
    for (const std::string& missing : one.missing) add(missing);
    for (const ContenderTime& contender : one.timed) {
      for (const std::string& note : contender.notes) add(Cat(contender.name, ": ", note));
    }
  }
  if (notes.empty()) return {};
  std::string text = "<ul>";
  for (const std::string& note : notes) text += Cat("<li>", EscapeHtml(note), "</li>");
  return SectionOf("notes", "Notes", text + "</ul>");
}

}  // namespace

std::string RenderBench(const BenchPage& page, const nlohmann::ordered_json& json) {
  const std::vector<std::string> peers = PeersOf(page.problems);
  std::string body;
  if (!peers.empty()) body += SectionOf("means", "Against each peer", MeansOf(page, peers));
  if (!page.problems.empty()) body += SectionOf("rates", "Rates", DrawBars(page, peers));
  body += SectionOf("table", "Times", TableOf(page, peers)) + NotesOf(page);
  return FramePage({.title = Cat("laneshift bench, ", page.device, " (", page.target, ")"), .links = {}, .body = body},
                   json);
}

}  // namespace laneshift::tools
