// The structure of reports. scripts/check_report.py opens them in a browser.
#include "tools/html/page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "laneshift/engine.h"
#include "runtime/engine_parts.h"
#include "tools/html/markup_flaw.h"

namespace laneshift::tools {
namespace {

struct ReportCase {
  const char *name, *target, *problem, *schedule;
  std::vector<std::string> absent;  // sections that do not apply
  friend void PrintTo(const ReportCase& c, std::ostream* out) { *out << c.name; }
};

const ReportCase kCases[] = {
    {"pair", "sm_100a", "gemm m=1024 n=1024 k=1024", "tile=128x256x64 cluster=2x1 ctas=2", {"lanes"}},
    {"block_scaled", "sm_100a", "gemm m=512 n=512 k=512 a=e4m3 b=e4m3 scale=mx", "", {"lanes"}},
    {"row_offset", "sm_90a", "conv n=1 h=28 w=28 c=64 k=64 r=3 s=3 pad=1", "reuse=row_offset", {"tensor-memory"}},
    {"lane_shift", "sm_100a", "conv n=1 h=28 w=28 c=64 k=64 r=3 s=3 pad=1", "reuse=lane_shift", {}},
    {"grouped", "sm_100a", "grouped_gemm groups=4 m=1024 n=512 k=512", "", {"lanes"}},
};

class ReportPage : public testing::TestWithParam<ReportCase> {};

TEST_P(ReportPage, IsWellFormedSelfContainedAndComplete) {
  const ReportCase& c = GetParam();
  EngineOptions options;
  options.store_directory = ":memory:";
  options.device = "emulator";
  options.target = c.target;
  ProblemReader reader(options);
  const auto problem = ParseProblem(c.problem);
  ASSERT_TRUE(problem.has_value()) << problem.error().message;
  const auto compilation = CompileProblem(*problem, c.schedule, Keep::kPtxAndLlvm, reader);
  ASSERT_TRUE(compilation.has_value()) << compilation.error().message;
  const auto report = GatherReport(*compilation, reader, "no such ptxas");
  ASSERT_TRUE(report.has_value()) << report.error().message;
  const std::string html = RenderReport(*report);

  EXPECT_EQ(FirstFlaw(html), "");
  for (const char* reference : {"http:", "https:", " src=", "url(", "@import", "<link"})
    EXPECT_EQ(html.find(reference), std::string::npos) << reference;
  for (const char* broken : {"nan", "inf\"", "-inf"})
    EXPECT_EQ(html.find(base::Cat("=\"", broken)), std::string::npos) << broken;
  for (const ReportSection& section : ReportSections()) {
    const bool absent = std::find(c.absent.begin(), c.absent.end(), section.id) != c.absent.end();
    EXPECT_EQ(html.find(base::Cat("<section id=\"", section.id, "\">")) == std::string::npos, absent) << section.id;
  }
  EXPECT_LT(html.size(), size_t{4} << 20);

  const std::string open = "id=\"report-json\">";
  const size_t begin = html.find(open) + open.size();
  const auto json = nlohmann::json::parse(html.substr(begin, html.find("</script>", begin) - begin), nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["problem"], PrintProblem(*problem));
  EXPECT_EQ(json["schedule"], PrintSchedule(compilation->schedule));
  EXPECT_EQ(json["roles"].size(), compilation->Product().program.roles.size());
  for (const auto& role : json["roles"]) EXPECT_FALSE(role["opcodes"].empty()) << role["name"];
  for (const auto& channel : json["channels"]) {
    EXPECT_FALSE(channel["producers"].empty()) << channel["name"];
    EXPECT_FALSE(channel["consumers"].empty()) << channel["name"];
  }
  EXPECT_EQ(std::count_if(json["candidates"].begin(), json["candidates"].end(),
                          [](const auto& x) { return x["taken"] == true; }),
            1);
  KernelReport with_measured = *report;
  const Status added = AddMeasuredTimeline(report->timeline, with_measured);
  ASSERT_TRUE(added) << added.error().message;
  const std::string measured = RenderReport(with_measured);
  EXPECT_EQ(FirstFlaw(measured), "");
  EXPECT_NE(measured.find("<h3>Measured</h3>"), std::string::npos);
  EXPECT_EQ(html.find("<h3>Measured</h3>"), std::string::npos);
  EXPECT_FALSE(report->code.ptx_lines.empty());
  // The comments of the report: roles, ops and the names of parameters.
  for (const ReportedRole& role : report->roles)
    EXPECT_NE(html.find(base::Cat("<em>// role ", role.name, "\n</em>")), std::string::npos) << role.name;
  EXPECT_NE(html.find("<em> // map_"), std::string::npos);
  EXPECT_NE(html.find("<em>; role load"), std::string::npos) << "LLVM IR is not linked";
  // Slots of shared memory lead to the swizzle of their tile.
  for (const ReportedTile& tile : report->tiles) {
    EXPECT_NE(html.find(base::Cat("slab\" data-tile=\"", tile.name, "\"")), std::string::npos) << tile.name;
    EXPECT_NE(html.find(base::Cat("<details data-tile=\"", tile.name, "\"")), std::string::npos) << tile.name;
  }
}
INSTANTIATE_TEST_SUITE_P(All, ReportPage, testing::ValuesIn(kCases),
                         [](const auto& tested) { return std::string(tested.param.name); });

size_t CountIn(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}
// Of the picture with this label.
std::string PictureIn(const std::string& html, std::string_view label) {
  const size_t begin = html.find(base::Cat("aria-label=\"", label, "\""));
  return begin == std::string::npos ? std::string() : html.substr(begin, html.find("</svg>", begin) - begin);
}

// Predicted against measured: a dot for each schedule that was tried, the kernel's own one larger, and where both agree
// a line. Without trials the axis has ranks.
TEST(SchedulesPicture, ShowsPredictedAgainstMeasuredTimes) {
  EngineOptions options;
  options.store_directory = ":memory:";
  options.device = "emulator";
  options.target = "sm_90a";
  ProblemReader reader(options);
  const Problem problem = *ParseProblem("gemm m=4096 n=4096 k=512");
  const char* chosen = "tile=128x128x64 stages=4 math=2";
  const auto untried = CompileProblem(problem, chosen, Keep::kPtxAndLlvm, reader);
  ASSERT_TRUE(untried) << untried.error().message;
  const auto ranked = GatherReport(*untried, reader, "no such ptxas");
  ASSERT_TRUE(ranked);
  EXPECT_NE(PictureIn(RenderReport(*ranked), "schedules").find(">rank</text>"), std::string::npos);

  Engine::Parts& parts = (*reader.Look())->parts();
  const auto put = [&](const std::string& schedule, double measured, double predicted) {
    EXPECT_TRUE(parts.store.PutTrial({.problem = PrintProblem(problem),
                                      .target = "sm_90a",
                                      .device = parts.device_key,
                                      .schedule = schedule,
                                      .generator = "1",
                                      .driver = "1",
                                      .predicted_us = predicted,
                                      .samples = {{.time_us = measured}},
                                      .time_us = measured,
                                      .low_us = measured,
                                      .high_us = measured}));
  };
  const std::string taken = PrintSchedule(untried->schedule);
  put(taken, 100, 90);
  put("tile=64x64x64 stages=2 another", 200, 160);
  const auto tried = CompileProblem(problem, chosen, Keep::kPtxAndLlvm, reader);
  ASSERT_TRUE(tried) << tried.error().message;
  const auto report = GatherReport(*tried, reader, "no such ptxas");
  ASSERT_TRUE(report);
  ASSERT_TRUE(report->measured.ours);
  EXPECT_EQ(report->measured.ours->us, 100);
  const std::string picture = PictureIn(RenderReport(*report), "schedules");
  EXPECT_EQ(CountIn(picture, "<circle"), 2u) << picture;
  // The axes go from 0 to 200 us, 640 and 280 pixels long.
  EXPECT_NE(picture.find("<circle cx=\"700\" cy=\"76\" r=\"3\" class=\"c0\">"), std::string::npos) << picture;
  EXPECT_NE(picture.find("<circle cx=\"380\""), std::string::npos) << picture;
  EXPECT_NE(picture.find("r=\"6\" class=\"c1\">"), std::string::npos) << picture;
  EXPECT_NE(picture.find("x1=\"60\" y1=\"300\" x2=\"700\" y2=\"20\" class=\"grid\""), std::string::npos) << picture;
  EXPECT_NE(picture.find(">measured us</text>"), std::string::npos) << picture;
}

}  // namespace
}  // namespace laneshift::tools
