#include "tools/reports/timeline_comparison.h"

#include <gtest/gtest.h>

#include <string>

namespace laneshift::tools {
namespace {

TimelineSpan Work(size_t track, double begin, double end, const char* what) {
  return {.track = track, .begin = begin, .end = end, .what = what};
}
TimelineSpan Wait(size_t track, double begin, double end, const char* what) {
  return {.track = track, .begin = begin, .end = end, .what = what, .waits = true};
}

TEST(TimelineComparison, HasARowForEachThingThatARoleDoes) {
  const char* free = "wait for a free slot of ab";
  const Timeline model{.tracks = {{"roles", "load", 0}, {"units", "tensor core", 0}},
                       .spans = {Work(0, 0, 5, "issue loads of A"), Wait(0, 5, 10, free), Work(1, 0, 10, "MMA")}};
  const Timeline measured{
      .tracks = {{"roles", "load of CTA 0", 0}, {"roles", "load of CTA 1", 0}},
      .spans = {Work(0, 0, 1, "load"), Wait(0, 1, 10, free), Work(1, 0, 3, "load"), Wait(1, 3, 10, free)}};
  const TimelineComparison comparison = CompareTimelines(model, measured);
  ASSERT_EQ(comparison.phases.size(), 2u) << ComparisonText(comparison, {});
  EXPECT_EQ(comparison.phases[0].what, "other work");
  EXPECT_DOUBLE_EQ(comparison.phases[0].modelled, 0.5);
  EXPECT_DOUBLE_EQ(comparison.phases[0].measured, 0.2);
  EXPECT_EQ(comparison.phases[1].what, free);
  EXPECT_DOUBLE_EQ(comparison.phases[1].measured, 0.8);
  const std::string text = ComparisonText(comparison, {});
  EXPECT_NE(text.find("50%       20%  30 points"), std::string::npos) << text;
  EXPECT_NE(text.find("0 of 2 phases agree within 10 points; the furthest apart, by 30 points, is load: "),
            std::string::npos)
      << text;
}

// A warp that issues an MMA may be held there or wait afterwards.
TEST(TimelineComparison, CountsTheIssueOfMmasAndTheWaitForThemTogether) {
  const Timeline model{.tracks = {{"roles", "math", 0}},
                       .spans = {Work(0, 0, 1, "issue MMAs"), Wait(0, 1, 8, "wait for MMAs, release ab"),
                                 Wait(0, 8, 9, "wait for MMAs"), Work(0, 9, 10, "epilogue")}};
  const Timeline measured{
      .tracks = {{"roles", "math, warp 0", 0}},
      .spans = {Work(0, 0, 8, "issue MMAs"), Wait(0, 8, 8.5, "wait for MMAs"), Work(0, 8.5, 10, "epilogue")}};
  const TimelineComparison comparison = CompareTimelines(model, measured);
  ASSERT_EQ(comparison.phases.size(), 2u);
  EXPECT_EQ(comparison.phases[0].what, "MMAs, issued and waited for");
  EXPECT_DOUBLE_EQ(comparison.phases[0].modelled, 0.9);
  EXPECT_DOUBLE_EQ(comparison.phases[0].measured, 0.85);
  EXPECT_NE(ComparisonSummary(comparison).find("2 of 2 phases agree"), std::string::npos);
}

// Rows of roles that only one of both has say nothing.
TEST(TimelineComparison, LeavesOutRolesThatAreNotInBoth) {
  const Timeline model{.tracks = {{"roles", "load", 0}}, .spans = {Work(0, 0, 1, "load")}};
  const Timeline measured{.tracks = {{"roles", "math", 0}}, .spans = {Work(0, 0, 1, "epilogue")}};
  const TimelineComparison comparison = CompareTimelines(model, measured);
  EXPECT_TRUE(comparison.phases.empty());
  EXPECT_EQ(ComparisonSummary(comparison).find("furthest"), std::string::npos);
}

}  // namespace
}  // namespace laneshift::tools
