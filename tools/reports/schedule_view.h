// How schedules are shown to people: what differs from the default, or the complete text. Programs always get the
// complete text.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace laneshift::tools {

enum class ScheduleView {
  kShort,  // the tile, and the other keys whose values are not the default ones
  kFull,   // every key: as --schedule, this text fixes the whole schedule
};

// --full.
void AddFull(CLI::App& app, ScheduleView& view);

// `schedule` is a text as PrintSchedule makes it.
std::string ShowSchedule(std::string_view schedule, ScheduleView view);

}  // namespace laneshift::tools
