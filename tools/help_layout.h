// HelpLayout: help texts of CLI11's tables that fit a terminal, or 80 columns if the output is not one.
//
// Thread-safety: none; the texts depend on standard output at the time.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace laneshift::tools {

// A footer in lines of at most `width` characters: paragraphs are refilled; lines that begin with two blanks are
// commands and continue after a backslash.
std::string LaidOut(std::string_view text, size_t width);

class HelpLayout : public CLI::Formatter {
 public:
  HelpLayout();
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* verb) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_footer(const CLI::App* app) const override;
};

// "--schedule SCHEDULE", and what it means with its default.
std::string OptionNames(const CLI::Option& option, bool is_positional);
std::string OptionMeaning(const CLI::Option& option);

}  // namespace laneshift::tools
