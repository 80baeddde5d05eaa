// CommandLine: the program's verbs and options in one table, which parses them and from which help, completion and
// manual pages are generated.
//
// Thread-safety: none.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "laneshift/result.h"
#include "tools/settings.h"
#include "tools/verbs/verbs.h"

namespace laneshift::tools {

class CommandLine {
 public:
  explicit CommandLine(const Settings& settings);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine();

  // Parses the arguments and runs the verb. Returns the exit code; the caller reports an Error.
  Result<int> Run(int argc, const char* const* argv);

  const CLI::App& app() const { return *app_; }

 private:
  std::unique_ptr<CLI::App> app_;
  std::vector<std::pair<CLI::App*, Verb>> verbs_;
  bool verbose_ = false;
};

// Whether the arguments ask for JSON, even if they cannot be parsed.
bool AsksForJson(int argc, const char* const* argv);

}  // namespace laneshift::tools
