#include "tools/usage_error.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "ir/grammar.h"
#include "ir/problem_keys.h"

namespace laneshift::tools {
namespace {

using base::Cat;
using ir::Alias;
using ir::CureOf;

constexpr Alias kVerbAliases[] = {
    {"matmul mm bmm linear dot hgemm sgemm", "write: laneshift run gemm m=512 n=512 k=512"},
    {"conv1d conv2d conv3d convolution", "write: laneshift run conv n=1 h=56 w=56 c=64 k=64 r=3 s=3 pad=1"},
    {"moe grouped group-gemm gmm ragged-dot", "write: laneshift run grouped_gemm groups=8 m=1024 n=512 k=512"},
    {"benchmark time profile perf measure", "did you mean 'bench'?"},
    {"autotune search optimize optimise", "did you mean 'tune'?"},
    {"build codegen ptx emit generate dump asm", "did you mean 'compile'?"},
    {"show disasm describe print view analyze", "did you mean 'inspect'?"},
    {"rank predict model why schedules list-schedules", "did you mean 'explain'?"},
    {"check verify test validate", "write: laneshift run PROBLEM --check"},
    {"exec execute launch", "did you mean 'run'?"},
    {"simulate emulator sim", "did you mean 'emulate', or run PROBLEM --device emulator?"},
    {"store cache database", "did you mean 'db'?"},
    {"info env status devices device list-devices", "did you mean 'doctor'?"},
    {"version", "write: laneshift --version"},
    {"list ls", "did you mean 'db list'?"},
};

// Aliases by meaning; one of our options is offered if the verb has it.
constexpr Alias kOptionAliases[] = {
    {"dtype type precision data-type datatype in-dtype out-dtype a-type",
     "types are keys of the problem: a=bf16 d=bf16"},
    {"shape size problem-size mnk", "sizes are keys of the problem: gemm m=512 n=512 k=512"},
    {"m n k", "sizes are keys of the problem: m=512 n=512 k=512"},
    {"batch batch-size bs", "it is a key of the problem: batch=4 (of a convolution n=4)"},
    {"sizes-per-group group-offsets offsets experts", "--group-sizes of a grouped_gemm: 3,0,5, or uniform"},
    {"alpha", "it is a key of the problem: alpha=0.5"},
    {"beta", "it is a key of the problem: beta=1"},
    {"epilogue activation", "it is a key of the problem: epilogue=bias_n+relu"},
    {"stride padding pad dilation groups kernel-size",
     "it is a key of the problem: conv ... r=3 s=3 pad=1 stride=2 dilation=1 groups=1"},
    {"layout trans-a trans-b transa transb ta tb", "the contiguous index is a key of the problem: a_major=m b_major=n"},
    {"tile tiles stages cluster split-k splits raster num-stages",
     "it is a key of the schedule: --schedule \"tile=128x256 stages=4\""},
    {"numerics deterministic", "it is a key of the problem: numerics=deterministic"},
    {"emulate emulator sim simulate cpu", "--device emulator"},
    {"gpu cuda", "--device cuda"},
    {"arch sm gpu-arch architecture cc compute", "--target sm_100a or --target sm_90a"},
    {"verify validate validation correctness", "--check"},
    {"compare baseline peer reference cublas cudnn", "--vs cublas or --vs cudnn"},
    {"output o", "--out FILE"},
    {"iterations iters iter reps num-iters runs n-iter profiling-iterations warmup warmup-iterations", "--repeat"},
    {"threads num-threads jobs j", "--emulator-threads"},
    {"timeout time-limit max-time trials max-trials", "--budget 60s or --budget 200trials"},
    {"format output-format", "--json"},
    {"input problems problem-file f", "--file FILE"},
    {"random-seed", "--seed"},
    {"v debug", "--verbose"},
    {"emit-ptx ptx format-ptx", "--emit ptx"},
    {"store cache cache-dir db database", "the environment says where the store is: LANESHIFT_CACHE_DIR=DIR"},
    {"config", "there is no file of options; problems come from --file FILE"},
};

Error Usage(std::string message) { return MakeError(ErrorCode::kInvalidArgument, std::move(message)); }

// "run", "db stat"; empty: the program's own level.
std::string NameOf(const CLI::App& app) {
  if (app.get_parent() == nullptr) return {};
  const std::string outer = NameOf(*app.get_parent());
  return outer.empty() ? app.get_name() : Cat(outer, " ", app.get_name());
}

std::string HelpOf(const CLI::App& app) {
  const std::string name = NameOf(app);
  return Cat("see laneshift ", name, name.empty() ? "" : " ", "--help");
}

// The verb that was named, or its own.
CLI::App& Deepest(CLI::App& app) {
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  return parsed.empty() ? app : Deepest(*parsed.back());
}

std::vector<std::string> OptionsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(Cat("--", name));
    for (const std::string& name : option->get_snames()) names.push_back(Cat("-", name));
  }
  return names;
}

bool Has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The verbs that have an option: "run, bench".
std::string VerbsWith(const CLI::App& program, std::string_view option) {
  std::string verbs;
  for (const CLI::App* verb : program.get_subcommands({})) {
    if (!verb->get_group().empty() && Has(OptionsOf(*verb), option))
      verbs += Cat(verbs.empty() ? "" : ", ", verb->get_name());
  }
  return verbs;
}

Error UnknownOption(const CLI::App& program, const CLI::App& verb, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  const std::string bare = name.substr(std::min(name.size(), name.find_first_not_of('-')));
  const std::string of_verb = NameOf(verb);
  const std::string told = Cat("unknown option '", name, "'", of_verb.empty() ? "" : " of ", of_verb);
  const std::vector<std::string> known = OptionsOf(verb);
  const std::string two_dashes = Cat("--", bare);
  if (Has(known, two_dashes)) return Usage(Cat(told, "; did you mean '", two_dashes, "'?"));
  if (const std::string verbs = VerbsWith(program, two_dashes); !verbs.empty()) {
    return Usage(Cat(told, "; it is an option of ", verbs));
  }
  const std::string_view cure = CureOf(kOptionAliases, bare);
  const std::string option(cure.substr(0, cure.find(' ')));
  if (!cure.empty() && !cure.starts_with("--")) return Usage(Cat(told, "; ", cure));
  if (!cure.empty() && Has(known, option)) return Usage(Cat(told, "; use ", cure));
  const auto near = base::NearestName(two_dashes, {known.begin(), known.end()});
  if (near) return Usage(Cat(told, "; did you mean '", *near, "'?"));
  return Usage(Cat(told, "; ", HelpOf(verb)));
}

Error UnknownVerb(const CLI::App& app, const std::string& word) {
  const std::string of_verb = NameOf(app);
  const std::vector<std::string_view> kinds = ir::ProblemKinds();
  if (of_verb.empty() && std::find(kinds.begin(), kinds.end(), word) != kinds.end()) {
    return Usage(
        Cat("'", word, "' is a kind of problem; a verb comes before it, such as: laneshift run ", word, " ..."));
  }
  const std::string told = Cat("unknown verb '", of_verb, of_verb.empty() ? "" : " ", word, "'");
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands({})) {
    if (!verb->get_group().empty()) verbs.push_back(verb->get_name());
  }
  const std::string_view cure = of_verb.empty() ? CureOf(kVerbAliases, word) : "";
  if (!cure.empty()) return Usage(Cat(told, "; ", cure));
  if (const auto near = base::NearestName(word, {verbs.begin(), verbs.end()})) {
    return Usage(Cat(told, "; did you mean '", *near, "'?"));
  }
  return Usage(Cat(told, "; verbs: ", base::Join(verbs, ", ")));
}

}  // namespace

Error UsageError(CLI::App& app, const CLI::ParseError& wrong) {
  const CLI::App& verb = Deepest(app);
  const std::vector<std::string> left_over = app.remaining(true);
  for (const std::string& word : left_over) {
    if (word.size() > 1 && word.starts_with('-')) return UnknownOption(app, verb, word);
    if (!verb.get_subcommands({}).empty()) return UnknownVerb(verb, word);
  }
  if (!left_over.empty()) {
    const std::string& word = left_over.front();
    return Usage(Cat("laneshift ", NameOf(verb), " takes no '", word, "'; ", HelpOf(verb)));
  }
  if (!verb.get_subcommands({}).empty()) {
    const std::string name = NameOf(verb);
    return Usage(Cat(name.empty() ? "a verb" : Cat("a verb of ", name), " is missing, such as laneshift ",
                     name.empty() ? "run" : Cat(name, " stat"), "; ", HelpOf(verb)));
  }
  const std::string what = wrong.what();
  switch (static_cast<CLI::ExitCodes>(wrong.get_exit_code())) {
    case CLI::ExitCodes::ConversionError: {
      // "Could not convert: --repeat = many"
      constexpr std::string_view kPrefix = "Could not convert: ";
      std::string told = what.starts_with(kPrefix) ? what.substr(kPrefix.size()) : what;
      if (const size_t equals = told.find(" = "); equals != std::string::npos) told.replace(equals, 3, " ");
      return Usage(Cat(told, " is not a number; ", HelpOf(verb)));
    }
    case CLI::ExitCodes::ValidationError: {
      // "--repeat: 0 is not a whole number from 1 to 1000000"
      std::string told = what;
      if (const size_t colon = told.find(": "); told.starts_with("--") && colon < told.find(' ')) told.erase(colon, 1);
      return Usage(Cat(told, "; ", HelpOf(verb)));
    }
    case CLI::ExitCodes::ArgumentMismatch:
      // "--seed: 1 required N missing"
      return Usage(Cat(what.substr(0, what.find(':')), " needs a value; ", HelpOf(verb)));
    default:
      return Usage(Cat(what, "; ", HelpOf(verb)));
  }
}

}  // namespace laneshift::tools
