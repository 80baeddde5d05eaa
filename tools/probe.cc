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
#include "tools/table.h"
#include "tools/verbs.h"

namespace laneshift::tools {
namespace {

using autotune::Machine;
using base::Cat;
using Json = nlohmann::ordered_json;

constexpr const char* kExamples = R"(
Examples:
  laneshift probe
  laneshift probe --device cuda:1 --json

What is measured is kept in the store and used by the timing model of this device from then on (laneshift explain,
the choice of schedules); docs/timing-model.md tells how each fact is measured.)";

struct ProbeOptions {
  DeviceOptions device;
  bool json = false;
};

Json FactJson(const autotune::MachineFact& fact, double published, bool measured) {
  return {{"name", fact.name},
          {"unit", fact.unit},
          {"value", fact.value},
          {"published", published},
          {"measured", measured}};
}

Result<int> Probe(const ProbeOptions& options, const Settings& settings) {
  LS_ASSIGN(const EngineOptions engine_options, options.device.ToEngineOptions(settings));
  LS_ASSIGN(const Engine engine, Engine::Open(engine_options));
  const Engine::Parts& parts = engine.parts();
  LS_ASSIGN(const auto probed, runtime::ProbeMachine(parts.device, parts.target, parts.emulated));
  for (const runtime::ProbedFact& fact : probed) {
    LS_TRY(parts.store.PutFact(
        {.device = parts.device_key, .name = autotune::StoredName(fact.name), .answer = Cat(fact.value)}));
  }
  const int sms = parts.device.facts().sm_count;
  const Machine published = autotune::PublishedMachine(parts.target, sms);
  const Machine machine = autotune::MachineOf(parts.target, sms, parts.device_key, parts.store);
  const auto usual = autotune::FactsOf(published);
  const auto facts = autotune::FactsOf(machine);
  Json list = Json::array();
  Table table({{"fact"}, {"here", Align::kRight}, {"published", Align::kRight}, {"unit"}, {"what"}});
  for (size_t i = 0; i < facts.size(); ++i) {
    bool measured = false;
    for (const runtime::ProbedFact& fact : probed) measured |= fact.name == facts[i].name;
    list.push_back(FactJson(facts[i], usual[i].value, measured));
    table.Add({{std::string(facts[i].name)},
               {measured ? PrintFixed(facts[i].value, 2) : "", Tint::kGood},
               {PrintFixed(usual[i].value, 2)},
               {std::string(facts[i].unit)},
               {std::string(facts[i].doc), Tint::kFaint}});
  }
  if (options.json) {
    const Json object = {{"device", engine.device_name()}, {"target", engine.target()}, {"sms", sms}, {"facts", list}};
    std::printf("%s\n", object.dump().c_str());
  } else {
    std::printf("%s, %s, %d SMs\n", engine.device_name().c_str(), engine.target().c_str(), sms);
    std::fputs(table.Print(StdoutTakesColour()).c_str(), stdout);
  }
  return kExitOk;
}

}  // namespace

Verb AddProbe(CLI::App& app, const Settings& settings) {
  CLI::App* verb = app.add_subcommand("probe", "Measure a GPU's speeds and latencies, for the timing model");
  auto options = std::make_shared<ProbeOptions>();
  options->device.AddTo(*verb);
  verb->add_flag("--json", options->json, "one JSON object on stdout");
  verb->footer(kExamples);
  return [options, settings] { return Probe(*options, settings); };
}

}  // namespace laneshift::tools
