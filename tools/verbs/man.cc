#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tools/compilation.h"
#include "tools/exit_code.h"
#include "tools/help_layout.h"
#include "tools/json_line.h"
#include "tools/man_page.h"
#include "tools/verbs/verbs.h"

namespace laneshift::tools {
namespace {

using base::Cat;

constexpr const char* kManExamples = R"(
Examples:
  laneshift man run | man -l -
  laneshift man --directory /usr/local/share/man/man1

An installed laneshift has its pages where man looks for them.)";

struct ManOptions {
  std::string verb, directory;
  bool json = false;
};

struct Page {
  std::string file, text;
};

Result<std::vector<Page>> PagesOf(const CLI::App& program, const ManOptions& options, const std::string& version) {
  std::vector<Page> pages;
  if (options.verb.empty()) pages.push_back({"laneshift.1", ManPage(program, program, version)});
  std::vector<std::string> known;
  for (const CLI::App* verb : program.get_subcommands({})) {
    if (verb->get_group().empty()) continue;
    known.push_back(verb->get_name());
    if (options.verb.empty() ? options.directory.empty() : options.verb != verb->get_name()) continue;
    pages.push_back({Cat("laneshift-", verb->get_name(), ".1"), ManPage(program, *verb, version)});
  }
  if (!pages.empty()) return pages;
  return MakeError(ErrorCode::kInvalidArgument, base::UnknownName("verb", options.verb, {known.begin(), known.end()}));
}

Result<int> Man(const CLI::App& program, const ManOptions& options, const std::string& version) {
  LS_ASSIGN(const std::vector<Page> pages, PagesOf(program, options, version));
  nlohmann::ordered_json written = nlohmann::ordered_json::array();
  for (const Page& page : pages) {
    if (options.directory.empty()) {
      if (options.json) written.push_back({{"file", page.file}, {"text", page.text}});
      if (!options.json) std::fputs(page.text.c_str(), stdout);
      continue;
    }
    const std::string path = Cat(options.directory, "/", page.file);
    LS_TRY(WriteOutput(path, page.text));
    written.push_back({{"file", path}});
  }
  if (options.json) std::printf("%s\n", JsonLine(nlohmann::ordered_json{{"pages", std::move(written)}}).c_str());
  return static_cast<int>(kExitOk);
}

}  // namespace

Verb AddMan(CLI::App& app, const Settings& settings) {
  CLI::App* verb = app.add_subcommand("man", "Print a manual page, or write all of them");
  auto options = std::make_shared<ManOptions>();
  verb->add_option("verb", options->verb, "the verb; default: the page of the program")->type_name("VERB");
  verb->add_option("--directory", options->directory, "write laneshift.1 and a page for each verb there")
      ->type_name("DIR");
  verb->add_flag("--json", options->json, "one JSON object on stdout");
  verb->footer(kManExamples);
  return [&app, options, settings] { return Man(app, *options, settings.version); };
}

}  // namespace laneshift::tools
