// RateSurvey: points of the families on a device, one after the other, each with what the timing model assumes.
//
// Thread-safety: none; the device is used exclusively.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autotune/machine.h"
#include "laneshift/engine.h"
#include "runtime/engine_parts.h"
#include "runtime/probes/rate_probe.h"

namespace laneshift::runtime {

// The points that `only` names: families ("mma"), points ("shift.cta1"), or what begins the names of points
// ("mma.f16.ss"). Empty: all that the target has. kInvalidArgument: a name that is of nothing, with the nearest one;
// kUnsupported: the target does not have it.
Result<std::vector<ProbePoint>> SelectPoints(const target::Target& target, const std::vector<std::string>& only);

struct SurveyedPoint {
  std::string name{};
  RateUnit unit = RateUnit::kClocks;
  RateOutcome outcome{};
  std::optional<double> assumed{};     // by the model, as it is now
  std::string fact{};                  // that the figure is; empty: none
  std::vector<std::string> hazards{};  // of the emulator
  std::string failure{};               // the driver's, after which nothing else was run; empty: none

  bool Right() const { return outcome.wrong.empty() && hazards.empty() && failure.empty(); }
};

struct RateSurvey {
  ProbeClocks clocks = ProbeClocks::kNone;
  std::vector<std::string> orders{};  // of an emulator, under which each was run
  std::vector<SurveyedPoint> points{};
  size_t left_out = 0;  // after a failure
};

// Runs them. `orders`: of the emulator's completions, each as ParseAsyncOrder reads it; on a GPU they mean nothing.
// `progress`: called before each.
Result<RateSurvey> SurveyRates(const Engine::Parts& parts, const std::vector<ProbePoint>& points,
                               const autotune::Machine& machine, const std::vector<std::string>& orders,
                               const std::function<void(const ProbePoint&, size_t index)>& progress);

}  // namespace laneshift::runtime
