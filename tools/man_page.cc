#include "tools/man_page.h"

#include <CLI/CLI.hpp>
#include <string_view>

#include "base/text.h"
#include "tools/help_layout.h"

namespace laneshift::tools {
namespace {

using base::Cat;

// Text in which nothing is a command of roff.
std::string Plain(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (c == '\\') {
      plain += "\\e";
    } else if (c == '-') {
      plain += "\\-";
    } else {
      const bool begins_line = plain.empty() || plain.back() == '\n';
      if (begins_line && (c == '.' || c == '\'')) plain += "\\&";
      plain += c;
    }
  }
  return plain;
}

std::string Options(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    text += Cat(".TP\n.B ", Plain(OptionNames(*option, option->get_positional())), "\n", Plain(OptionMeaning(*option)),
                "\n");
  }
  return text;
}

// Paragraphs, and commands as they are typed.
std::string Footer(const std::string& footer) {
  std::string text;
  bool commands = false;
  for (const std::string_view line : base::Split(footer, '\n')) {
    const bool command = line.starts_with("  ");
    if (command != commands) text += command ? ".PP\n.nf\n" : ".fi\n";
    commands = command;
    text += line.empty() ? ".PP\n" : Cat(Plain(command ? line.substr(2) : line), "\n");
  }
  return Cat(text, commands ? ".fi\n" : "");
}

std::string Usage(const std::string& name, const CLI::App& app) {
  std::string text = Cat(".B ", Plain(name), "\n[options]");
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    const std::string word = option->get_name(true, false);
    text += option->get_required() ? Cat(" ", word) : Cat(" [", word, "]");
    if (option->get_expected_max() > 1) text += "...";
  }
  if (!app.get_subcommands({}).empty()) text += " verb ...";
  return Cat(text, "\n");
}

}  // namespace

std::string ManPage(const CLI::App& program, const CLI::App& verb, const std::string& version) {
  const bool whole = &program == &verb;
  const std::string title = whole ? "laneshift" : Cat("laneshift-", verb.get_name());
  const std::string name = whole ? "laneshift" : Cat("laneshift ", verb.get_name());
  std::string text = Cat(".TH ", Plain(title), " 1 \"\" \"laneshift ", version, "\" \"laneshift\"\n.SH NAME\n",
                         Plain(title), " \\- ", Plain(verb.get_description()), "\n.SH SYNOPSIS\n", Usage(name, verb));
  const auto subs = verb.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); });
  if (!subs.empty()) text += ".SH VERBS\n";
  for (const CLI::App* sub : subs) {
    text += Cat(".TP\n.B ", Plain(sub->get_name()), "\n", Plain(sub->get_description()), "\n");
  }
  text += Cat(".SH OPTIONS\n", Options(verb));
  for (const CLI::App* sub : subs) {
    if (whole) break;  // they have separate pages
    text += Cat(".SH ", Plain(Cat(name, " ", sub->get_name())), "\n", Usage(Cat(name, " ", sub->get_name()), *sub),
                Options(*sub));
  }
  text += Cat(".SH NOTES\n", Footer(verb.get_footer()), ".SH SEE ALSO\n");
  std::string others;
  for (const CLI::App* other : program.get_subcommands({})) {
    if (other == &verb || other->get_group().empty()) continue;
    others += Cat(others.empty() ? "" : ", ", "laneshift\\-", other->get_name(), "(1)");
  }
  return Cat(text, whole ? "" : "laneshift(1), ", others, "\n");
}

}  // namespace laneshift::tools
