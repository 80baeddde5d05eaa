// Advice for people and programs: what binds a kernel, how far it is from the floor, what would make it faster.
//
// Thread-safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "autotune/advice.h"
#include "autotune/timing_model.h"
#include "laneshift/schedule.h"
#include "tools/reports/schedule_view.h"

namespace laneshift::tools {

// A schedule to compare with: the next one of a ranking, or the best one without the caller's constraint.
struct RivalSchedule {
  std::string_view what;  // "the next best schedule"
  Schedule schedule;
  autotune::Prediction prediction{};
};

struct AdvisedSchedule {
  Schedule schedule;
  const target::Target* target = nullptr;
  autotune::ScheduleAdvice advice{};
  std::optional<RivalSchedule> rival{};
};

// The keys of `to` that differ from those of `from`: "stages=7 cluster=2x1".
std::string DifferenceOf(const Schedule& from, const Schedule& to);
// "tensor core 80%, store 12%": the larger causes, largest first.
std::string BreakdownText(const autotune::Prediction& prediction);
nlohmann::ordered_json BreakdownJson(const autotune::Prediction& prediction);
// "0.4 us more store, 2.1 us less load latency".
std::string TradeText(const autotune::Prediction& from, const autotune::Prediction& to);

nlohmann::ordered_json AdviceJson(const AdvisedSchedule& advised);
// Sentences, a line each.
std::string AdviceText(const AdvisedSchedule& advised);

}  // namespace laneshift::tools
