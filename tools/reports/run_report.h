// The report of `run`: one JSON object per problem for programs, a table for people.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "laneshift/result.h"
#include "tools/problem_run.h"
#include "tools/reports/schedule_view.h"
#include "tools/table.h"

namespace laneshift::tools {

struct ProblemOutcome {
  Problem problem;
  Result<RunOutcome> outcome;
};

// One line, no newline. The keys are always the same; null if a value is unknown. `engine_target` and `engine_device`
// are used if there is no plan.
std::string PrintJson(const ProblemOutcome& run, const std::string& engine_target, const std::string& engine_device);

// The table over all problems.
std::string PrintTable(const std::vector<ProblemOutcome>& runs, const Screen& screen, ScheduleView view);

}  // namespace laneshift::tools
