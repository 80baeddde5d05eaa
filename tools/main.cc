// The program `laneshift`: parses the command line, runs one verb, turns errors into one line and an exit code.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <utility>
#include <vector>

#include "base/log.h"
#include "tools/exit_code.h"
#include "tools/verbs.h"

namespace {

constexpr const char* kFooter = R"(
Start here:
  laneshift doctor
  laneshift run gemm m=256 n=256 k=256 a=bf16 b=bf16 d=bf16 --device emulator --check
  laneshift run --help

Environment: LANESHIFT_CACHE_DIR says where kernels are kept (else XDG_CACHE_HOME/laneshift, else ~/.cache/laneshift),
LANESHIFT_SYSTEM_STORE a sealed database to read under it,
CUDA_HOME where a CUDA toolkit is, CUDNN_HOME where cuDNN is. Exit codes: 0 ok, 1 wrong result or failure, 2 usage or an invalid problem,
3 unsupported or a schedule that does not fit, 4 no such device.)";

int Main(int argc, char** argv) {
  using namespace laneshift::tools;
  CLI::App app{
      "laneshift: turns GEMM and convolution problems into GPU kernels at run time, for Blackwell and Hopper, or for "
      "its PTX emulator",
      "laneshift"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "laneshift " LANESHIFT_VERSION);
  app.footer(kFooter);
  bool verbose = false;
  app.add_flag("--verbose", verbose, "tell what happens, on stderr");
  const Settings settings = Settings::FromEnvironment();
  using Add = Verb (*)(CLI::App&, const Settings&);
  constexpr Add kVerbs[] = {AddRun,    AddCompile, AddInspect, AddExplain, AddProbe,           AddEmulate,
                            AddDoctor, AddTune,    AddBench,   AddDb,      AddCompileFunction, AddWorker};
  std::vector<std::pair<CLI::App*, Verb>> verbs;
  for (const Add add : kVerbs) {
    Verb verb = add(app, settings);
    verbs.emplace_back(app.get_subcommands({}).back(), std::move(verb));
  }
  // CLI11 reports by exceptions; they end here.
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    return app.exit(help_or_version);
  } catch (const CLI::ParseError& wrong) {
    std::fprintf(stderr, "laneshift: error: %s; see laneshift --help\n", wrong.what());
    return kExitUsage;
  }
  if (verbose) laneshift::base::SetLogLevel(laneshift::base::LogLevel::kDebug);
  for (const auto& [app_of_verb, verb] : verbs) {
    if (!app_of_verb->parsed()) continue;
    const auto code = verb();
    if (code) return *code;
    std::fprintf(stderr, "laneshift: error: %s\n", code.error().message.c_str());
    return ExitCodeOf(code.error().code);
  }
  return kExitUsage;
}

}  // namespace

// Nothing of ours throws, but memory may run out below.
int main(int argc, char** argv) {
  try {
    return Main(argc, argv);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "laneshift: error: %s; is there enough memory?\n", failure.what());
    return laneshift::tools::kExitFailure;
  }
}
