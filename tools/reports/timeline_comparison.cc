#include "tools/reports/timeline_comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace laneshift::tools {
namespace {

using base::Cat;

constexpr double kLeastPhase = 0.01;
constexpr double kAgreement = 0.1;
constexpr const char* kMmaPhase = "MMAs, issued and waited for";
constexpr const char* kOtherWork = "other work";

std::string PhaseOf(const TimelineSpan& span) {
  if (span.what == kMmaIssueName || span.what.starts_with(kMmaWaitName)) return kMmaPhase;
  return span.waits ? span.what : kOtherWork;
}

// "load" of "load of CTA 1", "math" of "math, warp 3".
std::string RoleOfTrack(std::string_view track) {
  return std::string(track.substr(0, std::min(track.find(", warp"), track.find(" of CTA"))));
}

// The phases of each role, as parts of the time line's length, on average over its tracks.
std::map<std::string, std::map<std::string, double>> PhasesOf(const Timeline& timeline) {
  std::map<std::string, std::map<std::string, double>> phases;
  std::map<std::string, int> tracks;
  for (const TimelineTrack& track : timeline.tracks)
    if (track.group == "roles") ++tracks[RoleOfTrack(track.name)];
  const double length = std::max(timeline.End(), 1e-12);
  for (const TimelineSpan& span : timeline.spans) {
    const TimelineTrack& track = timeline.tracks[span.track];
    if (track.group != "roles") continue;
    const std::string role = RoleOfTrack(track.name);
    phases[role][PhaseOf(span)] += (span.end - span.begin) / length / tracks.at(role);
  }
  return phases;
}

std::string PrintPart(double part) { return Cat(PrintFixed(100 * part, 0), "%"); }
std::string PrintPoints(double part) { return Cat(PrintFixed(100 * part, 0), " points"); }

}  // namespace

double RolePhase::Apart() const { return std::abs(measured - modelled); }

TimelineComparison CompareTimelines(const Timeline& model, const Timeline& measured) {
  const auto of_model = PhasesOf(model), of_device = PhasesOf(measured);
  TimelineComparison comparison{.phases = {}, .modelled_us = model.End(), .measured_us = measured.End()};
  for (const auto& [role, seen] : of_device) {
    const auto known = of_model.find(role);
    if (known == of_model.end()) continue;
    std::map<std::string, std::pair<double, double>> both;
    for (const auto& [what, part] : known->second) both[what].first = part;
    for (const auto& [what, part] : seen) both[what].second = part;
    for (const auto& [what, parts] : both) {
      if (std::max(parts.first, parts.second) >= kLeastPhase)
        comparison.phases.push_back({role, what, parts.first, parts.second});
    }
  }
  return comparison;
}

std::string ComparisonSummary(const TimelineComparison& comparison) {
  const std::vector<RolePhase>& phases = comparison.phases;
  std::string text =
      Cat("Parts of the kernel's time, on average over the warps of a role: ", PrintFixed(comparison.modelled_us, 2),
          " us modelled, ", PrintFixed(comparison.measured_us, 2), " us measured with stamps.");
  if (phases.empty()) return text;
  const auto agree =
      std::count_if(phases.begin(), phases.end(), [](const RolePhase& phase) { return phase.Apart() <= kAgreement; });
  const RolePhase& worst = *std::max_element(
      phases.begin(), phases.end(), [](const RolePhase& a, const RolePhase& b) { return a.Apart() < b.Apart(); });
  text += Cat(" ", agree, " of ", phases.size(), " phases agree within ", PrintPoints(kAgreement),
              "; the furthest apart, by ", PrintPoints(worst.Apart()), ", is ", worst.role, ": ", worst.what, ".");
  return text;
}

std::vector<std::string> ComparisonCells(const RolePhase& phase) {
  return {phase.role, phase.what, PrintPart(phase.modelled), PrintPart(phase.measured), PrintPoints(phase.Apart())};
}

std::string ComparisonText(const TimelineComparison& comparison, const Screen& screen) {
  TextTable table({{"role"},
                   {"phase", Align::kLeft, Room::kLong},
                   {"modelled", Align::kRight},
                   {"measured", Align::kRight},
                   {"apart", Align::kRight}});
  for (const RolePhase& phase : comparison.phases) {
    std::vector<Cell> row;
    for (const std::string& cell : ComparisonCells(phase)) row.push_back({cell});
    table.Add(std::move(row));
  }
  return Cat(table.Print(screen), Wrapped(ComparisonSummary(comparison), screen.width), "\n");
}

}  // namespace laneshift::tools
