// The topics of `laneshift help`: what may be written in problems, schedules and options, from the tables that the
// parsers use.
//
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace laneshift::tools {

struct HelpPage {
  std::string intro;
  std::vector<std::string> columns;  // the first is the name, the last may be long
  std::vector<std::vector<std::string>> rows;
  std::string notes;  // as a footer of the command line (tools/help_layout.h)
};

struct HelpTopic {
  std::string_view name, what;
  HelpPage (*page)();
};

const std::vector<HelpTopic>& HelpTopics();

}  // namespace laneshift::tools
