#include "runtime/probes/rate_survey.h"

#include <algorithm>

#include "base/text.h"
#include "emulator/driver/driver.h"
#include "runtime/open_device.h"
#include "runtime/probes/rate_run.h"

namespace laneshift::runtime {
namespace {

using base::Cat;

bool Names(const std::string& only, const std::string& point) {
  return point.starts_with(only) && (point.size() == only.size() || point[only.size()] == '.');
}

bool IsKnown(const std::string& only) {
  for (const target::Target& target : target::Targets()) {
    for (const RateFamily& family : RateFamilies()) {
      for (const ProbePoint& point : family.points(target)) {
        if (Names(only, point.name)) return true;
      }
    }
  }
  return false;
}

// Of the emulator, in one order.
void RunEmulated(const ProbeDevice& on, const ProbePoint& point, const std::string& order, SurveyedPoint& row) {
  (void)emulator::TakeReport();
  const auto outcome = RunPoint(on, point);
  const emulator::Report report = emulator::TakeReport();
  for (const emulator::Hazard& hazard : report.hazards) row.hazards.push_back(Cat(order, ": ", hazard.Print()));
  if (!outcome) {
    row.failure = Cat(order, ": ", outcome.error().message);
  } else if (!outcome->wrong.empty() && row.outcome.wrong.empty()) {
    row.outcome.wrong = Cat(order, ": ", outcome->wrong);
  }
}

}  // namespace

Result<std::vector<ProbePoint>> SelectPoints(const target::Target& target, const std::vector<std::string>& only) {
  std::vector<ProbePoint> all, selected;
  std::vector<std::string_view> families;
  for (const RateFamily& family : RateFamilies()) {
    families.push_back(family.name);
    for (ProbePoint& point : family.points(target)) all.push_back(std::move(point));
  }
  if (only.empty()) return all;
  for (const std::string& name : only) {
    if (std::any_of(all.begin(), all.end(), [&](const ProbePoint& point) { return Names(name, point.name); })) continue;
    if (IsKnown(name)) return MakeError(ErrorCode::kUnsupported, Cat("no probe ", name, " for ", target.name));
    return MakeError(ErrorCode::kInvalidArgument,
                     Cat(base::UnknownName("probe", name, families), " (laneshift probe --list names all)"));
  }
  for (ProbePoint& point : all) {
    if (std::any_of(only.begin(), only.end(), [&](const std::string& name) { return Names(name, point.name); }))
      selected.push_back(std::move(point));
  }
  return selected;
}

Result<RateSurvey> SurveyRates(const Engine::Parts& parts, const std::vector<ProbePoint>& points,
                               const autotune::Machine& machine, const std::vector<std::string>& orders,
                               const std::function<void(const ProbePoint&, size_t)>& progress) {
  LS_ASSIGN(const device::ActiveContext active, parts.device.Activate());
  LS_ASSIGN(const device::Stream stream, device::Stream::Create(parts.device.context()));
  RateSurvey survey{.clocks = parts.emulated ? ProbeClocks::kNone : ProbeClocks::kMeasured};
  if (parts.emulated) survey.orders = orders;
  const ProbeDevice on{parts.device, stream, parts.target, survey.clocks};
  for (size_t i = 0; i < points.size(); ++i) {
    const ProbePoint& point = points[i];
    progress(point, i);
    SurveyedPoint row{.name = point.name, .unit = point.unit, .fact = std::string(point.fact)};
    if (point.assumed) row.assumed = point.assumed(machine);
    for (const std::string& order : survey.orders) {
      LS_ASSIGN(const AsyncOrder parsed, ParseAsyncOrder(order));
      SetAsyncOrder(parsed);
      RunEmulated(on, point, order, row);
    }
    if (!parts.emulated) {
      auto outcome = RunPoint(on, point);
      if (outcome) {
        row.outcome = std::move(*outcome);
      } else {
        row.failure = outcome.error().message;
      }
    }
    survey.points.push_back(std::move(row));
    // A kernel that has failed takes the context with it.
    if (!survey.points.back().failure.empty() && !parts.emulated) {
      survey.left_out = points.size() - i - 1;
      break;
    }
  }
  return survey;
}

}  // namespace laneshift::runtime
