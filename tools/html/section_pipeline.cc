#include <algorithm>
#include <set>

#include "base/text.h"
#include "tools/html/markup.h"
#include "tools/html/sections.h"

namespace laneshift::tools {
namespace {

using base::Cat;

constexpr double kTrackName = 130, kTrackWidth = 960, kTrackHeight = 22;

// Spans of a track between two times, as boxes; neighbours that would be narrower than a pixel are one.
void DrawTrack(const Timeline& timeline, size_t track, double from, double to, double y, Svg& svg) {
  constexpr double kLeastBox = 0.7;
  const double scale = kTrackWidth / (to - from);
  struct DrawnSpan {
    double begin, end;
    std::string what;
    bool waits;
    int tile;
  };
  std::vector<DrawnSpan> drawn;
  for (const TimelineSpan& span : timeline.spans) {
    if (span.track != track || span.end <= from || span.begin >= to) continue;
    const double begin = (std::max(span.begin, from) - from) * scale, end = (std::min(span.end, to) - from) * scale;
    const bool joins = !drawn.empty() && drawn.back().waits == span.waits && begin - drawn.back().end < kLeastBox &&
                       (end - begin < 2 * kLeastBox || drawn.back().what == span.what);
    if (joins) {
      drawn.back().end = std::max(drawn.back().end, end);
    } else if (end - begin >= kLeastBox / 2) {
      drawn.push_back({begin, end, span.what, span.waits, span.tile});
    }
  }
  const bool unit = timeline.tracks[track].group == "units";
  // Work is drawn over waits, so that a short piece of it is seen.
  for (const bool waits : {true, false}) {
    for (const DrawnSpan& span : drawn) {
      if (span.waits != waits) continue;
      const std::string title = Cat(span.what, ", tile ", span.tile, ", ",
                                    PrintFixed((span.end - span.begin) / scale, 3), " ", timeline.unit);
      svg.Box(kTrackName + span.begin, y + 2, std::max(span.end - span.begin, waits ? 0.5 : 1.2), kTrackHeight - 5,
              waits  ? "wait"
              : unit ? "c1"
                     : "c0",
              title);
    }
  }
}

std::string DrawTimeline(const Timeline& timeline, double from, double to, std::string_view label) {
  const auto rows = static_cast<double>(timeline.tracks.size());
  Svg svg(kTrackName + kTrackWidth + 50, rows * kTrackHeight + 26, label, 760);
  for (size_t i = 0; i < timeline.tracks.size(); ++i) {
    const double y = static_cast<double>(i) * kTrackHeight;
    svg.Text(kTrackName - 8, y + 15, timeline.tracks[i].name, {}, "end");
    svg.Line(kTrackName, y + kTrackHeight - 1, kTrackName + kTrackWidth, y + kTrackHeight - 1, "grid");
    DrawTrack(timeline, i, from, to, y, svg);
  }
  for (int tick = 0; tick <= 4; ++tick) {
    const double at = from + (to - from) * tick / 4;
    svg.Text(kTrackName + kTrackWidth * tick / 4, rows * kTrackHeight + 18,
             Cat(PrintFixed(at, 2), tick == 4 ? " " + timeline.unit : std::string()), "faint",
             tick == 0 ? "start" : "middle");
  }
  return Scrolled(svg.Take());
}

// When the first tile is done.
double FirstTileEnd(const Timeline& timeline) {
  double end = 0;
  for (const TimelineSpan& span : timeline.spans) {
    if (span.tile == 0) end = std::max(end, span.end);
  }
  return end;
}

std::string Arrivals(int count) { return Cat(count, count == 1 ? " arrival" : " arrivals"); }
std::string Joined(const std::vector<std::string>& names) { return base::Join(names, ", "); }

std::vector<std::string> RoleNames(const KernelReport& report, const std::vector<size_t>& roles) {
  std::vector<std::string> names;
  for (const size_t role : roles) names.push_back(report.roles[role].name);
  return names;
}

}  // namespace

std::string TimelineSection(const KernelReport& report) {
  const Timeline& timeline = report.timeline;
  const double end = timeline.End(), first = FirstTileEnd(timeline);
  if (end <= 0) return {};
  std::string text = Cat("<p>", EscapeHtml(Cat(timeline.title, ". ", timeline.note)), "</p>");
  text += LegendOf({{"c0", "a role works"}, {"c1", "a unit is busy"}, {"wait", "a role waits"}});
  text += DrawTimeline(timeline, 0, end, "time line");
  if (first > 0 && first < 0.7 * end) {
    text += "<h3>The first tile</h3>";
    text += DrawTimeline(timeline, 0, first, "time line of the first tile");
  }
  HtmlTable table({{"track"}, {"works", true}, {"waits", true}});
  const std::vector<TrackUse> use = UseOf(timeline);
  for (size_t i = 0; i < use.size(); ++i)
    table.Add({timeline.tracks[i].name, Cat(PrintFixed(100 * use[i].works, 0), " %"),
               Cat(PrintFixed(100 * use[i].waits, 0), " %")});
  return text + table.Take();
}

std::string PipelineSection(const KernelReport& report) {
  // A column for each role, a row for each ring: an arrow from who fills slots to who empties them.
  const double step = 150, left = 150, top = 58, row = 46;
  const auto x_of = [&](size_t role) { return left + 60 + step * static_cast<double>(role); };
  const double width = left + step * static_cast<double>(report.roles.size()) + 40;
  const double height = top + row * static_cast<double>(report.channels.size()) + 10;
  Svg svg(width, height, "roles and channels", std::min(width, 620.0));
  for (size_t i = 0; i < report.roles.size(); ++i) {
    const ReportedRole& role = report.roles[i];
    svg.Line(x_of(i), 40, x_of(i), height - 4, "life");
    svg.Box(x_of(i) - 62, 2, 124, 38, "role");
    svg.Text(x_of(i), 18, role.name, "strong", "middle");
    const std::string who = role.elected ? "one thread" : Cat(role.warps, role.warps == 1 ? " warp" : " warps");
    svg.Text(x_of(i), 33, who + (role.leader ? " of the pair" : ""), "faint", "middle");
  }
  for (size_t i = 0; i < report.channels.size(); ++i) {
    const ReportedChannel& channel = report.channels[i];
    const double y = top + row * static_cast<double>(i) + 20;
    svg.Text(8, y - 6, channel.name, "strong");
    svg.Text(8, y + 9, Cat(channel.stages, " x ", channel.slot).substr(0, 28), "faint");
    for (const size_t from : channel.producers) {
      svg.Dot(x_of(from), y, 4, "c0", Cat(report.roles[from].name, " fills slots of ", channel.name));
      for (const size_t to : channel.consumers) {
        if (to != from) svg.Arrow(x_of(from) + 4, y, x_of(to) + (to > from ? -4 : 4), y, "flow");
      }
    }
    if (channel.is_private && !channel.producers.empty())
      svg.Dot(x_of(channel.producers[0]), y, 7, "ring", "a ring of one role");
    // The ring, next to its first producer.
    if (channel.producers.empty()) continue;
    for (int slot = 0; slot < std::min(channel.stages, 12); ++slot)
      svg.Box(x_of(channel.producers[0]) + 14 + 9 * slot, y - 16, 7, 9, "slot", Cat("slot ", slot, ": ", channel.slot));
  }
  HtmlTable table({{"ring"}, {"in"}, {"slots", true}, {"slot"}, {"filled by"}, {"emptied by"}, {"who waits"}});
  for (const ReportedChannel& channel : report.channels) {
    const std::vector<std::string> producers = RoleNames(report, channel.producers),
                                   consumers = RoleNames(report, channel.consumers);
    const std::string waits =
        channel.is_private ? "the role, for MMAs that still read a slot"
        : channel.resident ? Cat(Joined(consumers), " for ", Arrivals(channel.full_arrivals), ", once")
                           : Cat(Joined(consumers), " for ", Arrivals(channel.full_arrivals), " at a full barrier, ",
                                 Joined(producers), " for ", Arrivals(channel.empty_arrivals), " at an empty one");
    table.Add(
        {channel.name, channel.space, Cat(channel.stages), channel.slot, Joined(producers), Joined(consumers), waits});
  }
  return Scrolled(svg.Take()) + table.Take();
}

std::string RegistersSection(const KernelReport& report) {
  const Compilation& c = report.compilation;
  HtmlTable table({{"role"}, {"warps"}, {"threads that run"}, {"registers of a thread", true}, {"of the SM's", true}});
  for (const ReportedRole& role : report.roles) {
    const int registers = role.registers > 0 ? role.registers : report.registers.value_or(0);
    const double share = 32.0 * role.warps * registers / c.target->registers_per_sm;
    table.Add({role.name, Cat(role.first_warp, "-", role.first_warp + role.warps - 1), role.elected ? "one" : "all",
               registers > 0 ? Cat(registers, role.registers > 0 ? "" : " (as launched)") : "unknown without ptxas",
               registers > 0 ? Cat(PrintFixed(100 * share, 0), " %") : "-"});
  }
  return table.Take();
}

std::string CensusSection(const KernelReport& report) {
  if (report.code.ptx_lines.empty()) return {};
  std::set<std::string> opcodes;
  for (const ReportedRole& role : report.roles) {
    for (const auto& [opcode, count] : role.opcodes) opcodes.insert(opcode);
  }
  std::string head = "<tr><th>opcode</th>";
  for (const ReportedRole& role : report.roles) head += Cat("<th class=\"n\">", EscapeHtml(role.name), "</th>");
  std::string rows;
  for (const std::string& opcode : opcodes) {
    rows += Cat("<tr><td>", EscapeHtml(opcode), "</td>");
    for (const ReportedRole& role : report.roles) {
      const auto found = role.opcodes.find(opcode);
      rows += Cat("<td class=\"n\">", found != role.opcodes.end() ? Cat(found->second) : std::string(), "</td>");
    }
    rows += "</tr>";
  }
  return Cat("<p>Instructions in the PTX of each role, as written: those of a loop count once.</p><div class=\"long\">",
             Scrolled(Cat("<table class=\"sortable\"><thead>", head, "</tr></thead><tbody>", rows, "</tbody></table>")),
             "</div>");
}

}  // namespace laneshift::tools
