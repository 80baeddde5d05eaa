#include "tools/reports/tune_report.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "store/trial_table.h"
#include "tools/error_json.h"
#include "tools/json_line.h"
#include "tools/optional_json.h"
#include "tools/table.h"

namespace laneshift::tools {
namespace {

using autotune::Estimate;
using autotune::TuneOutcome;
using base::Cat;
using store::Verdict;
using Json = nlohmann::ordered_json;

constexpr Verdict kVerdicts[] = {Verdict::kPassed, Verdict::kWrong, Verdict::kCrashed, Verdict::kHung,
                                 Verdict::kRefused};

Json CandidatesOf(const TuneOutcome& outcome) {
  Json candidates = Json::array();
  for (const autotune::TunedCandidate& candidate : outcome.candidates) {
    Json row = {{"schedule", candidate.schedule}, {"predicted_us", candidate.predicted_us}};
    row["verdict"] = candidate.trial ? Json(store::VerdictName(candidate.trial->verdict)) : Json();
    row["time_us"] = Json();
    if (candidate.trial && candidate.trial->Timed()) {
      const Estimate estimate = autotune::EstimateOf(*candidate.trial);
      row["time_us"] = estimate.median;
      row["low_us"] = estimate.low;
      row["high_us"] = estimate.high;
      row["samples"] = candidate.trial->samples.size();
      const store::Conditions& conditions = candidate.trial->samples.back().conditions;
      row["sm_mhz"] = OrNull(conditions.sm_mhz);
      row["power_w"] = OrNull(conditions.power_w);
      row["throttle_reasons"] = OrNull(conditions.throttle_reasons);
    }
    if (candidate.trial && !candidate.trial->detail.empty()) row["detail"] = candidate.trial->detail;
    candidates.push_back(std::move(row));
  }
  return candidates;
}

// How many times faster than what runs without tuning.
std::optional<double> Gain(const TuneOutcome& outcome) {
  if (!outcome.time_us || !outcome.default_us || outcome.time_us->median <= 0) return std::nullopt;
  return *outcome.default_us / outcome.time_us->median;
}

}  // namespace

std::string PrintTuneJson(const TunedProblem& tuned, TuneDetail detail) {
  static const TuneOutcome kNone;
  const bool found = tuned.outcome.has_value();
  const TuneOutcome& o = found ? *tuned.outcome : kNone;
  const auto known = [&](const auto& value) { return found ? Json(value) : Json(); };
  Json json;
  json["problem"] = PrintProblem(tuned.problem);
  json["target"] = known(o.target);
  json["device"] = known(o.device_name);
  json["device_key"] = known(o.device);
  json["schedule"] = known(o.schedule);
  json["time_us"] = o.time_us ? Json(o.time_us->median) : Json();
  json["time_low_us"] = o.time_us ? Json(o.time_us->low) : Json();
  json["time_high_us"] = o.time_us ? Json(o.time_us->high) : Json();
  json["predicted_us"] = known(o.predicted_us);
  json["measured"] = known(o.time_us.has_value());
  json["verified"] = known(o.verified);
  json["trials"] = known(o.trials);
  json["known_trials"] = known(o.known);
  json["space"] = known(o.candidates.size());
  for (const Verdict verdict : kVerdicts) {
    json[std::string(store::VerdictName(verdict))] = known(o.verdicts[static_cast<size_t>(verdict)]);
  }
  json["complete"] = known(o.complete);
  json["default_schedule"] = known(o.default_schedule);
  json["default_us"] = OrNull(o.default_us);
  json["default_predicted_us"] = known(o.default_predicted_us);
  json["gain"] = OrNull(Gain(o));
  json["seconds"] = known(o.seconds);
  if (detail == TuneDetail::kEveryCandidate) json["candidates"] = CandidatesOf(o);
  json["error"] = Json();
  if (!found) {
    json["error"] = ErrorJson(tuned.outcome.error());
  }
  return JsonLine(json);
}

std::string PrintTuneTable(const std::vector<TunedProblem>& tuned, const Screen& screen, ScheduleView view) {
  TextTable table({{"problem", Align::kLeft, Room::kLong},
                   {"schedule", Align::kLeft, Room::kLong},
                   {"time", Align::kRight},
                   {"default", Align::kRight},
                   {"gain", Align::kRight},
                   {"predicted", Align::kRight},
                   {"trials", Align::kRight},
                   {"verified"}});
  for (const TunedProblem& one : tuned) {
    std::vector<Cell> row = {{PrintProblem(one.problem)}};
    if (!one.outcome) {
      row.insert(row.end(), {{"-"}, {"FAILED", Tint::kBad}});
      row.resize(8, {"-", Tint::kFaint});
      table.Add(std::move(row));
      continue;
    }
    const TuneOutcome& o = *one.outcome;
    const auto gain = Gain(o);
    row.push_back({ShowSchedule(o.schedule, view), Tint::kFaint});
    row.push_back({o.time_us ? PrintDuration(o.time_us->median / 1000) : "predicted"});
    row.push_back({o.default_us ? PrintDuration(*o.default_us / 1000) : "-"});
    row.push_back({gain ? PrintFixed(*gain, 3) : "-", gain && *gain > 1 ? Tint::kGood : Tint::kPlain});
    row.push_back({PrintDuration(o.predicted_us / 1000)});
    row.push_back({o.known > 0 ? Cat(o.trials, "+", o.known) : Cat(o.trials)});
    row.push_back(o.verified ? Cell{"yes", Tint::kGood} : Cell{"NO", Tint::kBad});
    table.Add(std::move(row));
  }
  return table.Print(screen);
}

}  // namespace laneshift::tools
