#include "tools/device_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/read_file.h"
#include "base/text.h"
#include "emulator/driver/driver.h"
#include "ir/grammar.h"
#include "target/target.h"
#include "tools/number_option.h"

namespace laneshift::tools {
namespace {

using base::Cat;

std::vector<std::string> JoinWords(const std::vector<std::string>& words) {
  std::vector<std::string> texts;
  bool open = false;  // whether bare words may still be added to the last text
  for (const std::string& word : words) {
    const bool whole = base::Words(word).size() != 1;
    const bool begins = word.find('=') == std::string::npos;
    if (whole || begins || !open) {
      texts.push_back(word);
    } else {
      texts.back() += " " + word;
    }
    open = !whole;
  }
  return texts;
}

// A word of a command line that is neither key=value nor the beginning of a problem, before it is taken for a problem.
Status CheckWords(const std::vector<std::string>& words) {
  const std::vector<std::string_view> kinds = ir::ProblemKinds();
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool bare = base::Words(word).size() == 1 && word.find('=') == std::string::npos;
    if (bare && std::find(kinds.begin(), kinds.end(), word) == kinds.end()) {
      return MakeError(
          ErrorCode::kInvalidArgument,
          Cat("'", word, "' is not part of a problem; after its kind come words key=value, such as m=512"));
    }
    if (word == "=" || (word.starts_with('=') && word.size() > 1)) {
      return MakeError(ErrorCode::kInvalidArgument, Cat("'", word, "': write key=value without blanks, such as m=512"));
    }
  }
  return Ok();
}

Status ReadProblems(const std::string& path, ProblemReader& reader, std::vector<Problem>& problems) {
  constexpr std::string_view kRemedy = "; --file takes a file with one problem per line";
  const auto file = base::ReadFile(path);
  if (!file) return MakeError(file.error().code, Cat(file.error().message, kRemedy));
  const size_t before = problems.size();
  int number = 0;
  for (const std::string_view line : base::Split(*file, '\n')) {
    ++number;
    const std::string_view text = base::Trim(line.substr(0, line.find('#')));
    if (text.empty()) continue;
    auto problem = reader.Read(text);
    if (!problem) return problem.error().Within(Cat(path, ":", number));
    problems.push_back(std::move(*problem));
  }
  if (problems.size() > before) return Ok();
  return MakeError(ErrorCode::kInvalidArgument, Cat(path, ": has no problem", kRemedy));
}

Result<Assembler> ParseAssembler(const std::string& text) {
  if (text == "auto") return Assembler::kAuto;
  if (text == "ptxas") return Assembler::kPtxas;
  if (text == "driver") return Assembler::kDriver;
  return MakeError(ErrorCode::kInvalidArgument, Cat("'", text, "' is not an assembler; use auto, ptxas or driver"));
}

}  // namespace

void AddPolicies(CLI::App& app, std::vector<std::string>& policies) {
  app.add_option("--policy", policies,
                 "repeatable: the emulator's behaviour where the manual is silent, such as "
                 "shift_scope=addressed")
      ->type_name("NAME=ANSWER")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void AddTarget(CLI::App& app, std::string& target) {
  app.add_option("--target", target,
                 "the chip (laneshift help targets); default: that of the GPU at hand, otherwise sm_100a")
      ->type_name(target::TargetNames("|"));
}

void AddInclude(CLI::App& app, std::vector<std::string>& include) {
  app.add_option("--include", include,
                 "repeatable: include directories of users' functions (epilogue=FILE.cu:FUNCTION)")
      ->type_name("DIR")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

EngineOptions SourceOptionsOf(const Settings& settings, const std::vector<std::string>& include) {
  EngineOptions options{.store_directory = settings.store_directory};
  options.library_directories = settings.library_directories;
  options.include_directories = include;
  return options;
}

// Of the emulated device, whether or not it is the one that is used.
void DeviceOptions::AddEmulator(CLI::App& app) {
  app.add_option("--target", target, "the chip to emulate (laneshift help targets); on a GPU it is known")
      ->type_name(target::TargetNames("|"));
  app.add_option("--async", async, "when the emulator completes asynchronous operations: eager, late or random:SEED")
      ->type_name("eager|late|random:SEED")
      ->capture_default_str();
  app.add_option("--arithmetic", arithmetic,
                 "the emulator's tensor-core sums: hardware (bit-exact) or fast (plain f32, other last bits)")
      ->type_name("hardware|fast")
      ->capture_default_str();
  app.add_option("--emulator-threads", emulator_threads, "host threads of the emulator; 0: all cores")
      ->type_name("N")
      ->check(WholeNumber(0, emulator::kMostHostThreads))
      ->capture_default_str();
  app.add_option("--emulator-multiprocessors", emulator_multiprocessors,
                 "multiprocessors of the emulated device; 0: as many as the chip has")
      ->type_name("N")
      ->check(WholeNumber(0, emulator::kMostMultiprocessors))
      ->capture_default_str();
  AddPolicies(app, policies);
}

void DeviceOptions::AddPlans(CLI::App& app) {
  app.add_option("--on-miss", on_miss,
                 "if nothing measured is stored: heuristic (the model's best), tune (measure first), background "
                 "(the model's best, and measure meanwhile) or error")
      ->type_name("heuristic|tune|background|error")
      ->capture_default_str();
  app.add_option(
         "--launch-overlap", launch_overlap,
         "programmatic: a kernel is set up while the previous one on the stream finishes; none: after it, unless "
         "the problem has a constant operand")
      ->type_name("none|programmatic")
      ->capture_default_str();
  app.add_option("--system-store", system_store,
                 "a sealed database, read if your store has no entry (default: LANESHIFT_SYSTEM_STORE)")
      ->type_name("FILE");
  app.add_flag("--system-store-kernels", system_store_kernels,
               "use the system store's kernels too, whose code then runs with your rights; otherwise only its choices");
}

void DeviceOptions::AddFunctions(CLI::App& app) {
  AddInclude(app, include);
  app.add_option("--function-memory", function_limits.memory_bytes,
                 "bytes of memory that NVRTC may use for users' functions")
      ->transform(ByteCount(1))
      ->type_name("BYTES")
      ->capture_default_str();
  app.add_option("--function-seconds", function_limits.cpu_seconds,
                 "processor time that NVRTC may take for users' functions; twice as long in all")
      ->check(WholeNumber(1, 86400))
      ->type_name("SECONDS")
      ->capture_default_str();
}

void DeviceOptions::AddTo(CLI::App& app, const DeviceUse& use) {
  if (use.host) device = "host";
  if (use.emulator) {
    app.add_option("--device", device,
                   Cat(use.host ? "host (no device), " : "",
                       "auto, cuda, cuda:N or emulator; auto: a GPU with a supported target, otherwise the emulator"))
        ->type_name(Cat(use.host ? "host|" : "", "auto|cuda|cuda:N|emulator"))
        ->capture_default_str();
    AddEmulator(app);
  } else {
    app.add_option("--device", device, "auto, cuda or cuda:N: a GPU with a supported target")
        ->type_name("auto|cuda|cuda:N")
        ->capture_default_str();
  }
  app.add_option("--assembler", assembler, "assembler of PTX: ptxas, driver, or auto (ptxas if it is found)")
      ->type_name("auto|ptxas|driver")
      ->capture_default_str();
  app.add_option("--ptxas", ptxas, "path of ptxas")->type_name("FILE");
  if (use.plans) AddPlans(app);
  if (use.functions) AddFunctions(app);
}

Result<EngineOptions> DeviceOptions::ToEngineOptions(const Settings& settings) const {
  EngineOptions options = SourceOptionsOf(settings, include);
  options.device = device;
  options.target = target;
  options.ptxas = ptxas;
  options.system_store = system_store.empty() ? settings.system_store : system_store;
  options.function_limits = function_limits;
  options.function_limits.wall_seconds = 2 * function_limits.cpu_seconds;
  options.system_store_kernels = system_store_kernels;
  options.tuner = settings.program;
  if (launch_overlap != "none" && launch_overlap != "programmatic") {
    return MakeError(ErrorCode::kInvalidArgument,
                     Cat("--launch-overlap '", launch_overlap, "' is not a launch overlap; use none or programmatic"));
  }
  options.launch_overlap = launch_overlap == "none" ? LaunchOverlap::kNone : LaunchOverlap::kProgrammatic;
  LS_ASSIGN(options.on_miss, ParseMissPolicy(on_miss));
  options.emulator_threads = emulator_threads;
  options.emulator_multiprocessors = emulator_multiprocessors;
  options.policies = policies;
  LS_ASSIGN(options.async_order, ParseAsyncOrder(async));
  LS_ASSIGN(options.arithmetic, ParseArithmetic(arithmetic));
  LS_ASSIGN(options.assembler, ParseAssembler(assembler));
  return options;
}

std::vector<std::string> DeviceOptions::Words() const {
  std::vector<std::string> words = {"--device",
                                    device,
                                    "--async",
                                    async,
                                    "--arithmetic",
                                    arithmetic,
                                    "--assembler",
                                    assembler,
                                    "--emulator-threads",
                                    Cat(emulator_threads),
                                    "--emulator-multiprocessors",
                                    Cat(emulator_multiprocessors)};
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  add("--function-memory", Cat(function_limits.memory_bytes));
  add("--function-seconds", Cat(function_limits.cpu_seconds));
  add("--target", target);
  add("--ptxas", ptxas);
  for (const std::string& policy : policies) add("--policy", policy);
  for (const std::string& directory : include) add("--include", directory);
  return words;
}

void AddGroupSizes(CLI::App& app, std::string& sizes) {
  app.add_option(
         "--group-sizes", sizes,
         "rows of each group of a grouped_gemm: uniform, random:SEED (default), zipf:SEED, a list such as 3,0,5, "
         "or a file of numbers")
      ->type_name("SIZES");
}

void AddProblems(CLI::App& app, std::vector<std::string>& words, std::string& file) {
  app.add_option("problem", words, "one problem as bare words, or several as quoted arguments")->type_name("WORD");
  app.add_option("--file", file, "a file with one problem per line; '#' begins a comment")->type_name("FILE");
}

Result<std::vector<Problem>> CollectProblems(const std::vector<std::string>& words, const std::string& file,
                                             ProblemReader& reader) {
  LS_TRY(CheckWords(words));
  std::vector<Problem> problems;
  for (const std::string& text : JoinWords(words)) {
    LS_ASSIGN(Problem problem, reader.Read(text));
    problems.push_back(std::move(problem));
  }
  if (!file.empty()) LS_TRY(ReadProblems(file, reader, problems));
  if (problems.empty()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "no problem; write for example: gemm m=256 n=256 k=256 a=bf16 b=bf16 d=bf16");
  }
  return problems;
}

Result<ScheduleConstraint> ConstraintOf(const std::string& schedule) {
  if (base::Trim(schedule).empty()) return ScheduleConstraint{};
  return ParseSchedule(schedule);
}

}  // namespace laneshift::tools
