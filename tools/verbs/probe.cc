#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "autotune/machine.h"
#include "base/output_file.h"
#include "base/read_file.h"
#include "base/text.h"
#include "runtime/engine_parts.h"
#include "runtime/machine_probe.h"
#include "runtime/probes/rate_survey.h"
#include "tools/device_options.h"
#include "tools/exit_code.h"
#include "tools/json_line.h"
#include "tools/reports/probe_report.h"
#include "tools/reports/rate_report.h"
#include "tools/table.h"
#include "tools/verbs/verbs.h"

namespace laneshift::tools {
namespace {

using base::Cat;
using Json = nlohmann::ordered_json;

constexpr const char* kProbeExamples = R"(
Examples:
  laneshift probe
  laneshift probe --device cuda:1 --json --out probe.json
  laneshift probe --only mma.f16 --only shift
  laneshift probe --device emulator --target sm_100a --only dsmem
  laneshift probe --list --target sm_90a
  laneshift probe --load probe.json --device emulator --target sm_100a

What is measured is kept in the store and used by the timing model of this device from then on (laneshift explain,
the choice of schedules), but for what no such device does, which is reported as not used; docs/timing-model.md tells
how each fact is measured, docs/probes.md what else is. Each kernel's data are checked before its clocks are believed.
On an emulator the clocks are not times: the data are checked, under every order of completion. Exit code 1 if any are
wrong.)";

// The tile programs of runtime/machine_probe.h, next to the families.
constexpr const char* kMachine = "machine";
constexpr const char* kMachineDoc = "facts of the timing model that tile programs show, by the time of whole launches";
const std::vector<std::string>& EveryOrder() {
  static const std::vector<std::string> orders = {"eager", "late", "random:1"};
  return orders;
}

struct ProbeOptions {
  DeviceOptions device;
  std::vector<std::string> only;
  std::string out, load;
  bool list = false, json = false, one_order = false;
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

// What was asked for, and found.
struct Probed {
  std::optional<runtime::MachineProbe> machine{};
  runtime::RateSurvey rates{};

  bool Right() const {
    const auto right = [](const runtime::SurveyedPoint& point) { return point.Right(); };
    return std::all_of(rates.points.begin(), rates.points.end(), right);
  }
  // Of both.
  runtime::MachineProbe Facts() const {
    runtime::MachineProbe all = machine.value_or(runtime::MachineProbe{});
    for (const runtime::SurveyedPoint& point : rates.points) {
      if (!point.fact.empty() && point.Right() && point.outcome.figure)
        all.facts.push_back({point.fact, *point.outcome.figure});
    }
    return all;
  }
};

Result<Probed> ProbeDevice(const Engine::Parts& parts, const ProbeOptions& options) {
  Probed probed;
  std::vector<std::string> only = options.only;
  const bool named = std::erase(only, kMachine) > 0;
  // Before anything is measured: a name may be wrong.
  std::vector<runtime::ProbePoint> points;
  if (!only.empty() || !named) {
    LS_ASSIGN(points, runtime::SelectPoints(parts.target, only));
  }
  if (named || (options.only.empty() && !parts.emulated)) {
    LS_ASSIGN(probed.machine, runtime::ProbeMachine(parts.device, parts.target, parts.emulated));
  }
  const autotune::Machine machine =
      autotune::MachineOf(parts.target, parts.device.facts().sm_count, parts.device_key, parts.store);
  std::string family;
  const auto progress = [&](const runtime::ProbePoint& point, size_t index) {
    std::string now = point.name.substr(0, point.name.find('.'));
    if (now == family || options.json) return;
    family = std::move(now);
    Inform(Cat(family, ", from point ", index + 1, " of ", points.size()));
  };
  LS_ASSIGN(probed.rates,
            runtime::SurveyRates(parts, points, machine,
                                 options.one_order ? std::vector{options.device.async} : EveryOrder(), progress));
  return probed;
}

Status StoreFacts(const runtime::MachineProbe& probed, const Engine::Parts& parts) {
  for (const runtime::ProbedFact& fact : probed.facts) {
    if (!autotune::FittedFact(parts.target, fact.name, fact.value)) continue;
    LS_TRY(parts.store.PutFact({.device = parts.device_key,
                                .name = autotune::StoredName(fact.name),
                                .answer = autotune::PrintFact(fact.value)}));
  }
  return Ok();
}

// The measured facts of a report that `probe --json` has made, maybe elsewhere.
Result<runtime::MachineProbe> ReadReport(const std::string& path, const target::Target& target) {
  LS_ASSIGN(const std::string text, base::ReadFile(path));
  const Json report = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto wrong = [&](const std::string& why) {
    return MakeError(ErrorCode::kInvalidArgument, Cat(path, ": ", why, "; --load takes what probe --json has printed"));
  };
  if (!report.is_object() || !report.contains("target") || !report["target"].is_string() || !report.contains("facts") ||
      !report["facts"].is_array())
    return wrong("is no report of a probe");
  if (report["target"] != target.name) {
    return MakeError(ErrorCode::kInvalidArgument, Cat(path, ": is of a device of ", report["target"].get<std::string>(),
                                                      ", and this one is ", target.name, "; see --target"));
  }
  runtime::MachineProbe probe;
  for (const Json& fact : report["facts"]) {
    if (!fact.is_object() || !fact.contains("name") || !fact["name"].is_string()) return wrong("a fact has no name");
    if (!fact.contains("probed") || fact["probed"].is_null()) continue;
    if (!fact["probed"].is_number()) return wrong(Cat(fact["name"].get<std::string>(), " is no number"));
    probe.facts.push_back({fact["name"].get<std::string>(), fact["probed"].get<double>()});
  }
  if (probe.facts.empty()) return wrong("no fact in it was measured");
  return probe;
}

// Stores what was measured on another device of the same target as if this one had answered.
Result<int> Load(const ProbeOptions& options, const Engine& engine) {
  const Engine::Parts& parts = engine.parts();
  LS_ASSIGN(const runtime::MachineProbe facts, ReadReport(options.load, parts.target));
  LS_TRY(StoreFacts(facts, parts));
  const int sms = parts.device.facts().sm_count;
  std::vector<ProbedRow> rows =
      CompareFacts(facts, parts.target, autotune::MachineOf(parts.target, sms, parts.device_key, parts.store));
  if (options.json) {
    const Json object = {{"device", engine.device_name()},
                         {"target", engine.target()},
                         {"sms", sms},
                         {"loaded", options.load},
                         {"facts", FactsJson(rows)}};
    std::printf("%s\n", JsonLine(object).c_str());
    return kExitOk;
  }
  std::erase_if(rows, [](const ProbedRow& row) { return !row.probed; });
  std::printf("%s, %s: %s\n%s", engine.device_name().c_str(), engine.target().c_str(), options.load.c_str(),
              FactsText(rows, StdoutScreen()).c_str());
  return kExitOk;
}

Json ListJson(const target::Target& target) {
  Json list = Json::array({{{"name", kMachine}, {"what", kMachineDoc}, {"points", Json::array()}}});
  for (const runtime::RateFamily& family : runtime::RateFamilies()) {
    Json points = Json::array();
    for (const runtime::ProbePoint& point : family.points(target)) points.push_back(point.name);
    list.push_back({{"name", family.name}, {"what", family.doc}, {"points", std::move(points)}});
  }
  return list;
}

// Of the target that was named, else that of the device.
Result<int> List(const ProbeOptions& options, const Settings& settings) {
  const target::Target* target = nullptr;
  if (!options.device.target.empty()) {
    LS_ASSIGN(target, target::FindTarget(options.device.target));
  } else {
    LS_ASSIGN(const EngineOptions engine_options, options.device.ToEngineOptions(settings));
    LS_ASSIGN(const Engine engine, Engine::Open(engine_options));
    LS_ASSIGN(target, target::FindTarget(engine.target()));
  }
  const Json list = ListJson(*target);
  if (options.json) {
    std::printf("%s\n", JsonLine(Json{{"target", target->name}, {"families", list}}).c_str());
    return kExitOk;
  }
  TextTable table({{"family"}, {"points", Align::kRight}, {"what", Align::kLeft, Room::kLong}});
  for (const Json& family : list) {
    table.Add({{family["name"].get<std::string>()},
               {Cat(family["points"].size())},
               {family["what"].get<std::string>(), Tint::kFaint}});
  }
  std::printf("%s\n%s", Cat("probes of ", target->name).c_str(), table.Print(StdoutScreen()).c_str());
  for (const Json& family : list) {
    for (const Json& point : family["points"]) std::printf("%s\n", point.get<std::string>().c_str());
  }
  return kExitOk;
}

Result<int> Probe(const ProbeOptions& options, const Settings& settings) {
  if (options.list) return List(options, settings);
  LS_ASSIGN(const EngineOptions engine_options, options.device.ToEngineOptions(settings));
  LS_ASSIGN(const Engine engine, Engine::Open(engine_options));
  if (!options.load.empty()) return Load(options, engine);
  const Engine::Parts& parts = engine.parts();
  LS_ASSIGN(const Probed probed, ProbeDevice(parts, options));
  const runtime::MachineProbe facts = probed.Facts();
  LS_TRY(StoreFacts(facts, parts));
  if (probed.machine) LS_TRY(StoreDetail(*probed.machine, parts));
  const int sms = parts.device.facts().sm_count;
  const std::vector<ProbedRow> rows =
      CompareFacts(facts, parts.target, autotune::MachineOf(parts.target, sms, parts.device_key, parts.store));
  Json object = {{"device", engine.device_name()},
                 {"target", engine.target()},
                 {"sms", sms},
                 {"clocks", parts.emulated ? "not times" : "measured"},
                 {"facts", FactsJson(rows)},
                 {"probes", RatesJson(probed.rates)},
                 {"left_out", probed.rates.left_out}};
  if (probed.machine) object.update(DetailJson(*probed.machine));
  if (!options.out.empty()) LS_TRY(base::WriteFile(options.out, JsonLine(object) + "\n"));
  if (options.json) {
    std::printf("%s\n", JsonLine(object).c_str());
  } else {
    std::printf("%s, %s, %d SMs\n", engine.device_name().c_str(), engine.target().c_str(), sms);
    // Without the tile programs only the few facts that the families have measured.
    std::vector<ProbedRow> shown = rows;
    if (!probed.machine) std::erase_if(shown, [](const ProbedRow& row) { return !row.probed; });
    if (!shown.empty()) std::fputs(FactsText(shown, StdoutScreen()).c_str(), stdout);
    if (probed.machine) PrintDetail(*probed.machine);
    if (!probed.rates.points.empty()) std::fputs(RatesText(probed.rates, StdoutScreen()).c_str(), stdout);
  }
  return static_cast<int>(probed.Right() && probed.rates.left_out == 0 ? kExitOk : kExitFailure);
}

}  // namespace

Verb AddProbe(CLI::App& app, const Settings& settings) {
  CLI::App* verb = app.add_subcommand("probe", "Measure a GPU's speeds and latencies, for the timing model");
  auto options = std::make_shared<ProbeOptions>();
  options->device.AddTo(*verb, {.plans = false, .functions = false});
  verb->add_option("--only", options->only, "repeatable: a family, a probe, or how names begin: mma.f16 (see --list)")
      ->type_name("NAME")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  verb->add_flag("--list", options->list, "show the families and probes of the target, and run none");
  verb->add_option("--out", options->out, "the JSON into a file, too")->type_name("FILE");
  verb->add_option("--load", options->load,
                   "measure nothing: store the facts of a report (--out FILE) of another device of this target")
      ->type_name("FILE");
  verb->add_flag("--json", options->json, "one JSON object on stdout");
  verb->footer(kProbeExamples);
  return [options, settings, verb] {
    ProbeOptions given = *options;
    given.one_order = verb->count("--async") > 0;
    return Probe(given, settings);
  };
}

}  // namespace laneshift::tools
