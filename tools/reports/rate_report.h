// RateReport: what the kernels of a probe have measured, next to what the timing model assumes.
//
// Thread-safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/probes/rate_survey.h"
#include "tools/table.h"

namespace laneshift::tools {

// One object a point: name, unit, figure, spread, model, ratio (figure by model), fact, detail, data ("right", or what
// is wrong), hazards, failure. Unknown values are null.
nlohmann::ordered_json RatesJson(const runtime::RateSurvey& survey);
// A table, and below it what is wrong. Says so if the clocks are not times.
std::string RatesText(const runtime::RateSurvey& survey, const Screen& screen);

}  // namespace laneshift::tools
