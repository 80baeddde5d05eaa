// The verbs of `laneshift db`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "laneshift/result.h"
#include "tools/reports/schedule_view.h"
#include "tools/settings.h"

namespace laneshift::tools {

// As written on the command line; each verb reads its options.
struct DbOptions {
  std::string store;  // empty: the user's
  bool json = false;
  ScheduleView view = ScheduleView::kShort;
  std::vector<std::string> files, words, only;
  std::optional<double> older_than_days;
  std::optional<int64_t> max_code;  // in bytes
  bool other_generators = false, damaged = false, with_kernels = false, dry_run = false;
};

Result<int> DbStat(const DbOptions& options, const Settings& settings);
Result<int> DbList(const DbOptions& options, const Settings& settings);
Result<int> DbShow(const DbOptions& options, const Settings& settings);
Result<int> DbExport(const DbOptions& options, const Settings& settings);
Result<int> DbMerge(const DbOptions& options, const Settings& settings);
Result<int> DbDiff(const DbOptions& options, const Settings& settings);
Result<int> DbVerify(const DbOptions& options, const Settings& settings);
Result<int> DbPrune(const DbOptions& options, const Settings& settings);
Result<int> DbSeal(const DbOptions& options, const Settings& settings);

}  // namespace laneshift::tools
