#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "tools/html/markup.h"
#include "tools/html/sections.h"
#include "tools/reports/timeline_comparison.h"

namespace laneshift::tools {
namespace {

using base::Cat;

constexpr double kTrackName = 130, kTrackWidth = 960, kTrackHeight = 22;
constexpr double kBucket = 3;  // pixels of a picture that are drawn alike

// What a track does in a short part of the time.
struct Bucket {
  double works = 0, waits = 0;            // parts of it
  const TimelineSpan* longest = nullptr;  // what takes most of it
  double most = 0;
};

std::vector<Bucket> BucketsOf(const Timeline& timeline, size_t track, double from, double to) {
  std::vector<Bucket> buckets(static_cast<size_t>(kTrackWidth / kBucket));
  const double width = (to - from) / static_cast<double>(buckets.size());
  for (const TimelineSpan& span : timeline.spans) {
    if (span.track != track || span.end <= from || span.begin >= to) continue;
    for (auto i = static_cast<size_t>(std::max(0.0, (span.begin - from) / width)); i < buckets.size(); ++i) {
      const double begin = std::max(span.begin, from + static_cast<double>(i) * width);
      const double part = (std::min(span.end, from + static_cast<double>(i + 1) * width) - begin) / width;
      if (part <= 0) break;
      (span.waits ? buckets[i].waits : buckets[i].works) += part;
      if (part > buckets[i].most) buckets[i].longest = &span, buckets[i].most = part;
    }
  }
  return buckets;
}

// Waits over the whole height, work before it as high as the part of the time that it takes: no piece of work is too
// short to be seen.
void DrawTrack(const Timeline& timeline, size_t track, double from, double to, double y, Svg& svg) {
  constexpr double kHeight = kTrackHeight - 5, kLeast = 2;
  const std::vector<Bucket> buckets = BucketsOf(timeline, track, from, to);
  const char* work = timeline.tracks[track].group == "units" ? "c1" : "c0";
  const auto height_of = [&](const Bucket& b) {
    return b.works <= 0 ? 0 : std::max(kLeast, std::round(kHeight * std::min(1.0, b.works)));
  };
  for (size_t begin = 0, end = 0; begin < buckets.size(); begin = end) {
    const Bucket& first = buckets[begin];
    const double height = height_of(first);
    const bool waits = first.waits > 0.05;
    for (end = begin + 1; end < buckets.size(); ++end) {
      const Bucket& other = buckets[end];
      const bool same = (other.longest == nullptr) == (first.longest == nullptr) &&
                        (first.longest == nullptr ||
                         (other.longest->what == first.longest->what && other.longest->tile == first.longest->tile));
      if (!same || height_of(other) != height || (other.waits > 0.05) != waits) break;
    }
    if (first.longest == nullptr) continue;
    const double x = kTrackName + kBucket * static_cast<double>(begin);
    const double width = kBucket * static_cast<double>(end - begin);
    const std::string title = Cat(first.longest->what, ", tile ", first.longest->tile);
    if (waits) svg.Box(x, y + 2, width, kHeight, "wait", title);
    if (height > 0) svg.Box(x, y + 2 + kHeight - height, width, height, work, title);
  }
}

std::string DrawTimeline(const Timeline& timeline, double from, double to, std::string_view label) {
  const auto rows = static_cast<double>(timeline.tracks.size());
  Svg svg(kTrackName + kTrackWidth + 50, rows * kTrackHeight + 26, label);
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

// "a free slot of ab" of "wait for a free slot of ab".
std::string_view WithoutWait(std::string_view what) {
  constexpr std::string_view kWait = "wait for ";
  return what.starts_with(kWait) ? what.substr(kWait.size()) : what;
}

std::string Arrivals(int count) { return Cat(count, count == 1 ? " arrival" : " arrivals"); }
std::string Joined(const std::vector<std::string>& names) { return base::Join(names, ", "); }

std::vector<std::string> RoleNames(const KernelReport& report, const std::vector<size_t>& roles) {
  std::vector<std::string> names;
  for (const size_t role : roles) names.push_back(report.roles[role].name);
  return names;
}

}  // namespace

namespace {

// From the same moment on and as long as the model's, so that one can be laid over the other.
std::string MeasuredTimelineOf(const KernelReport& report) {
  const Timeline& measured = report.measured_timeline->timeline;
  const double end = measured.End(), modelled = report.timeline.End();
  std::string text = Cat("<h3>Measured</h3><p>", EscapeHtml(Cat(measured.title, ". ", measured.note)), "</p>");
  text += DrawTimeline(measured, 0, modelled, "measured, as long as the time line of the model");
  if (end > modelled * 1.05) {
    text += "<p class=\"note\">Above, as long as the time line of the model; below, to the end of the kernel.</p>";
    text += DrawTimeline(measured, 0, end, "measured, to the end of the kernel");
  }
  const TimelineComparison& comparison = report.measured_timeline->comparison;
  HtmlTable table({{"role"}, {"phase"}, {"modelled", true}, {"measured", true}, {"apart", true}});
  for (const RolePhase& phase : comparison.phases) table.Add(ComparisonCells(phase));
  text += Cat("<p>", EscapeHtml(ComparisonSummary(comparison)), "</p>");
  return text + table.Take();
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
  HtmlTable table({{"track"}, {"works", true}, {"waits", true}, {"waits for"}});
  const std::vector<TrackUse> use = UseOf(timeline);
  for (size_t i = 0; i < use.size(); ++i) {
    std::vector<std::string> reasons;
    for (const TrackWait& wait : use[i].waits_for)
      if (wait.share >= 0.01)
        reasons.push_back(Cat(WithoutWait(wait.what), " ", PrintFixed(100 * wait.share, 0), " %"));
    table.Add({timeline.tracks[i].name, Cat(PrintFixed(100 * use[i].works, 0), " %"),
               Cat(PrintFixed(100 * use[i].waits, 0), " %"), base::Join(reasons, ", ")});
  }
  text += table.Take();
  return report.measured_timeline ? text + MeasuredTimelineOf(report) : text;
}

std::string PipelineSection(const KernelReport& report) {
  // A column for each role, a row for each ring: an arrow from who fills slots to who waits at a full barrier, and one
  // back to who waits at an empty one.
  const double step = 200, left = 250, top = 58, row = 56;
  const auto x_of = [&](size_t role) { return left + 92 + step * static_cast<double>(role); };
  const double width = left + step * static_cast<double>(report.roles.size());
  const double height = top + row * static_cast<double>(report.channels.size()) + 10;
  Svg svg(width, height, "roles and channels");
  for (size_t i = 0; i < report.roles.size(); ++i) {
    const ReportedRole& role = report.roles[i];
    svg.Line(x_of(i), 40, x_of(i), height - 4, "life");
    svg.Box(x_of(i) - 90, 2, 180, 38, "role");
    svg.Text(x_of(i), 18, role.name, "strong", "middle");
    const std::string who = role.elected ? "one thread" : Cat(role.warps, role.warps == 1 ? " warp" : " warps");
    svg.Text(x_of(i), 33, who + (role.leader ? " of the leader CTA" : ""), "faint", "middle");
  }
  for (size_t i = 0; i < report.channels.size(); ++i) {
    const ReportedChannel& channel = report.channels[i];
    const double y = top + row * static_cast<double>(i) + 20;
    svg.Text(8, y - 6, channel.name, "strong");
    svg.Text(8, y + 9, Cat(channel.stages, " x ", channel.slot), "faint");
    for (const size_t from : channel.producers) {
      svg.Dot(x_of(from), y, 4, "c0", Cat(report.roles[from].name, " fills slots of ", channel.name));
      for (const size_t to : channel.consumers) {
        if (to == from) continue;
        const double side = to > from ? 4 : -4, middle = (x_of(from) + x_of(to)) / 2;
        svg.Arrow(x_of(from) + side, y, x_of(to) - side, y, "flow");
        svg.Text(middle, y - 4, Cat("full: ", Arrivals(channel.full_arrivals)), "faint", "middle");
        if (channel.resident) continue;
        svg.Arrow(x_of(to) - side, y + 12, x_of(from) + side, y + 12, "back");
        svg.Text(middle, y + 25, Cat("empty: ", Arrivals(channel.empty_arrivals)), "faint", "middle");
      }
    }
    if (channel.is_private && !channel.producers.empty()) {
      svg.Dot(x_of(channel.producers[0]), y, 7, "ring", "a ring of one role");
      svg.Text(x_of(channel.producers[0]) + 14, y + 4, "a private ring: waits for its MMAs", "faint");
    }
    // The ring, next to its first producer.
    if (channel.producers.empty()) continue;
    for (int slot = 0; slot < std::min(channel.stages, 12); ++slot)
      svg.Box(x_of(channel.producers[0]) + 14 + 9 * slot, y - 25, 7, 9, "slot", Cat("slot ", slot, ": ", channel.slot));
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
  return Scrolled(svg.Take()) +
         "<p class=\"note\">A solid arrow: slots that are filled, for which the role at its head waits at their full "
         "barriers. A dashed one: slots that are free again, waited for at their empty barriers.</p>" +
         table.Take();
}

std::string RegistersSection(const KernelReport& report) {
  const Compilation& c = report.compilation;
  HtmlTable table({{"role"}, {"warps"}, {"threads that run"}, {"registers of a thread", true}, {"of the SM's", true}});
  const auto add = [&](std::string_view name, int first, int warps, std::string_view who, int set) {
    const int registers = set > 0 ? set : report.registers.value_or(0);
    const double share = 32.0 * warps * registers / c.target->registers_per_sm;
    table.Add({std::string(name), warps == 1 ? Cat(first) : Cat(first, "-", first + warps - 1), std::string(who),
               registers > 0 ? Cat(registers, set > 0 ? "" : " (as launched)") : "unknown without ptxas",
               registers > 0 ? Cat(PrintFixed(100 * share, 0), " %") : "-"});
  };
  std::vector<ReportedRole> roles = report.roles;
  std::stable_sort(roles.begin(), roles.end(),
                   [](const ReportedRole& a, const ReportedRole& b) { return a.first_warp < b.first_warp; });
  int next = 0;  // warps before a role that have none keep their registers, too
  for (const ReportedRole& role : roles) {
    if (role.first_warp > next) add("none", next, role.first_warp - next, "none", 0);
    add(role.name, role.first_warp, role.warps, role.elected ? "one" : "all", role.registers);
    next = std::max(next, role.first_warp + role.warps);
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
