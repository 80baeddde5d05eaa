#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tools/exit_code.h"
#include "tools/help_layout.h"
#include "tools/help_topics.h"
#include "tools/json_line.h"
#include "tools/table.h"
#include "tools/verbs/verbs.h"

namespace laneshift::tools {
namespace {

using base::Cat;
using Json = nlohmann::ordered_json;

constexpr const char* kHelpExamples = R"(
Examples:
  laneshift help
  laneshift help gemm
  laneshift help stages
  laneshift help db prune
  laneshift help conv --json)";

struct HelpOptions {
  std::vector<std::string> words;
  bool json = false;
};

void PrintPage(const HelpPage& page) {
  const Screen screen = StdoutScreen();
  // Prose is laid out for people wherever it goes.
  const size_t width = screen.width == kUnlimited ? kUsualWidth : screen.width;
  std::vector<Column> columns;
  for (const std::string& title : page.columns) columns.push_back({title});
  columns.back().room = Room::kLong;
  TextTable table(columns);
  for (const std::vector<std::string>& row : page.rows) {
    std::vector<Cell> cells;
    for (const std::string& text : row) cells.push_back({text});
    table.Add(std::move(cells));
  }
  std::printf("%s\n\n%s%s", Wrapped(page.intro, width).c_str(),
              table.Print({.colour = screen.colour, .width = width}).c_str(), LaidOut(page.notes, width).c_str());
}

Json PageJson(std::string_view topic, const HelpPage& page) {
  Json rows = Json::array();
  for (const std::vector<std::string>& row : page.rows) {
    Json object;
    for (size_t i = 0; i < row.size(); ++i) object[page.columns[i]] = row[i];
    rows.push_back(std::move(object));
  }
  return {{"topic", topic}, {"text", page.intro}, {"rows", std::move(rows)}, {"notes", page.notes}};
}

Json VerbJson(const CLI::App& verb) {
  Json options = Json::array(), verbs = Json::array();
  for (const CLI::Option* option : verb.get_options()) {
    options.push_back({{"names", OptionNames(*option, option->get_positional())},
                       {"meaning", option->get_description()},
                       {"default", option->get_default_str()},
                       {"required", option->get_required()}});
  }
  for (const CLI::App* sub : verb.get_subcommands({})) {
    if (!sub->get_group().empty()) verbs.push_back({{"name", sub->get_name()}, {"what", sub->get_description()}});
  }
  return {{"verb", verb.get_name()}, {"what", verb.get_description()}, {"options", options}, {"verbs", verbs}};
}

// The verb that words name, one word a level; nothing: they name none.
const CLI::App* FindVerb(const CLI::App& program, const std::vector<std::string>& words) {
  const CLI::App* verb = &program;
  for (const std::string& word : words) {
    const auto subs = verb->get_subcommands([&](const CLI::App* sub) { return sub->get_name() == word; });
    if (subs.empty()) return nullptr;
    verb = subs.front();
  }
  return verb;
}

// Of every topic the rows of this name: a key, a step, a policy.
std::vector<std::pair<std::string_view, HelpPage>> FindRows(const std::string& name) {
  std::vector<std::pair<std::string_view, HelpPage>> found;
  for (const HelpTopic& topic : HelpTopics()) {
    HelpPage page = topic.page();
    std::erase_if(page.rows, [&](const std::vector<std::string>& row) {
      return row[0].substr(0, row[0].find_first_of("=:")) != name;
    });
    page.intro = Cat("From laneshift help ", topic.name, ":");
    page.notes.clear();
    if (!page.rows.empty()) found.emplace_back(topic.name, std::move(page));
  }
  return found;
}

Error NothingKnown(const CLI::App& program, const std::string& name) {
  std::vector<std::string> known;
  for (const HelpTopic& topic : HelpTopics()) known.emplace_back(topic.name);
  for (const CLI::App* verb : program.get_subcommands({})) {
    if (!verb->get_group().empty()) known.push_back(verb->get_name());
  }
  return MakeError(ErrorCode::kInvalidArgument, base::UnknownName("topic", name, {known.begin(), known.end()}));
}

void PrintTopics() {
  std::printf("\nTopics:\n");
  for (const HelpTopic& topic : HelpTopics()) {
    std::printf("%s\n", Itemized(Cat("  laneshift help ", topic.name), topic.what, 30, kUsualWidth).c_str());
  }
}

Result<int> Help(const CLI::App& program, const HelpOptions& options) {
  if (const CLI::App* verb = FindVerb(program, options.words)) {
    if (options.json) {
      std::printf("%s\n", JsonLine(VerbJson(*verb)).c_str());
      return static_cast<int>(kExitOk);
    }
    // The text appends the verb's own name.
    std::string before = "laneshift";
    for (size_t i = 0; i + 1 < options.words.size(); ++i) before += Cat(" ", options.words[i]);
    std::fputs(verb->help(options.words.empty() ? "" : before).c_str(), stdout);
    if (options.words.empty()) PrintTopics();
    return static_cast<int>(kExitOk);
  }
  std::string name = base::Join(options.words, " ");
  if (name.ends_with('=')) name.pop_back();
  std::vector<std::pair<std::string_view, HelpPage>> pages;
  for (const HelpTopic& topic : HelpTopics()) {
    if (topic.name == name) pages.emplace_back(topic.name, topic.page());
  }
  if (pages.empty()) pages = FindRows(name);
  if (pages.empty()) return NothingKnown(program, name);
  for (size_t i = 0; i < pages.size(); ++i) {
    const auto& [topic, page] = pages[i];
    if (options.json) {
      std::printf("%s\n", JsonLine(PageJson(topic, page)).c_str());
      continue;
    }
    if (i > 0) std::printf("\n");
    PrintPage(page);
  }
  return static_cast<int>(kExitOk);
}

}  // namespace

Verb AddHelp(CLI::App& app, const Settings&) {
  CLI::App* verb = app.add_subcommand("help", "Explain a verb, or the keys of problems and schedules");
  auto options = std::make_shared<HelpOptions>();
  std::string topics;
  for (const HelpTopic& topic : HelpTopics()) topics += Cat(topics.empty() ? "" : "|", topic.name);
  verb->add_option("topic", options->words, "a verb, a topic, or a key of a problem or a schedule")->type_name(topics);
  verb->add_flag("--json", options->json, "JSON on stdout, one object per topic");
  verb->footer(kHelpExamples);
  return [options, &app] { return Help(app, *options); };
}

}  // namespace laneshift::tools
