#include "tools/reports/rate_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tools/optional_json.h"

namespace laneshift::tools {
namespace {

using base::Cat;
using Json = nlohmann::ordered_json;

std::optional<double> RatioOf(const runtime::SurveyedPoint& point) {
  if (!point.outcome.figure || !point.assumed || *point.assumed <= 0) return std::nullopt;
  return *point.outcome.figure / *point.assumed;
}

std::string DataOf(const runtime::SurveyedPoint& point) {
  if (!point.failure.empty()) return "failed";
  if (!point.outcome.wrong.empty()) return "wrong";
  return point.hazards.empty() ? "right" : "hazards";
}

std::string Shown(const std::optional<double>& value, int digits) { return value ? PrintFixed(*value, digits) : ""; }

}  // namespace

Json RatesJson(const runtime::RateSurvey& survey) {
  Json list = Json::array();
  for (const runtime::SurveyedPoint& point : survey.points) {
    Json object = {{"name", point.name},
                   {"unit", runtime::UnitName(point.unit)},
                   {"figure", OrNull(point.outcome.figure)},
                   {"spread", point.outcome.figure ? Json(point.outcome.spread) : Json()},
                   {"model", OrNull(point.assumed)},
                   {"ratio", OrNull(RatioOf(point))},
                   {"fact", nullptr},
                   {"detail", nullptr},
                   {"data", DataOf(point)},
                   {"wrong", nullptr},
                   {"hazards", point.hazards},
                   {"failure", nullptr}};
    if (!point.fact.empty()) object["fact"] = point.fact;
    if (!point.outcome.detail.empty()) object["detail"] = point.outcome.detail;
    if (!point.outcome.wrong.empty()) object["wrong"] = point.outcome.wrong;
    if (!point.failure.empty()) object["failure"] = point.failure;
    list.push_back(std::move(object));
  }
  return list;
}

std::string RatesText(const runtime::RateSurvey& survey, const Screen& screen) {
  const bool timed = survey.clocks == runtime::ProbeClocks::kMeasured;
  std::string text;
  if (!timed && !survey.points.empty()) {
    text = Cat("An emulator's clocks are not times: only the data of the probes were checked (",
               base::Join(survey.orders, ", "), ").\n");
  }
  TextTable table({{"probe"},
                   {"here", Align::kRight},
                   {"unit"},
                   {"spread", Align::kRight},
                   {"model", Align::kRight},
                   {"ratio", Align::kRight},
                   {"data"},
                   {"detail", Align::kLeft, Room::kLong}});
  std::string wrong;
  for (const runtime::SurveyedPoint& point : survey.points) {
    table.Add({{point.name},
               {Shown(point.outcome.figure, 2)},
               {std::string(runtime::UnitName(point.unit))},
               {point.outcome.figure ? Cat(PrintFixed(point.outcome.spread * 100, 1), " %") : ""},
               {Shown(point.assumed, 2)},
               {Shown(RatioOf(point), 2)},
               {DataOf(point), point.Right() ? Tint::kGood : Tint::kBad},
               {point.outcome.detail, Tint::kFaint}});
    if (!point.outcome.wrong.empty()) wrong += Cat(point.name, ": ", point.outcome.wrong, "\n");
    for (const std::string& hazard : point.hazards) wrong += Cat(point.name, ": ", hazard, "\n");
    if (!point.failure.empty()) wrong += Cat(point.name, ": ", point.failure, "\n");
  }
  text += table.Print(screen) + wrong;
  if (survey.left_out > 0)
    text += Cat(survey.left_out, " probes after it were not run: the device's context was lost.\n");
  return text;
}

}  // namespace laneshift::tools
