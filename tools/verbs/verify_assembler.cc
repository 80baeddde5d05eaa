#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "target/target.h"
#include "tools/assembler_check/check_corpus.h"
#include "tools/assembler_check/find_assemblers.h"
#include "tools/assembler_check/word_check.h"
#include "tools/exit_code.h"
#include "tools/json_line.h"
#include "tools/number_option.h"
#include "tools/reports/assembler_report.h"
#include "tools/terminal.h"
#include "tools/verbs/verbs.h"

namespace laneshift::tools {
namespace {

using base::Cat;

constexpr const char* kVerifyExamples = R"(
Examples:
  laneshift verify-assembler --count 200 --seed 7
  laneshift verify-assembler --target sm_90a --assembler /opt/cuda-12.8/bin/ptxas --assembler venv
  laneshift verify-assembler scale.ptx scale.json attention.ptx --count 0 --json

docs/verifying-assemblers.md says what is compared. Exit codes: 0 nothing wrong, 1 an assembler refuses PTX, spills where
none should, or its machine code computes other words, 2 usage or a file that is no PTX, 3 an unknown target, 4 no ptxas, or no such device.)";

constexpr int kUsualCount = 20;

struct VerifyOptions {
  std::vector<std::string> files, assemblers;
  std::string target, device = "auto";
  std::optional<int> count;
  uint64_t seed = 1;
  bool only_named = false, json = false;
};

constexpr const char* kWithoutGpu = "verify-assembler compares assemblers without a GPU by --device none";

// The GPU to compare words on; nothing if none is wanted or there is none.
Result<std::optional<WordCheck>> WordsOn(const std::string& device) {
  if (device == "none") return std::optional<WordCheck>();
  auto words = WordCheck::Open(device == "auto" ? "cuda" : device);
  if (words) return std::optional<WordCheck>(std::move(*words));
  if (device != "auto") {
    // The driver's message proposes --device emulator, which other verbs have.
    Error error = std::move(words).error();
    if (error.code == ErrorCode::kNotFound)
      error.message += Cat(" with run or emulate, whose words are the PTX's own; ", kWithoutGpu);
    return error;
  }
  Tell("note", Cat("no words are compared: ", words.error().message));
  return std::optional<WordCheck>();
}

void CompareWords(WordCheck& words, AssemblerCheck& check) {
  check.device = words.device_name();
  for (size_t k = 0; k < check.kernels.size(); ++k) {
    if (words.Compare(check.kernels[k], check.assemblers, check.made[k])) continue;
    check.ended_early = Cat("the device's context was lost with ", check.kernels[k].name, "; ",
                            check.kernels.size() - k - 1, " kernels after it were not run");
    Tell("note", check.ended_early);
    return;
  }
}

Result<int> VerifyAssemblers(const VerifyOptions& options, const Settings& settings) {
  if (options.device == "emulator")
    return MakeError(ErrorCode::kInvalidArgument,
                     Cat("--device emulator runs PTX, not an assembler's machine code; ", kWithoutGpu));
  if (options.device != "auto" && options.device != "none" && !options.device.starts_with("cuda"))
    return MakeError(ErrorCode::kInvalidArgument,
                     Cat("--device ", options.device, " is unknown; use auto, none, cuda or cuda:N"));
  AssemblerCheck check;
  LS_ASSIGN(check.assemblers,
            FindAssemblers(options.assemblers,
                           options.only_named ? AssemblerSearch::kOnlyNamed : AssemblerSearch::kMachine, settings));
  LS_ASSIGN(check.kernels, ReadKernels(options.files));
  // If files are named, only these are checked, unless a count is given too.
  const int count = options.count.value_or(options.files.empty() ? kUsualCount : 0);
  LS_ASSIGN(std::vector<CheckedKernel> drawn, DrawKernels(count, options.seed, options.target));
  check.kernels.insert(check.kernels.end(), std::make_move_iterator(drawn.begin()),
                       std::make_move_iterator(drawn.end()));
  if (check.kernels.empty())
    return MakeError(ErrorCode::kInvalidArgument, "there is nothing to assemble; name PTX files or a --count above 0");
  LS_ASSIGN(std::optional<WordCheck> words, WordsOn(options.device));
  if (!options.json)
    Inform(Cat(check.kernels.size(), " kernels, ", check.assemblers.size(), " assemblers, ",
               words ? words->device_name() : "no device"));
  check.made = AssembleAll(check.kernels, check.assemblers);
  if (words) CompareWords(*words, check);
  if (options.json) {
    for (size_t k = 0; k < check.kernels.size(); ++k) std::printf("%s\n", JsonLine(KernelJson(check, k)).c_str());
    std::printf("%s\n", JsonLine(AssemblersJson(check)).c_str());
  } else {
    std::fputs(AssemblerText(check, StdoutScreen()).c_str(), stdout);
  }
  return static_cast<int>(check.Right() ? kExitOk : kExitFailure);
}

}  // namespace

Verb AddVerifyAssembler(CLI::App& app, const Settings& settings) {
  CLI::App* verb = app.add_subcommand(
      "verify-assembler", "Run the same PTX through every ptxas, and on a GPU compare its words with the emulator's");
  auto options = std::make_shared<VerifyOptions>();
  verb->add_option("files", options->files, "PTX files, each with the launch file (.json) that follows it, if any")
      ->type_name("FILE");
  verb->add_option("--count", options->count, "number of our own kernels to draw; 20, or 0 if files are named")
      ->type_name("N")
      ->check(WholeNumber(0, 100000));
  verb->add_option("--seed", options->seed, "of the draw; equal seeds draw alike")
      ->type_name("N")
      ->check(WholeNumber(0, kLargestSeed))
      ->capture_default_str();
  verb->add_option("--target", options->target, "draw only for this chip")->type_name(target::TargetNames("|"));
  verb->add_option("--assembler", options->assemblers,
                   "repeatable: a ptxas, or a directory that has some (a toolkit, a virtual environment)")
      ->type_name("PATH")
      ->expected(1)
      ->allow_extra_args(false)  // a file may follow
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  verb->add_flag("--only-named", options->only_named, "no ptxas but those of --assembler");
  verb->add_option("--device", options->device,
                   "where words are compared: auto (a GPU, if there is one), cuda:N or none")
      ->type_name("auto|none|cuda|cuda:N")
      ->capture_default_str();
  verb->add_flag("--json", options->json, "one JSON object a kernel, then one of all, on stdout");
  verb->footer(kVerifyExamples);
  return [options, settings] { return VerifyAssemblers(*options, settings); };
}

}  // namespace laneshift::tools
