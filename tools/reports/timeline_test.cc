#include "tools/reports/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "base/text.h"

namespace laneshift::tools {
namespace {

ProblemReader Reader(const char* target) {
  EngineOptions options;
  options.store_directory = ":memory:";
  options.device = "emulator";
  options.target = target;
  return ProblemReader(options);
}

Timeline TimelineOf(const char* target, const char* problem, const char* schedule) {
  ProblemReader reader = Reader(target);
  const auto compilation = CompileProblem(*ParseProblem(problem), schedule, Keep::kPtx, reader);
  EXPECT_TRUE(compilation.has_value()) << compilation.error().message;
  const auto timeline = ModelTimeline(*compilation);
  EXPECT_TRUE(timeline.has_value());
  return *timeline;
}

const TimelineTrack* FindTrack(const Timeline& timeline, std::string_view name) {
  const auto found = std::find_if(timeline.tracks.begin(), timeline.tracks.end(),
                                  [&](const TimelineTrack& track) { return track.name == name; });
  return found == timeline.tracks.end() ? nullptr : &*found;
}
TrackUse UseOfTrack(const Timeline& timeline, std::string_view name) {
  return UseOf(timeline).at(static_cast<size_t>(FindTrack(timeline, name) - timeline.tracks.data()));
}

TEST(ModelTimeline, ATrackDoesOneThingAtATime) {
  for (const auto& [target, schedule] :
       {std::pair{"sm_100a", "tile=128x256x64 cluster=2x1 ctas=2"}, std::pair{"sm_90a", "tile=128x128x64 math=2"},
        std::pair{"sm_90a", "tile=128x128x64 math=2 consumers=pingpong"}}) {
    const Timeline timeline = TimelineOf(target, "gemm m=4096 n=4096 k=1024", schedule);
    ASSERT_FALSE(timeline.spans.empty());
    std::map<size_t, double> end;
    for (const TimelineSpan& span : timeline.spans) {
      EXPECT_GT(span.end, span.begin);
      EXPECT_GE(span.begin, end[span.track] - 1e-9) << timeline.tracks[span.track].name << ": " << span.what;
      end[span.track] = std::max(end[span.track], span.end);
    }
    EXPECT_EQ(end.size(), timeline.tracks.size()) << "a track is empty";
  }
}

// What the model says of a kernel is what its time line shows.
TEST(ModelTimeline, ShowsWhatBinds) {
  const char* bound = "gemm m=8192 n=8192 k=8192";
  EXPECT_GT(UseOfTrack(TimelineOf("sm_90a", bound, "tile=128x256x64 stages=4 math=2"), "tensor core").works, 0.8);
  const Timeline waiting = TimelineOf("sm_90a", "gemm m=512 n=512 k=8192", "tile=64x64x64 stages=2 math=1");
  EXPECT_LT(UseOfTrack(waiting, "tensor core").works, 0.3);
  EXPECT_GT(UseOfTrack(waiting, "math").waits, 0.5);
}

TEST(TraceEvents, AreCompleteEventsOfNamedThreads) {
  const Timeline timeline = TimelineOf("sm_100a", "gemm m=1024 n=1024 k=1024", "");
  const nlohmann::ordered_json trace = TraceEventsJson(timeline);
  std::map<std::pair<int, int>, std::string> threads;
  size_t spans = 0;
  for (const auto& event : trace["traceEvents"]) {
    const std::string phase = event["ph"];
    if (phase == "M") {
      if (event["name"] == "thread_name") threads[{event["pid"], event["tid"]}] = event["args"]["name"];
      continue;
    }
    ASSERT_EQ(phase, "X");
    ++spans;
    EXPECT_TRUE(threads.contains({event["pid"], event["tid"]}));
    EXPECT_GE(event["ts"].get<double>(), 0);
    EXPECT_GT(event["dur"].get<double>(), 0);
    EXPECT_FALSE(event["name"].get<std::string>().empty());
  }
  EXPECT_EQ(spans, timeline.spans.size());
  EXPECT_EQ(threads.size(), timeline.tracks.size());
}

TEST(TraceEvents, AreReadAsTheyWereWritten) {
  const Timeline timeline = TimelineOf("sm_100a", "gemm m=1024 n=1024 k=1024", "");
  const std::string text = TraceEventsJson(timeline).dump();
  const auto read = ParseTraceEvents(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->kernel, timeline.kernel);
  ASSERT_EQ(read->spans.size(), timeline.spans.size());
  for (size_t i = 0; i < timeline.spans.size(); ++i) {
    EXPECT_EQ(read->tracks[read->spans[i].track].name, timeline.tracks[timeline.spans[i].track].name);
    EXPECT_EQ(read->spans[i].what, timeline.spans[i].what);
    EXPECT_EQ(read->spans[i].tile, timeline.spans[i].tile);
    EXPECT_EQ(read->spans[i].waits, timeline.spans[i].waits);
    EXPECT_NEAR(read->spans[i].end, timeline.spans[i].end, 1e-9);
  }
}

TEST(TraceEvents, OfOtherProgramsAreRefused) {
  for (const char* text :
       {"", "[]", "{", "{\"traceEvents\": 3}", "{\"traceEvents\": []}", "{\"traceEvents\": [7, null, {\"ph\": 1}]}",
        "{\"traceEvents\": [{\"ph\": \"X\", \"tid\": 1, \"ts\": 0, \"dur\": 1}], \"otherData\": {\"unit\": \"us\"}}",
        "{\"traceEvents\": [], \"otherData\": {\"unit\": \"us\"}}"}) {
    const auto read = ParseTraceEvents(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(read.error().message.find("no time line that laneshift has written"), std::string::npos);
  }
}

TEST(Gantt, FitsItsScreenAndShowsEveryTrack) {
  const Timeline timeline = TimelineOf("sm_100a", "gemm m=1024 n=1024 k=1024", "");
  for (const size_t width : {60u, 80u, 120u}) {
    const std::string text = GanttText(timeline, {.width = width});
    for (const std::string_view line : base::Split(text, '\n')) EXPECT_LE(CharactersOf(line), width) << line;
    for (const TimelineTrack& track : timeline.tracks) EXPECT_NE(text.find("\n" + track.name + " "), std::string::npos);
  }
  Timeline half{.title = "half"};
  half.tracks = {{"roles", "a", 0}, {"roles", "b", 0}};
  half.spans = {{.track = 0, .begin = 0, .end = 5, .what = "x"},
                {.track = 1, .begin = 5, .end = 10, .what = "y", .waits = true}};
  const std::string text = GanttText(half, {.width = 30});
  EXPECT_NE(text.find("##########          "), std::string::npos) << text;
  EXPECT_NE(text.find("          ----------"), std::string::npos) << text;
}

}  // namespace
}  // namespace laneshift::tools
