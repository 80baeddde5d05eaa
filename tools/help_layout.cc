#include "tools/help_layout.h"

#include <algorithm>

#include "base/text.h"
#include "tools/terminal.h"

namespace laneshift::tools {
namespace {

using base::Cat;

constexpr size_t kNames = 26;       // characters of the column of names
constexpr size_t kMostWidth = 100;  // longer lines are hard to read

size_t HelpWidth() {
  const size_t width = TerminalWidth(stdout);
  return width == kUnlimited ? kUsualWidth : std::clamp(width, size_t{40}, kMostWidth);
}

// The names, and the meaning in a second column.
std::string HelpRow(const std::string& names, const std::string& meaning) {
  const std::string head = Cat("  ", names);
  const std::string text = Wrapped(meaning, HelpWidth(), {.first = kNames, .rest = kNames});
  if (CharactersOf(head) + 2 > kNames)
    return Cat(Wrapped(head, HelpWidth(), {.first = 2, .rest = 6}), "\n", text, "\n");
  return Cat(head, text.substr(std::min(text.size(), head.size())), "\n");
}

// A command that is longer than a line goes on in the next one, as a shell reads it.
std::string Command(std::string_view line, size_t width) {
  constexpr size_t kMargin = 2;  // for the blank and the backslash
  const std::string wrapped = Wrapped(line, width - kMargin, {.first = 2, .rest = 6});
  std::string text;
  for (const std::string_view part : base::Split(wrapped, '\n')) text += Cat(text.empty() ? "" : " \\\n", part);
  return text;
}

}  // namespace

std::string LaidOut(std::string_view text, size_t width) {
  std::string laid_out, paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) laid_out += Cat(Wrapped(paragraph, width), "\n");
    paragraph.clear();
  };
  for (const std::string_view line : base::Split(text, '\n')) {
    if (!line.empty() && !line.starts_with("  ")) {
      paragraph += Cat(line, " ");
      continue;
    }
    end_paragraph();
    laid_out += Cat(line.empty() ? "" : Command(line, width), "\n");
  }
  end_paragraph();
  return laid_out;
}

std::string OptionNames(const CLI::Option& option, bool is_positional) {
  const std::string all_names = option.get_name(is_positional, !is_positional);
  std::string names;
  for (const std::string_view name : base::Split(all_names, ',')) {
    names += Cat(names.empty() ? "" : ", ", name);
  }
  if (!is_positional && option.get_type_size() != 0) names += Cat(" ", option.get_type_name());
  return names;
}

std::string OptionMeaning(const CLI::Option& option) {
  std::string meaning = option.get_description();
  if (!option.get_default_str().empty()) meaning += Cat(" (default: ", option.get_default_str(), ")");
  if (option.get_required()) meaning += " (required)";
  return meaning;
}

HelpLayout::HelpLayout() {
  column_width(kNames);
  label("SUBCOMMAND", "VERB");
  label("OPTIONS", "options");
}

std::string HelpLayout::make_option(const CLI::Option* option, bool is_positional) const {
  return HelpRow(OptionNames(*option, is_positional), OptionMeaning(*option));
}

std::string HelpLayout::make_subcommand(const CLI::App* verb) const {
  return HelpRow(verb->get_display_name(true), verb->get_description());
}

std::string HelpLayout::make_description(const CLI::App* app) const {
  return Cat(Wrapped(app->get_description(), HelpWidth()), "\n");
}

std::string HelpLayout::make_usage(const CLI::App* app, std::string name) const {
  return Cat(Wrapped(CLI::Formatter::make_usage(app, std::move(name)), HelpWidth(), {.rest = 6}), "\n");
}

std::string HelpLayout::make_footer(const CLI::App* app) const {
  // The layout has a separate line between the options and this.
  const std::string footer = app->get_footer();
  return LaidOut(std::string_view(footer).substr(footer.starts_with('\n') ? 1 : 0), HelpWidth());
}

}  // namespace laneshift::tools
