#include "tools/reports/emulated_timeline.h"

#include <algorithm>
#include <map>

#include "base/text.h"

namespace laneshift::tools {
namespace {

using base::Cat;
using emulator::EmulatedEvent;

class EventTracks {
 public:
  EventTracks(const ir::Program& program, Timeline& timeline) : program_(program), timeline_(timeline) {}

  size_t OfWarp(const EmulatedEvent& event) {
    const auto [known, fresh] = warps_.try_emplace({event.cta, event.warp}, timeline_.tracks.size());
    if (fresh) timeline_.tracks.push_back({Cat("CTA ", event.cta), RoleOfWarp(program_, event.warp) + Of(event), 0});
    return known->second;
  }
  // Operations of one kind may overlap: each has the first row that is free.
  size_t OfOperation(const EmulatedEvent& event) {
    std::vector<Row>& rows = operations_[{event.cta, event.what}];
    auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.free_from <= event.begin; });
    if (row == rows.end()) {
      rows.push_back({timeline_.tracks.size(), 0});
      timeline_.tracks.push_back({Cat("CTA ", event.cta, ", operations"), std::string(event.what) + Of(event),
                                  static_cast<int>(rows.size()) - 1});
      row = rows.end() - 1;
    }
    row->free_from = std::max(event.end, event.begin + 1);
    return row->track;
  }

 private:
  struct Row {
    size_t track;
    uint64_t free_from;
  };
  // Charts show the tracks of all CTAs below each other.
  std::string Of(const EmulatedEvent& event) const {
    return program_.cluster_m * program_.cluster_n > 1 ? Cat(" of CTA ", event.cta) : std::string();
  }

  const ir::Program& program_;
  Timeline& timeline_;
  std::map<std::pair<uint32_t, uint32_t>, size_t> warps_;
  std::map<std::pair<uint32_t, std::string_view>, std::vector<Row>> operations_;
};

}  // namespace

Timeline EmulatedTimeline(const std::vector<EmulatedEvent>& events, const ir::Program& program) {
  Timeline timeline{.title = "The first cluster, in the emulator's order of events",
                    .note = "Steps are instructions of the cluster's warps, one after the other; they are no time."};
  timeline.unit = "steps";
  const std::string kernel = "laneshift_" + program.name;
  EventTracks tracks(program, timeline);
  std::vector<const EmulatedEvent*> operations;
  struct LastRun {
    double end = 0;
    std::string_view waits;
  };
  std::map<size_t, LastRun> last;
  for (const EmulatedEvent& event : events) {
    if (event.kernel != kernel) continue;
    if (event.asynchronous) {
      operations.push_back(&event);
      continue;
    }
    const size_t track = tracks.OfWarp(event);
    const auto begin = static_cast<double>(event.begin), end = static_cast<double>(event.end);
    const LastRun before = last[track];
    if (!before.waits.empty() && before.end < begin)
      timeline.spans.push_back(
          {.track = track, .begin = before.end, .end = begin, .what = Cat("wait for ", before.waits), .waits = true});
    timeline.spans.push_back({.track = track, .begin = begin, .end = end, .what = "run"});
    last[track] = {end, event.what};
  }
  std::stable_sort(operations.begin(), operations.end(),
                   [](const EmulatedEvent* a, const EmulatedEvent* b) { return a->begin < b->begin; });
  for (const EmulatedEvent* event : operations) {
    const auto begin = static_cast<double>(event->begin), end = static_cast<double>(event->end);
    timeline.spans.push_back({.track = tracks.OfOperation(*event),
                              .begin = begin,
                              .end = std::max(end, begin + 1),
                              .what = std::string(event->what)});
  }
  if (events.size() >= emulator::EventTrace::kMostEvents)
    timeline.note += Cat(" Only the first ", events.size(), " events were kept.");
  return timeline;
}

}  // namespace laneshift::tools
