#include "tools/reports/schedule_view.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "base/text.h"
#include "laneshift/schedule.h"

namespace laneshift::tools {

void AddFull(CLI::App& app, ScheduleView& view) {
  app.add_flag_callback(
      "--full", [&view] { view = ScheduleView::kFull; },
      "show complete schedules, not only what differs from the default (JSON always has them complete)");
}

std::string ShowSchedule(std::string_view schedule, ScheduleView view) {
  if (view == ScheduleView::kFull) return std::string(schedule);
  const std::string usual_text = PrintSchedule(Schedule{});
  const std::vector<std::string_view> usual = base::Words(usual_text);
  std::vector<std::string> words;
  for (const std::string_view word : base::Words(schedule)) {
    const bool always = word.starts_with("tile=");
    if (always || std::find(usual.begin(), usual.end(), word) == usual.end()) words.emplace_back(word);
  }
  return base::Join(words, " ");
}

}  // namespace laneshift::tools
