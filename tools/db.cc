#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "store/store.h"
#include "tools/exit_code.h"
#include "tools/table.h"
#include "tools/verbs.h"

namespace laneshift::tools {
namespace {

using base::Cat;

constexpr const char* kExamples = R"(
Examples:
  laneshift db stat
  LANESHIFT_CACHE_DIR=build/store laneshift db stat --json)";

Result<int> Stat(const Settings& settings, bool json) {
  store::Store store = store::Store::Open({.directory = settings.store_directory});
  const store::StoreSummary s = store.Stat();
  if (json) {
    const nlohmann::ordered_json object = {
        {"path", s.path},       {"durable", s.durable}, {"schema_version", s.schema_version},
        {"journal", s.journal}, {"kernels", s.kernels}, {"cubins", s.cubins},
        {"choices", s.choices}, {"trials", s.trials},   {"facts", s.facts},
        {"damaged", s.damaged}, {"bytes", s.bytes},     {"warnings", s.warnings}};
    std::printf("%s\n", object.dump().c_str());
    return kExitOk;
  }
  Table table({{"store"}, {s.path.empty() ? "(in memory)" : s.path}});
  table.Add({{"durable"}, {s.durable ? "yes" : "no", s.durable ? Tint::kGood : Tint::kBad}});
  table.Add({{"schema"}, {Cat("version ", s.schema_version, ", journal: ", s.journal)}});
  table.Add({{"kernels"}, {Cat(s.kernels, ", ", s.cubins, " with machine code")}});
  table.Add({{"choices"}, {Cat(s.choices)}});
  table.Add({{"trials"}, {Cat(s.trials)}});
  table.Add({{"facts"}, {Cat(s.facts)}});
  table.Add({{"damaged"}, {Cat(s.damaged), s.damaged == 0 ? Tint::kPlain : Tint::kBad}});
  table.Add({{"code"}, {PrintBytes(static_cast<double>(s.bytes))}});
  std::fputs(table.Print(StdoutTakesColour()).c_str(), stdout);
  for (const std::string& warning : s.warnings) std::fprintf(stderr, "laneshift: warning: %s\n", warning.c_str());
  return kExitOk;
}

}  // namespace

Verb AddDb(CLI::App& app, const Settings& settings) {
  CLI::App* verb = app.add_subcommand("db", "Look into the store of kernels and choices");
  auto json = std::make_shared<bool>(false);
  CLI::App* stat = verb->add_subcommand("stat", "What the store holds and where it is");
  verb->require_subcommand(1);
  stat->add_flag("--json", *json, "one JSON object on stdout");
  stat->footer(kExamples);
  verb->footer(kExamples);
  return [json, settings] { return Stat(settings, *json); };
}

}  // namespace laneshift::tools
