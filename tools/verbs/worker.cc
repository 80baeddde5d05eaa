#include "measure/worker.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "nvrtc/compile_worker.h"
#include "tools/device_options.h"
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

}  // namespace laneshift::tools
