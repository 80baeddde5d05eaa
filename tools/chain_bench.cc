#include "tools/chain_bench.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "autotune/statistics.h"
#include "base/text.h"
#include "measure/chain.h"
#include "measure/nvml.h"
#include "runtime/engine_parts.h"
#include "tools/json_line.h"
#include "tools/optional_json.h"
#include "tools/table.h"
#include "tools/terminal.h"

namespace laneshift::tools {
namespace {

using autotune::Estimate;
using base::Cat;
using Json = nlohmann::ordered_json;

struct TimedChain {
  std::vector<Estimate> layers;  // microseconds of a layer, of each way
  store::Conditions conditions{};
};

Result<TimedChain> TimeLayers(const Engine& engine, const measure::Chain& chain, const ChainSettings& settings) {
  const auto nvml = measure::Nvml::Open(engine.parts().device);
  measure::ReadConditions read;
  if (nvml) read = [&] { return nvml->Read(); };
  LS_ASSIGN(auto samples, chain.Time(settings.rounds, read));
  TimedChain timed{.layers = {}, .conditions = samples.front().back().conditions};
  for (auto& of_way : samples) {
    for (store::Sample& sample : of_way) sample.time_us /= settings.layers;
    timed.layers.push_back(autotune::EstimateOf(of_way));
  }
  return timed;
}

Json JsonOf(const Engine& engine, const std::vector<Problem>& problems, const measure::Chain& chain,
            const TimedChain& timed, const ChainSettings& settings) {
  Json chained = Json::array();
  for (size_t i = 0; i < problems.size(); ++i) {
    const PlanReport& report = chain.reports()[i];
    chained.push_back({{"problem", PrintProblem(problems[i])},
                       {"schedule", report.schedule},
                       {"choice", ChoiceOriginName(report.choice)}});
  }
  const Estimate& ours = timed.layers.front();
  Json json = {{"chain", std::move(chained)},    {"layers", settings.layers}, {"target", engine.target()},
               {"device", engine.device_name()}, {"layer_us", ours.median},   {"layer_low_us", ours.low},
               {"layer_high_us", ours.high}};
  Json notes = Json::array();
  for (size_t i = 1; i < chain.ways().size(); ++i) {
    const auto& way = chain.ways()[i];
    json[Cat(way.name, "_us")] = timed.layers[i].median;
    json[Cat("vs_", way.name)] = timed.layers[i].median / ours.median;
    for (const std::string& note : way.notes) notes.push_back(note);
  }
  json["sm_mhz"] = OrNull(timed.conditions.sm_mhz);
  json["memory_mhz"] = OrNull(timed.conditions.memory_mhz);
  json["notes"] = std::move(notes);
  return json;
}

void PrintText(const std::vector<Problem>& problems, const measure::Chain& chain, const TimedChain& timed,
               const ChainSettings& settings) {
  TextTable table({{"problem", Align::kLeft, Room::kLong}, {"schedule", Align::kLeft, Room::kLong}, {"choice"}});
  for (size_t i = 0; i < problems.size(); ++i) {
    const PlanReport& report = chain.reports()[i];
    table.Add({{PrintProblem(problems[i])},
               {ShowSchedule(report.schedule, settings.view), Tint::kFaint},
               {std::string(ChoiceOriginName(report.choice))}});
  }
  std::fputs(table.Print(StdoutScreen()).c_str(), stdout);
  TextTable times({{Cat("one of ", settings.layers, " layers")}, {"time", Align::kRight}, {"ratio", Align::kRight}});
  const double ours = timed.layers.front().median;
  for (size_t i = 0; i < chain.ways().size(); ++i) {
    const double us = timed.layers[i].median;
    times.Add({{chain.ways()[i].name}, {PrintDuration(us / 1000)}, {i == 0 ? "" : PrintFixed(us / ours, 3)}});
  }
  std::printf("\n");
  std::fputs(times.Print(StdoutScreen()).c_str(), stdout);
}

}  // namespace

Status BenchChain(const Engine& engine, const std::vector<Problem>& problems, const ChainSettings& settings) {
  LS_ASSIGN(const device::Stream stream, device::Stream::Create(engine.parts().device.context()));
  LS_ASSIGN(measure::Chain chain,
            measure::Chain::Make(engine, stream, problems, settings.constraint, settings.layers, settings.seed));
  for (const measure::Peer peer : settings.peers) {
    if (const Status added = chain.AddPeer(peer, settings.library_directories); !added)
      Tell("note", added.error().message);
  }
  LS_ASSIGN(const TimedChain timed, TimeLayers(engine, chain, settings));
  if (settings.json) {
    std::printf("%s\n", JsonLine(JsonOf(engine, problems, chain, timed, settings)).c_str());
  } else {
    PrintText(problems, chain, timed, settings);
  }
  return Ok();
}

}  // namespace laneshift::tools
