#include "tools/reports/schedule_view.h"

#include <gtest/gtest.h>

#include "laneshift/schedule.h"

namespace laneshift::tools {
namespace {

TEST(ScheduleView, ShortIsTheTileAndWhatIsNotTheDefault) {
  EXPECT_EQ(ShowSchedule(PrintSchedule(Schedule{}), ScheduleView::kShort), "tile=128x128x64");
  const std::string text = PrintSchedule(Schedule{.stages = 7, .reuse = Reuse::kIm2col});
  EXPECT_EQ(ShowSchedule(text, ScheduleView::kShort), "tile=128x128x64 stages=7 reuse=im2col");
  EXPECT_EQ(ShowSchedule(text, ScheduleView::kFull), text);
}

}  // namespace
}  // namespace laneshift::tools
