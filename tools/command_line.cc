#include "tools/command_line.h"

#include <CLI/CLI.hpp>
#include <string_view>

#include "base/log.h"
#include "tools/exit_code.h"
#include "tools/help_layout.h"
#include "tools/usage_error.h"

namespace laneshift::tools {
namespace {

constexpr const char* kProgramFooter = R"(
Start here:
  laneshift doctor
  laneshift run gemm m=256 n=256 k=256 a=bf16 b=bf16 d=bf16 --device emulator --check
  laneshift run --help
  laneshift help gemm

Environment: LANESHIFT_CACHE_DIR says where kernels are kept (else XDG_CACHE_HOME/laneshift, else ~/.cache/laneshift),
LANESHIFT_SYSTEM_STORE a sealed database to read under it, CUDA_HOME where a CUDA toolkit is, CUDNN_HOME where cuDNN is.

Exit codes: 0 ok, 1 wrong result or failure, 2 usage or an invalid problem, 3 unsupported or a schedule that does not fit,
4 no such device. With --json a failure is an object {"error": {"code", "message", "exit_code"}} on standard output, too.)";

using Add = Verb (*)(CLI::App&, const Settings&);
constexpr Add kProgramVerbs[] = {AddRun,        AddCompile,    AddCompress,        AddInspect, AddExplain,
                                 AddProbe,      AddEmulate,    AddDoctor,          AddTune,    AddBench,
                                 AddQuantize,   AddDequantize, AddVerifyAssembler, AddDb,      AddHelp,
                                 AddCompletion, AddMan,        AddCompileFunction, AddWorker,  AddContactPart};

}  // namespace

CommandLine::CommandLine(const Settings& settings)
    : app_(std::make_unique<CLI::App>(
          "laneshift: compiles GEMM and convolution problems into GPU kernels at run time, for "
          "Blackwell and Hopper, or for its PTX emulator",
          "laneshift")) {
  app_->formatter(std::make_shared<HelpLayout>());
  app_->require_subcommand(1);
  app_->set_version_flag("--version", "laneshift " + settings.version);
  app_->get_option("--version")->description("print the version and end");
  app_->set_help_flag("-h,--help", "print this and end");
  app_->footer(kProgramFooter);
  constexpr const char* kVerbose = "tell what happens, on stderr";
  app_->add_flag("--verbose", verbose_, kVerbose);
  for (const Add add : kProgramVerbs) {
    Verb verb = add(*app_, settings);
    CLI::App* of_verb = app_->get_subcommands({}).back();
    if (!of_verb->get_group().empty()) of_verb->group("Verbs");
    of_verb->add_flag("--verbose", verbose_, kVerbose);
    verbs_.emplace_back(of_verb, std::move(verb));
  }
}

CommandLine::~CommandLine() = default;

Result<int> CommandLine::Run(int argc, const char* const* argv) {
  // CLI11 reports by exceptions; they end here.
  try {
    app_->parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    return app_->exit(help_or_version);
  } catch (const CLI::ParseError& wrong) {
    return UsageError(*app_, wrong);
  }
  if (verbose_) base::SetLogLevel(base::LogLevel::kDebug);
  for (const auto& [app_of_verb, verb] : verbs_) {
    if (app_of_verb->parsed()) return verb();
  }
  return static_cast<int>(kExitUsage);
}

bool AsksForJson(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--") return false;
    if (word == "--json") return true;
  }
  return false;
}

}  // namespace laneshift::tools
