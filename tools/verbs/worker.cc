#include "measure/worker.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "nvrtc/compile_worker.h"
#include "store/location.h"
#include "tools/device_options.h"
#include "tools/exit_code.h"
#include "tools/first_contact/contact_part.h"
#include "tools/json_line.h"
#include "tools/verbs/verbs.h"

namespace laneshift::tools {
namespace {

Result<int> Serve(const DeviceOptions& device, const std::string& group_sizes, const Settings& settings) {
  // Protocol lines go to the original standard output; everything else that is printed goes to standard error.
  const int output = dup(STDOUT_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  const auto options = device.ToEngineOptions(settings);
  const auto engine = options ? Engine::Open(*options) : Result<Engine>(options.error());
  return measure::ServeWorker(engine, {.library_directories = settings.library_directories, .group_sizes = group_sizes},
                              STDIN_FILENO, output);
}

}  // namespace

Verb AddCompileFunction(CLI::App& app, const Settings&) {
  CLI::App* verb = app.add_subcommand("compile-function", "Serves NVRTC's compilations: one job on standard input");
  verb->group("");  // not for people
  return []() -> Result<int> {
    const int output = dup(STDOUT_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    return nvrtc::ServeCompilation(STDIN_FILENO, output);
  };
}

Verb AddWorker(CLI::App& app, const Settings& settings) {
  CLI::App* verb = app.add_subcommand("worker", "Serves `tune`: runs candidates in a separate process");
  verb->group("");  // not for people
  auto device = std::make_shared<DeviceOptions>();
  device->AddTo(*verb, {.plans = false});
  auto group_sizes = std::make_shared<std::string>();
  AddGroupSizes(*verb, *group_sizes);
  return [device, group_sizes, settings] { return Serve(*device, *group_sizes, settings); };
}

Verb AddContactPart(CLI::App& app, const Settings& settings) {
  CLI::App* verb = app.add_subcommand("contact-part", "A part of `doctor --first-contact`, in a separate process");
  verb->group("");  // not for people
  auto device = std::make_shared<DeviceOptions>();
  device->AddTo(*verb, {.plans = false, .functions = false});
  auto part = std::make_shared<std::string>();
  verb->add_option("part", *part, "device, policy:NAME, words or sweep:SEED:N")->required();
  return [device, part, settings]() -> Result<int> {
    LS_ASSIGN(EngineOptions options, device->ToEngineOptions(settings));
    options.store_directory = std::string(store::kInMemory);
    LS_ASSIGN(const Engine engine, Engine::Open(options));
    const Status ran = RunContactPart(engine, *part, [](const nlohmann::ordered_json& object) {
      std::printf("%s\n", JsonLine(object).c_str());
      std::fflush(stdout);  // what follows may end the process
    });
    if (!ran) return ran.error();
    return kExitOk;
  };
}

}  // namespace laneshift::tools
