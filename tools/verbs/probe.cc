#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "autotune/machine.h"
#include "base/text.h"
#include "runtime/engine_parts.h"
#include "runtime/machine_probe.h"
#include "tools/device_options.h"
#include "tools/exit_code.h"
#include "tools/json_line.h"
#include "tools/reports/probe_report.h"
#include "tools/table.h"
#include "tools/verbs/verbs.h"

namespace laneshift::tools {
namespace {

using base::Cat;
using Json = nlohmann::ordered_json;

constexpr const char* kProbeExamples = R"(
Examples:
  laneshift probe
  laneshift probe --device cuda:1 --json

What is measured is kept in the store and used by the timing model of this device from then on (laneshift explain,
the choice of schedules), but for what no such device does, which is reported as not used; docs/timing-model.md tells
how each fact is measured, and what is only reported.)";

struct ProbeOptions {
  DeviceOptions device;
  bool json = false;
};

// Measurements in addition to the facts of the model.
Json DetailJson(const runtime::MachineProbe& probed) {
  Json products = Json::array(), loads = Json::array();
  for (const auto& product : probed.products)
    products.push_back({{"columns", product.columns}, {"clocks", product.clocks}});
  for (const auto& load : probed.loads) loads.push_back({{"bytes", load.bytes}, {"clocks", load.clocks}});
  return {{"products", std::move(products)},
          {"loads", std::move(loads)},
          {"handoff_clocks", probed.handoff_clocks},
          {"gpcs", probed.gpcs}};
}

void PrintDetail(const runtime::MachineProbe& probed) {
  TextTable table({{"what"}, {"of", Align::kRight}, {"clk", Align::kRight}});
  for (const auto& product : probed.products)
    table.Add({{"product, one instruction"}, {Cat(product.columns, " columns")}, {PrintFixed(product.clocks, 1)}});
  for (const auto& load : probed.loads)
    table.Add({{"load, one at a time"}, {Cat(load.bytes, " bytes")}, {PrintFixed(load.clocks, 0)}});
  table.Add({{"handoff by a barrier"}, {""}, {PrintFixed(probed.handoff_clocks, 0)}});
  std::printf("\n%s", table.Print(StdoutScreen()).c_str());
  std::vector<std::string> gpcs;
  for (const int sms : probed.gpcs) gpcs.push_back(Cat(sms));
  std::printf("SMs of each GPC that clusters reach: %s\n", base::Join(gpcs, " ").c_str());
}

// The store keeps them under these names too; no model reads them.
Status StoreDetail(const runtime::MachineProbe& probed, const Engine::Parts& parts) {
  const auto put = [&](const std::string& name, const std::string& answer) {
    return parts.store.PutFact({.device = parts.device_key, .name = Cat("probe.", name), .answer = answer});
  };
  for (const auto& product : probed.products) LS_TRY(put(Cat("product_clocks.", product.columns), Cat(product.clocks)));
  for (const auto& load : probed.loads) LS_TRY(put(Cat("load_clocks.", load.bytes), Cat(load.clocks)));
  LS_TRY(put("handoff_clocks", Cat(probed.handoff_clocks)));
  std::vector<std::string> gpcs;
  for (const int sms : probed.gpcs) gpcs.push_back(Cat(sms));
  return put("gpc_sms", base::Join(gpcs, " "));
}

Result<int> Probe(const ProbeOptions& options, const Settings& settings) {
  LS_ASSIGN(const EngineOptions engine_options, options.device.ToEngineOptions(settings));
  LS_ASSIGN(const Engine engine, Engine::Open(engine_options));
  const Engine::Parts& parts = engine.parts();
  LS_ASSIGN(const auto probed, runtime::ProbeMachine(parts.device, parts.target, parts.emulated));
  for (const runtime::ProbedFact& fact : probed.facts) {
    if (!autotune::FittedFact(parts.target, fact.name, fact.value)) continue;
    LS_TRY(parts.store.PutFact({.device = parts.device_key,
                                .name = autotune::StoredName(fact.name),
                                .answer = autotune::PrintFact(fact.value)}));
  }
  LS_TRY(StoreDetail(probed, parts));
  const int sms = parts.device.facts().sm_count;
  const std::vector<ProbedRow> rows =
      CompareFacts(probed, parts.target, autotune::MachineOf(parts.target, sms, parts.device_key, parts.store));
  if (options.json) {
    Json object = {
        {"device", engine.device_name()}, {"target", engine.target()}, {"sms", sms}, {"facts", FactsJson(rows)}};
    object.update(DetailJson(probed));
    std::printf("%s\n", JsonLine(object).c_str());
  } else {
    std::printf("%s, %s, %d SMs\n", engine.device_name().c_str(), engine.target().c_str(), sms);
    std::fputs(FactsText(rows, StdoutScreen()).c_str(), stdout);
    PrintDetail(probed);
  }
  return kExitOk;
}

}  // namespace

Verb AddProbe(CLI::App& app, const Settings& settings) {
  CLI::App* verb = app.add_subcommand("probe", "Measure a GPU's speeds and latencies, for the timing model");
  auto options = std::make_shared<ProbeOptions>();
  options->device.AddTo(*verb, {.emulator = false, .plans = false, .functions = false});
  verb->add_flag("--json", options->json, "one JSON object on stdout");
  verb->footer(kProbeExamples);
  return [options, settings] { return Probe(*options, settings); };
}

}  // namespace laneshift::tools
