#include "tools/reports/timeline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "autotune/timing_model.h"
#include "base/text.h"

namespace laneshift::tools {
namespace {

using autotune::StepKind;
using autotune::TraceUnit;
using base::Cat;
using Json = nlohmann::ordered_json;

constexpr size_t kGanttWidth = 100;  // of text for files
constexpr size_t kLeastGantt = 20;

std::string StepName(const autotune::TracedSpan& span, const ir::Program& program) {
  const std::string ring = span.ring >= 0 ? program.channels[static_cast<size_t>(span.ring)].name : "";
  const char* operand = span.of_b ? "B" : "A";
  switch (span.step) {
    case StepKind::kPut:
      return NameOfSlotWait(ir::Side::kEmpty, ring);
    case StepKind::kSend:
      return Cat("send ", ring);
    case StepKind::kSendLate:
    case StepKind::kDrainSends:
      return Cat(kCopyWaitName, ", send ", ring);
    case StepKind::kTake:
      return NameOfSlotWait(ir::Side::kFull, ring);
    case StepKind::kRelease:
    case StepKind::kReleaseLate:
      return Cat(kMmaWaitName, ", release ", ring);
    case StepKind::kAwaitProducts:
    case StepKind::kDrain:
      return kMmaWaitName;
    case StepKind::kLoad:
      return Cat(span.unit == TraceUnit::kRole ? "issue loads of " : "load ", operand);
    case StepKind::kGather:
      return Cat("copy ", operand, " by threads");
    case StepKind::kMma:
      return span.unit == TraceUnit::kRole ? kMmaIssueName : "MMA";
    case StepKind::kMultiply:
      return "multiply by threads";
    case StepKind::kTensorCopy:
      return "copy to Tensor Memory";
    case StepKind::kTensorMove:
      return "shift lanes";
    case StepKind::kTensorStore:
      return "store to Tensor Memory";
    case StepKind::kReadAccumulator:
      return "read accumulator";
    case StepKind::kConvert:
      return "epilogue";
    case StepKind::kReadGlobal:
      return "read memory";
    case StepKind::kStoreSums:
      return "store sums for the cluster";
    case StepKind::kAddSums:
      return "add sums of the cluster";
    case StepKind::kStage:
      return "convert and stage";
    case StepKind::kStore:
      return "bulk store";
    case StepKind::kStoreWait:
      return kStoreWaitName;
    case StepKind::kStoreThreads:
      return "store";
  }
  __builtin_unreachable();
}

constexpr const char* kUnitNames[] = {"", "tensor core", "loads from L2", "stores"};

// Tracks are made when they are first used, in a fixed order: roles as in the program, then units.
class ModelTracks {
 public:
  ModelTracks(const ir::Program& program, const autotune::Pipeline& pipeline, int ctas) {
    for (int cta = 0; cta < ctas; ++cta) {
      for (size_t role = 0; role < program.roles.size(); ++role) {
        roles_[{cta, static_cast<int>(role)}] = tracks_.size();
        tracks_.push_back({"roles", Cat(program.roles[role].name, ctas > 1 ? Cat(" of CTA ", cta) : ""), 0});
      }
    }
    for (int unit = 1; unit < 4; ++unit) {
      units_[unit] = tracks_.size();
      tracks_.push_back({"units", kUnitNames[unit], 0});
    }
    for (const autotune::PipelineRole& role : pipeline.roles) program_roles_.push_back(role.program_role);
  }

  size_t Of(const autotune::TracedSpan& span) const {
    if (span.unit != TraceUnit::kRole) return units_.at(static_cast<int>(span.unit));
    return roles_.at({span.cta, program_roles_[static_cast<size_t>(span.role)]});
  }
  std::vector<TimelineTrack> Take() { return std::move(tracks_); }

 private:
  std::vector<TimelineTrack> tracks_;
  std::map<std::pair<int, int>, size_t> roles_;
  std::map<int, size_t> units_;
  std::vector<int> program_roles_;
};

// Spans of a track that follow each other and are the same are one.
void AddSpan(std::vector<TimelineSpan>& spans, std::map<size_t, size_t>& last, TimelineSpan span) {
  constexpr double kTouch = 1e-9;
  if (const auto before = last.find(span.track); before != last.end()) {
    TimelineSpan& earlier = spans[before->second];
    if (earlier.what == span.what && earlier.tile == span.tile && span.begin - earlier.end <= kTouch) {
      earlier.end = std::max(earlier.end, span.end);
      return;
    }
  }
  last[span.track] = spans.size();
  spans.push_back(std::move(span));
}

}  // namespace

double Timeline::End() const {
  double end = 0;
  for (const TimelineSpan& span : spans) end = std::max(end, span.end);
  return end;
}

std::string NameOfSlotWait(ir::Side side, std::string_view ring) {
  return Cat("wait for a ", side == ir::Side::kFull ? "full" : "free", " slot of ", ring);
}

std::string RoleOfWarp(const ir::Program& program, uint32_t warp) {
  for (const ir::Role& role : program.roles) {
    const int within = static_cast<int>(warp) - role.first_warp;
    if (within >= 0 && within < role.warps) return role.warps == 1 ? role.name : Cat(role.name, ", warp ", within);
  }
  return Cat("warp ", warp, ", no role");
}

Result<Timeline> ModelTimeline(const Compilation& c) {
  return ModelTimeline(c.problem, c.schedule, *c.target, c.device.machine);
}

Result<Timeline> ModelTimeline(const Problem& problem, const Schedule& schedule, const target::Target& target,
                               const autotune::Machine& machine, const autotune::SimulatedPart& part) {
  LS_ASSIGN(const compiler::Sketch sketch, compiler::SketchSchedule(problem, schedule, target));
  const autotune::Pipeline pipeline = autotune::PipelineOf(problem, schedule, sketch.program, target, part);
  const autotune::ModelTrace trace = autotune::TraceTime(pipeline, machine);
  int ctas = 1, tiles = 0;
  for (const autotune::TracedSpan& span : trace.spans) {
    ctas = std::max(ctas, span.cta + 1);
    tiles = std::max(tiles, span.tile + 1);
  }
  ModelTracks tracks(sketch.program, pipeline, ctas);
  Timeline timeline{.title = "The busiest SM, as the timing model sees it"};
  timeline.kernel = KernelText(problem, schedule, target);
  const double us = 1 / trace.clock_ghz / 1e3;  // of a clock
  std::map<size_t, size_t> last;
  for (const autotune::TracedSpan& span : trace.spans) {
    AddSpan(timeline.spans, last,
            {.track = tracks.Of(span),
             .begin = span.begin * us,
             .end = span.end * us,
             .what = StepName(span, sketch.program),
             .tile = span.tile,
             .waits = span.waits});
  }
  timeline.tracks = tracks.Take();
  timeline.note = Cat(tiles < trace.tiles ? Cat("The first ", tiles, " of ", trace.tiles) : Cat("All ", tiles),
                      " tiles of the SM, after the launch");
  if (pipeline.counted < pipeline.products)
    timeline.note += Cat(", with ", pipeline.counted, " of ", pipeline.products, " MMA steps of each");
  timeline.note += Cat("; clocks at ", PrintFixed(trace.clock_ghz, 2), " GHz.");
  if (sketch.program.ctas > 1)
    timeline.note += " Of the pair it is the leader; the other CTA loads its half at the same time, and issues no MMA.";
  return timeline;
}

namespace {

std::string NameOfTrack(const TimelineTrack& track) {
  return track.row == 0 ? track.name : Cat(track.name, " ", track.row + 1);
}

}  // namespace

Json TraceEventsJson(const Timeline& timeline) {
  Json events = Json::array();
  std::map<std::string, int> groups;
  const auto pid_of = [&](const TimelineTrack& track) {
    const auto [group, fresh] = groups.emplace(track.group, static_cast<int>(groups.size()) + 1);
    if (fresh) {
      events.push_back(
          {{"ph", "M"}, {"name", "process_name"}, {"pid", group->second}, {"args", {{"name", track.group}}}});
    }
    return group->second;
  };
  std::vector<int> pids;
  for (size_t i = 0; i < timeline.tracks.size(); ++i) {
    pids.push_back(pid_of(timeline.tracks[i]));
    const int tid = static_cast<int>(i) + 1;
    events.push_back({{"ph", "M"},
                      {"name", "thread_name"},
                      {"pid", pids.back()},
                      {"tid", tid},
                      {"args", {{"name", NameOfTrack(timeline.tracks[i])}}}});
    events.push_back({{"ph", "M"},
                      {"name", "thread_sort_index"},
                      {"pid", pids.back()},
                      {"tid", tid},
                      {"args", {{"sort_index", tid}}}});
  }
  for (const TimelineSpan& span : timeline.spans) {
    events.push_back({{"ph", "X"},
                      {"name", span.what},
                      {"cat", span.waits ? "wait" : "work"},
                      {"pid", pids[span.track]},
                      {"tid", static_cast<int>(span.track) + 1},
                      {"ts", span.begin},
                      {"dur", span.end - span.begin},
                      {"args", {{"tile", span.tile}}}});
  }
  return {{"traceEvents", std::move(events)},
          {"displayTimeUnit", "ns"},
          {"otherData",
           {{"title", timeline.title}, {"note", timeline.note}, {"unit", timeline.unit}, {"kernel", timeline.kernel}}}};
}

Result<Timeline> ParseTraceEvents(std::string_view text) {
  const auto refused = [](std::string_view what) {
    return MakeError(ErrorCode::kInvalidArgument, Cat("no time line that laneshift has written: ", what));
  };
  const Json trace = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto text_of = [](const Json& object, const char* key) {
    const auto found = object.is_object() ? object.find(key) : object.end();
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const auto number_of = [](const Json& object, const char* key) {
    const auto found = object.is_object() ? object.find(key) : object.end();
    return found != object.end() && found->is_number() ? found->get<double>() : std::nan("");
  };
  if (!trace.is_object() || !trace.contains("traceEvents") || !trace["traceEvents"].is_array())
    return refused("no object with traceEvents");
  const Json facts = trace.value("otherData", Json());
  Timeline timeline{.title = text_of(facts, "title"), .note = text_of(facts, "note")};
  timeline.unit = text_of(facts, "unit");
  timeline.kernel = text_of(facts, "kernel");
  if (timeline.unit.empty()) return refused("otherData names no unit");
  std::map<double, std::string> groups;
  std::map<double, size_t> tracks;
  for (const Json& event : trace["traceEvents"]) {
    const std::string phase = text_of(event, "ph"), name = text_of(event, "name");
    const double tid = number_of(event, "tid"), pid = number_of(event, "pid");
    const Json args = event.is_object() ? event.value("args", Json()) : Json();
    if (phase == "M" && name == "process_name") groups[pid] = text_of(args, "name");
    if (phase == "M" && name == "thread_name") {
      tracks[tid] = timeline.tracks.size();
      timeline.tracks.push_back({groups[pid], text_of(args, "name"), 0});
    }
    if (phase != "X") continue;
    const double begin = number_of(event, "ts"), length = number_of(event, "dur"), tile = number_of(args, "tile");
    const auto track = tracks.find(tid);
    if (track == tracks.end() || !(begin >= 0) || !(length >= 0)) return refused("an event without a thread or a time");
    timeline.spans.push_back({.track = track->second,
                              .begin = begin,
                              .end = begin + length,
                              .what = name,
                              .tile = tile >= 0 && tile < 1e9 ? static_cast<int>(tile) : -1,
                              .waits = text_of(event, "cat") == "wait"});
  }
  if (timeline.spans.empty()) return refused("it has no events");
  return timeline;
}

std::string KernelText(const Problem& problem, const Schedule& schedule, const target::Target& target) {
  return Cat(PrintProblem(problem), " with ", PrintSchedule(schedule), " for ", target.name);
}

std::vector<TrackUse> UseOf(const Timeline& timeline) {
  std::vector<TrackUse> use(timeline.tracks.size());
  const double end = std::max(timeline.End(), 1e-12);
  for (const TimelineSpan& span : timeline.spans) {
    TrackUse& of = use[span.track];
    const double share = (span.end - span.begin) / end;
    (span.waits ? of.waits : of.works) += share;
    if (!span.waits) continue;
    const auto known = std::find_if(of.waits_for.begin(), of.waits_for.end(),
                                    [&](const TrackWait& wait) { return wait.what == span.what; });
    if (known == of.waits_for.end()) {
      of.waits_for.push_back({span.what, share});
    } else {
      known->share += share;
    }
  }
  for (TrackUse& of : use) {
    std::stable_sort(of.waits_for.begin(), of.waits_for.end(),
                     [](const TrackWait& a, const TrackWait& b) { return a.share > b.share; });
  }
  return use;
}

namespace {

// The track in whose row a chart shows each.
std::vector<size_t> ShownTracks(const Timeline& timeline) {
  std::vector<size_t> shown(timeline.tracks.size());
  std::map<std::pair<std::string, std::string>, size_t> first;
  for (size_t i = 0; i < shown.size(); ++i) {
    const TimelineTrack& track = timeline.tracks[i];
    shown[i] = track.row == 0 ? i : first.at({track.group, track.name});
    if (track.row == 0) first[{track.group, track.name}] = i;
  }
  return shown;
}

}  // namespace

std::string GanttText(const Timeline& timeline, const Screen& screen) {
  const double end = timeline.End();
  if (end <= 0) return Cat(timeline.title, ": nothing was recorded\n");
  size_t names = 0;
  for (const TimelineTrack& track : timeline.tracks) names = std::max(names, CharactersOf(track.name));
  constexpr size_t kShares = 7;  // " 100 %" after each row
  const size_t all = std::min(screen.width, names + 2 + kGanttWidth + kShares);
  const size_t width = std::max(kLeastGantt, all > names + 2 + kShares ? all - names - 2 - kShares : 0);
  // What each cell of a track shows is what takes most of its time.
  struct GanttCell {
    double works = 0, waits = 0;
  };
  std::vector<std::vector<GanttCell>> rows(timeline.tracks.size(), std::vector<GanttCell>(width));
  const std::vector<size_t> shown = ShownTracks(timeline);
  const double cell = end / static_cast<double>(width);
  for (const TimelineSpan& span : timeline.spans) {
    for (size_t i = std::min(width - 1, static_cast<size_t>(span.begin / cell)); i < width; ++i) {
      const double from = std::max(span.begin, static_cast<double>(i) * cell);
      const double to = std::min(span.end, static_cast<double>(i + 1) * cell);
      if (to <= from) break;
      GanttCell& at = rows[shown[span.track]][i];
      (span.waits ? at.waits : at.works) += to - from;
    }
  }
  std::string text = Cat(Wrapped(Cat(timeline.title, ". ", timeline.note), screen.width), "\n");
  for (size_t i = 0; i < rows.size(); ++i) {
    if (shown[i] != i) continue;
    double works = 0;
    const std::string& name = timeline.tracks[i].name;
    text += name + std::string(names - CharactersOf(name) + 2, ' ');
    for (const GanttCell& at : rows[i]) {
      // Overlapping spans fill a cell more than once.
      works += std::min(at.works, cell) / end;
      const double idle = cell - at.works - at.waits;
      text += at.works >= std::max(at.waits, idle) ? '#' : at.waits > idle ? '-' : at.works > 0 ? '.' : ' ';
    }
    const std::string share = PrintFixed(100 * works, 0);
    text += Cat(std::string(share.size() < 4 ? 4 - share.size() : 1, ' '), share, "%\n");
  }
  const std::string last = Cat(PrintFixed(end, timeline.unit == "us" ? 2 : 0), " ", timeline.unit);
  text += Cat(std::string(names + 2, ' '), "0", std::string(width > last.size() + 1 ? width - last.size() - 1 : 1, ' '),
              last, "\n");
  text +=
      Cat(Wrapped("# works, . works for less than half of the time, - waits; at the end of a row the part of the time "
                  "that it works",
                  screen.width),
          "\n");
  return text;
}

}  // namespace laneshift::tools
