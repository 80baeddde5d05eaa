#include "tools/reports/run_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"
#include "laneshift/schedule.h"
#include "tools/error_json.h"
#include "tools/json_line.h"
#include "tools/optional_json.h"
#include "tools/table.h"

namespace laneshift::tools {
namespace {

using Json = nlohmann::ordered_json;
using base::Cat;

// How many times the peer's time is ours.
std::optional<double> Ratio(const RunOutcome& outcome, const std::optional<double>& peer_us) {
  if (!peer_us || !outcome.time_us || *outcome.time_us <= 0) return std::nullopt;
  return *peer_us / *outcome.time_us;
}

std::string Scientific(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.1e", value);
  return buffer;
}

Cell VerifiedCell(const RunOutcome& outcome) {
  if (!outcome.verified) return {"not checked", Tint::kFaint};
  return *outcome.verified ? Cell{"yes", Tint::kGood} : Cell{"NO", Tint::kBad};
}

std::string KernelCell(const PlanReport& plan) {
  if (plan.cache == CacheState::kMemory) return Cat(CacheStateName(plan.cache));
  if (plan.cache != CacheState::kCompiled) return Cat(CacheStateName(plan.cache), " in ", PrintDuration(plan.plan_ms));
  return Cat("compiled in ", PrintDuration(plan.plan_ms));
}

std::string TimeCell(const RunOutcome& outcome) {
  if (outcome.time_us) return PrintDuration(*outcome.time_us / 1000);
  if (outcome.emulate_ms) return Cat("emulated ", PrintDuration(*outcome.emulate_ms));
  return "-";
}

}  // namespace

std::string PrintJson(const ProblemOutcome& run, const std::string& engine_target, const std::string& engine_device) {
  const RunOutcome* outcome = run.outcome ? &*run.outcome : nullptr;
  const PlanReport* plan = outcome != nullptr ? &outcome->plan : nullptr;
  const auto of_plan = [&](auto field) { return plan != nullptr ? Json(plan->*field) : Json(); };
  Json json;
  json["problem"] = PrintProblem(run.problem);
  json["target"] = engine_target;
  json["device"] = engine_device;
  json["schedule"] = of_plan(&PlanReport::schedule);
  json["verified"] = outcome != nullptr ? OrNull(outcome->verified) : Json();
  json["max_rel_err"] = outcome != nullptr ? OrNull(outcome->max_rel_err) : Json();
  json["hazards"] = outcome != nullptr ? OrNull(outcome->hazards) : Json();
  json["policies"] = outcome != nullptr ? OrNull(outcome->policies) : Json();
  json["choice"] = plan != nullptr ? Json(ChoiceOriginName(plan->choice)) : Json();
  json["cache"] = plan != nullptr ? Json(CacheStateName(plan->cache)) : Json();
  json["ptx_ms"] = of_plan(&PlanReport::ptx_ms);
  json["assemble_ms"] = of_plan(&PlanReport::assemble_ms);
  json["plan_ms"] = of_plan(&PlanReport::plan_ms);
  json["time_us"] = outcome != nullptr ? OrNull(outcome->time_us) : Json();
  json["tflops"] = outcome != nullptr ? OrNull(outcome->Tflops(run.problem)) : Json();
  json["cublas_us"] = outcome != nullptr ? OrNull(outcome->cublas_us) : Json();
  json["vs_cublas"] = outcome != nullptr ? OrNull(Ratio(*outcome, outcome->cublas_us)) : Json();
  json["cudnn_us"] = outcome != nullptr ? OrNull(outcome->cudnn_us) : Json();
  json["vs_cudnn"] = outcome != nullptr ? OrNull(Ratio(*outcome, outcome->cudnn_us)) : Json();
  json["arithmetic"] = outcome != nullptr ? OrNull(outcome->arithmetic) : Json();
  json["emulate_ms"] = outcome != nullptr ? OrNull(outcome->emulate_ms) : Json();
  json["reference"] = outcome != nullptr && outcome->comparison ? Json(outcome->comparison->reference) : Json();
  json["registers"] = plan != nullptr && plan->registers > 0 ? Json(plan->registers) : Json();
  json["local_bytes"] = of_plan(&PlanReport::local_bytes);
  json["smem_bytes"] = of_plan(&PlanReport::smem_bytes);
  json["threads"] = of_plan(&PlanReport::threads);
  json["grid"] = of_plan(&PlanReport::grid);
  json["notes"] = outcome != nullptr ? Json(outcome->notes) : Json::array();
  json["failures"] = outcome != nullptr ? Json(outcome->failures) : Json::array();
  json["error"] = Json();
  if (!run.outcome) {
    json["error"] = ErrorJson(run.outcome.error());
  }
  return JsonLine(json);
}

std::string PrintTable(const std::vector<ProblemOutcome>& runs, const Screen& screen, ScheduleView view) {
  bool on_gpu = false, against_cublas = false, against_cudnn = false;
  for (const ProblemOutcome& run : runs) {
    on_gpu = on_gpu || (run.outcome && run.outcome->time_us);
    against_cublas = against_cublas || (run.outcome && run.outcome->cublas_us);
    against_cudnn = against_cudnn || (run.outcome && run.outcome->cudnn_us);
  }
  std::vector<Column> columns = {{"problem", Align::kLeft, Room::kLong},
                                 {"schedule", Align::kLeft, Room::kLong},
                                 {"verified"},
                                 {"error", Align::kRight},
                                 {"kernel"},
                                 {"time", Align::kRight}};
  if (on_gpu) columns.push_back({"TFLOP/s", Align::kRight});
  if (against_cublas) columns.push_back({"of cuBLAS", Align::kRight});
  if (against_cudnn) columns.push_back({"of cuDNN", Align::kRight});
  TextTable table(columns);
  for (const ProblemOutcome& run : runs) {
    std::vector<Cell> row = {{PrintProblem(run.problem)}};
    if (!run.outcome) {
      row.push_back({"-"});
      row.push_back({"FAILED", Tint::kBad});
      row.resize(columns.size(), {"-", Tint::kFaint});
      table.Add(std::move(row));
      continue;
    }
    const RunOutcome& outcome = *run.outcome;
    row.push_back({ShowSchedule(outcome.plan.schedule, view), Tint::kFaint});
    row.push_back(VerifiedCell(outcome));
    row.push_back({outcome.max_rel_err ? Scientific(*outcome.max_rel_err) : "-"});
    row.push_back({KernelCell(outcome.plan), outcome.plan.cache == CacheState::kCompiled ? Tint::kPlain : Tint::kGood});
    row.push_back({TimeCell(outcome)});
    const auto tflops = outcome.Tflops(run.problem);
    if (on_gpu) row.push_back({tflops ? PrintFixed(*tflops, 1) : "-"});
    const auto ratio = [&](const std::optional<double>& peer_us) -> Cell {
      const auto of_peer = Ratio(outcome, peer_us);
      return {of_peer ? PrintFixed(*of_peer, 3) : "-"};
    };
    if (against_cublas) row.push_back(ratio(outcome.cublas_us));
    if (against_cudnn) row.push_back(ratio(outcome.cudnn_us));
    table.Add(std::move(row));
  }
  return table.Print(screen);
}

}  // namespace laneshift::tools
