#include "tools/completion.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/text.h"
#include "ir/grammar.h"
#include "tools/exit_code.h"
#include "tools/json_line.h"
#include "tools/verbs/verbs.h"

namespace laneshift::tools {
namespace {

using base::Cat;

// What may follow an option, or stand where no option is.
struct Values {
  std::vector<std::string> words;
  bool files = false;
  bool any = false;  // there is a value
};

bool IsPlaceholder(std::string_view word) {
  return std::any_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

// The type name of an option lists its values: "auto|cuda|cuda:N|emulator"; capitals mark a value to fill in.
Values ValuesOf(const CLI::Option& option) {
  Values values{.words = {}, .files = false, .any = option.get_type_size() != 0};
  const std::string type = option.get_type_name();
  for (const std::string_view word : base::Split(type, '|')) {
    values.files = values.files || word == "FILE" || word == "DIR";
    if (!word.empty() && !IsPlaceholder(word)) values.words.emplace_back(word);
  }
  return values;
}

struct Completed {
  std::vector<std::string> names;  // with their dashes
  std::string what;
  Values values;
};
struct CompletedVerb {
  std::string name, what;
  std::vector<Completed> options;
  Values positional;
  std::vector<CompletedVerb> verbs;
};

// Kinds and keys, for verbs that take a problem.
std::vector<std::string> ProblemWords() {
  std::set<std::string> keys;
  std::vector<std::string> words;
  for (const std::string_view kind : ir::ProblemKinds()) {
    words.emplace_back(kind);
    for (const ir::GrammarRow& row : ir::ProblemKeys(kind)) keys.insert(Cat(row.name, "="));
  }
  words.insert(words.end(), keys.begin(), keys.end());
  return words;
}

CompletedVerb Read(const CLI::App& app) {
  CompletedVerb verb{
      .name = app.get_name(), .what = app.get_description(), .options = {}, .positional = {}, .verbs = {}};
  for (const CLI::Option* option : app.get_options()) {
    Values values = ValuesOf(*option);
    if (option->get_positional()) {
      if (option->get_name(true, false) == "problem") values.words = ProblemWords();
      verb.positional = std::move(values);
      continue;
    }
    Completed completed{.names = {}, .what = option->get_description(), .values = std::move(values)};
    for (const std::string& name : option->get_snames()) completed.names.push_back(Cat("-", name));
    for (const std::string& name : option->get_lnames()) completed.names.push_back(Cat("--", name));
    verb.options.push_back(std::move(completed));
  }
  for (const CLI::App* sub : app.get_subcommands({})) {
    if (!sub->get_group().empty()) verb.verbs.push_back(Read(*sub));
  }
  return verb;
}

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}
std::string Quoted(std::string_view text) { return Cat("'", Replaced(std::string(text), "'", "'\\''"), "'"); }

// --- bash ---

void AddBashVerb(const CompletedVerb& verb, const std::string& path, std::string& words, std::string& values) {
  std::vector<std::string> offered = verb.positional.words;
  for (const Completed& option : verb.options) {
    offered.insert(offered.end(), option.names.begin(), option.names.end());
    if (!option.values.any) continue;
    std::string patterns;
    for (const std::string& name : option.names)
      patterns += Cat(patterns.empty() ? "" : "|", Quoted(Cat(path, " ", name)));
    values += Cat("    ", patterns, ") ", option.values.files ? "files=1; words=" : "files=; words=",
                  Quoted(base::Join(option.values.words, " ")), " ;;\n");
  }
  for (const CompletedVerb& sub : verb.verbs) {
    offered.push_back(sub.name);
    AddBashVerb(sub, path.empty() ? sub.name : Cat(path, " ", sub.name), words, values);
  }
  words += Cat("      ", Quoted(path), ") words=", Quoted(base::Join(offered, " ")),
               verb.positional.files ? "; files=1" : "", " ;;\n");
}

constexpr const char* kBash = R"(# bash completion of laneshift; made by `laneshift completion bash`.
_laneshift() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  local verb= words= files= i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$verb ${COMP_WORDS[i]}" in
@VERBS@    esac
  done
  case "$verb $previous" in
@VALUES@    *)
      case $verb in
@WORDS@      esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [[ -n $files ]]; then COMPREPLY+=($(compgen -f -- "$current")); compopt -o filenames; fi
  if [[ ${COMPREPLY[0]} == *= ]]; then compopt -o nospace; fi
} 2>/dev/null
complete -F _laneshift laneshift
)";

// --- zsh ---

// Within the square brackets of _arguments, in single quotes.
std::string ZshText(std::string text) {
  for (const char* special : {"\\", "[", "]", ":"}) text = Replaced(text, special, Cat("\\", special));
  return Replaced(text, "'", "'\\''");
}

std::string ZshValues(const Values& values) {
  const std::string words = values.words.empty() ? "" : ZshText(base::Join(values.words, " "));
  if (values.files) return ":file:_files";
  return words.empty() ? ":value: " : Cat(":value:(", words, ")");
}

void AddZshVerb(const CompletedVerb& verb, const std::string& function, std::string& text) {
  for (const CompletedVerb& sub : verb.verbs) AddZshVerb(sub, Cat(function, "_", sub.name), text);
  text += Cat(function, "() {\n");
  std::string arguments;
  for (const Completed& option : verb.options) {
    for (const std::string& name : option.names) {
      arguments += Cat(" \\\n    '*", name, "[", ZshText(option.what), "]",
                       option.values.any ? ZshValues(option.values) : "", "'");
    }
  }
  if (verb.verbs.empty()) {
    if (verb.positional.any) arguments += Cat(" \\\n    '*", ZshValues(verb.positional), "'");
    text += Cat("  _arguments", arguments, "\n}\n");
    return;
  }
  text += Cat("  local line state\n  _arguments -C", arguments,
              " \\\n    '1: :->verb' \\\n    '*:: :->rest'\n  case $state in\n    verb)\n      local -a verbs=(\n");
  for (const CompletedVerb& sub : verb.verbs) text += Cat("        '", sub.name, ":", ZshText(sub.what), "'\n");
  text += "      )\n      _describe verb verbs ;;\n    rest)\n      case $line[1] in\n";
  for (const CompletedVerb& sub : verb.verbs) text += Cat("        ", sub.name, ") ", function, "_", sub.name, " ;;\n");
  text += "      esac ;;\n  esac\n}\n";
}

// --- fish ---

void AddFishVerb(const CompletedVerb& verb, const std::string& condition, std::string& text) {
  const std::string head = Cat("complete -c laneshift -n ", Quoted(condition));
  for (const Completed& option : verb.options) {
    std::string line = head;
    for (const std::string& name : option.names) {
      line += name.starts_with("--") ? Cat(" -l ", name.substr(2)) : Cat(" -s ", name.substr(1));
    }
    if (option.values.any) line += option.values.files ? " -r -F" : " -x";
    if (!option.values.words.empty()) line += Cat(" -a ", Quoted(base::Join(option.values.words, " ")));
    text += Cat(line, " -d ", Quoted(option.what), "\n");
  }
  if (!verb.positional.words.empty()) text += Cat(head, " -a ", Quoted(base::Join(verb.positional.words, " ")), "\n");
  if (verb.positional.files) text += Cat(head, " -F\n");
  std::vector<std::string> names;
  for (const CompletedVerb& sub : verb.verbs) names.push_back(sub.name);
  const std::string none = Cat("not __fish_seen_subcommand_from ", base::Join(names, " "));
  for (const CompletedVerb& sub : verb.verbs) {
    const bool outermost = condition == "__fish_use_subcommand";
    const std::string here = outermost ? condition : Cat(condition, "; and ", none);
    text += Cat("complete -c laneshift -n ", Quoted(here), " -a ", sub.name, " -d ", Quoted(sub.what), "\n");
    const std::string seen = Cat("__fish_seen_subcommand_from ", sub.name);
    AddFishVerb(sub, outermost ? seen : Cat(condition, "; and ", seen), text);
  }
}

Result<int> PrintCompletion(const CLI::App& program, const std::string& shell, bool json) {
  std::string text;
  if (shell == "bash") text = BashCompletion(program);
  if (shell == "zsh") text = ZshCompletion(program);
  if (shell == "fish") text = FishCompletion(program);
  if (text.empty()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     Cat("'", shell, "' is not a shell known here; use bash, zsh or fish"));
  }
  if (json) text = Cat(JsonLine(nlohmann::ordered_json{{"shell", shell}, {"text", text}}), "\n");
  std::fputs(text.c_str(), stdout);
  return static_cast<int>(kExitOk);
}

constexpr const char* kCompletionExamples = R"(
Examples:
  source <(laneshift completion bash)
  laneshift completion zsh > ~/.zfunc/_laneshift
  laneshift completion fish > ~/.config/fish/completions/laneshift.fish

An installed laneshift has them where the shells look for them.)";

}  // namespace

std::string BashCompletion(const CLI::App& program) {
  const CompletedVerb root = Read(program);
  std::string verbs, words, values;
  for (const CompletedVerb& verb : root.verbs) {
    verbs += Cat("      ", Quoted(Cat(" ", verb.name)), ") verb=", verb.name, " ;;\n");
    for (const CompletedVerb& sub : verb.verbs) {
      verbs += Cat("      ", Quoted(Cat(verb.name, " ", sub.name)), ") verb=", Quoted(Cat(verb.name, " ", sub.name)),
                   " ;;\n");
    }
  }
  AddBashVerb(root, "", words, values);
  return Replaced(Replaced(Replaced(kBash, "@VERBS@", verbs), "@VALUES@", values), "@WORDS@", words);
}

std::string ZshCompletion(const CLI::App& program) {
  std::string text = "#compdef laneshift\n# zsh completion of laneshift; made by `laneshift completion zsh`.\n";
  AddZshVerb(Read(program), "_laneshift", text);
  return Cat(text, "_laneshift \"$@\"\n");
}

std::string FishCompletion(const CLI::App& program) {
  std::string text = "# fish completion of laneshift; made by `laneshift completion fish`.\ncomplete -c laneshift -f\n";
  AddFishVerb(Read(program), "__fish_use_subcommand", text);
  return text;
}

Verb AddCompletion(CLI::App& app, const Settings&) {
  CLI::App* verb = app.add_subcommand("completion", "Print the shell completion script of laneshift");
  auto shell = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  verb->add_option("shell", *shell, "bash, zsh or fish")->required()->type_name("bash|zsh|fish");
  verb->add_flag("--json", *json, "one JSON object on stdout");
  verb->footer(kCompletionExamples);
  return [&app, shell, json] { return PrintCompletion(app, *shell, *json); };
}

}  // namespace laneshift::tools
