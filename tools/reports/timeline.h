// Timeline: what the roles and units of an SM do over time, predicted by the timing model or executed by the emulator,
// as a trace for Perfetto (Chrome's trace-event format) and as a Gantt chart for terminals.
//
// Thread-safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "autotune/pipeline.h"
#include "tools/compilation.h"
#include "tools/table.h"

namespace laneshift::tools {

struct TimelineTrack {
  std::string group;  // "roles", "units"
  std::string name;
  int row = 0;  // of several tracks of one name, whose spans overlap; a chart shows them as one
};

struct TimelineSpan {
  size_t track = 0;
  double begin = 0, end = 0;  // in the timeline's unit
  std::string what;
  int tile = -1;       // of the CTA; -1: unknown
  bool waits = false;  // nothing else is done
};

struct Timeline {
  std::string title{}, note{};  // for people: what it is of, and what it leaves out
  std::string unit = "us";      // of times: us, or steps where only the order is known
  std::string kernel{};         // KernelText of what was timed; empty: not said
  std::vector<TimelineTrack> tracks{};
  std::vector<TimelineSpan> spans{};  // of a track in the order of time

  double End() const;
};

// Of the main kernel of a compilation, from the timing model: the first tiles.
Result<Timeline> ModelTimeline(const Compilation& compilation);
// The same of a schedule on a machine, and as much of it as `part`.
Result<Timeline> ModelTimeline(const Problem& problem, const Schedule& schedule, const target::Target& target,
                               const autotune::Machine& machine, const autotune::SimulatedPart& part = {});

// What waits and MMAs are called in the model's time line and in a measured one, which are compared by these names.
std::string NameOfSlotWait(ir::Side side, std::string_view ring);
inline constexpr const char* kMmaIssueName = "issue MMAs";
inline constexpr const char* kMmaWaitName = "wait for MMAs";
inline constexpr const char* kCopyWaitName = "wait for copies";
inline constexpr const char* kStoreWaitName = "wait for stores";

// "epilogue, warp 1": the role of a warp of a CTA, and which of several it is.
std::string RoleOfWarp(const ir::Program& program, uint32_t warp);

// {"traceEvents": […]}: a process for each group, a thread for each track.
nlohmann::ordered_json TraceEventsJson(const Timeline& timeline);

// Reads what TraceEventsJson has written. kInvalidArgument: the text is not of that form.
Result<Timeline> ParseTraceEvents(std::string_view text);

// Which kernel a time line is of: problem, schedule and target.
std::string KernelText(const Problem& problem, const Schedule& schedule, const target::Target& target);

// A row for each track: # works, - waits.
std::string GanttText(const Timeline& timeline, const Screen& screen);

// The part of each track's time, until the end of all, that it works and that it waits.
struct TrackWait {
  std::string what;
  double share = 0;
};
struct TrackUse {
  double works = 0, waits = 0;
  std::vector<TrackWait> waits_for{};  // the longest first
};
std::vector<TrackUse> UseOf(const Timeline& timeline);

}  // namespace laneshift::tools
