// Evidence of reuse: what each way of coming by the activations of a convolution moves, as a table and as JSON.
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

// One object a mode; a refused one has null for what it lacks.
nlohmann::ordered_json ReuseModesJson(const std::vector<autotune::ReuseMode>& modes);
// A table with one row for each mode that runs, its schedules and the reasons of the others below.
std::string ReuseModesText(const std::vector<autotune::ReuseMode>& modes, const Screen& screen, ScheduleView view);

}  // namespace laneshift::tools
