// The report of `tune`: one JSON object per problem for programs, a table for people.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "autotune/tuner.h"
#include "laneshift/problem.h"
#include "tools/reports/schedule_view.h"
#include "tools/table.h"

namespace laneshift::tools {

struct TunedProblem {
  Problem problem;
  Result<autotune::TuneOutcome> outcome;
};

enum class TuneDetail { kWinner, kEveryCandidate };

// One line, no newline. The keys are always the same; null where a value is unknown.
std::string PrintTuneJson(const TunedProblem& tuned, TuneDetail detail);

std::string PrintTuneTable(const std::vector<TunedProblem>& tuned, const Screen& screen, ScheduleView view);

}  // namespace laneshift::tools
