// Reuse report: the traffic of each reuse mode of a convolution, as a table and as JSON.
//
// Thread-safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "autotune/reuse_modes.h"
#include "tools/reports/schedule_view.h"
#include "tools/table.h"

namespace laneshift::tools {

// One object per mode; a refused one has null for missing values.
nlohmann::ordered_json ReuseModesJson(const std::vector<autotune::ReuseMode>& modes);
// A table with one row for each mode that runs, its schedules and, after it, the reasons of the others.
std::string ReuseModesText(const std::vector<autotune::ReuseMode>& modes, const Screen& screen, ScheduleView view);

}  // namespace laneshift::tools
