// Every option of every verb whose value is a number refuses what is not in its range before the verb starts.
#include "tools/number_option.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "tools/command_line.h"

namespace laneshift::tools {
namespace {

using base::Cat;

struct NumberOption {
  std::vector<std::string> verb;  // "db", "prune"
  std::string name, type;
};

// The type names of options whose whole value is one number; CLI11 shows the last three where a verb names no type.
constexpr std::string_view kNumbers[] = {"N", "SECONDS", "BYTES", "DAYS", "NUMBER", "INT", "UINT", "FLOAT"};

// Those of all others, apart from words with '|' between them: text, and forms with numbers inside, of which
// tests/mistakes/mistakes.txt has wrong ones.
constexpr std::string_view kTexts[] = {"NAME=VALUE", "FILE",  "DIR",         "PATH",       "WORD", "SCHEDULE",
                                       "VERB",       "TEXT",  "NAME=ANSWER", "NAME=LEVEL", "NAME", "PASS",
                                       "PROBLEM",    "SIZES", "BUDGET",      "N,...",      "I/N"};

bool IsNumber(std::string_view type) { return std::ranges::find(kNumbers, type) != std::end(kNumbers); }
bool IsText(std::string_view type) {
  return std::ranges::find(kTexts, type) != std::end(kTexts) || type.find('|') != std::string_view::npos;
}

void Collect(const CLI::App& app, std::vector<std::string> verb, std::vector<NumberOption>& found) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) continue;  // a flag
    const std::string type = option->get_type_name();
    EXPECT_TRUE(IsNumber(type) || IsText(type)) << option->get_name() << " has the unknown type " << type;
    if (IsNumber(type)) found.push_back({verb, Cat("--", option->get_lnames().front()), type});
  }
  for (const CLI::App* inner : app.get_subcommands({})) {
    std::vector<std::string> words = verb;
    words.push_back(inner->get_name());
    Collect(*inner, words, found);
  }
}

TEST(NumberOptions, RefuseWhatIsOutsideOfTheirRanges) {
  const Settings settings;
  std::vector<NumberOption> options;
  Collect(CommandLine(settings).app(), {}, options);
  EXPECT_GE(options.size(), 20u);
  const std::vector<std::string> no_numbers = {"-1",   "nan", "-nan", "inf", "-inf", "1e400",
                                               "0x10", "1e",  "7 ",   "1,2", "many", "-9223372036854775809"};
  for (const NumberOption& option : options) {
    std::vector<std::string> values = no_numbers;
    values.push_back(option.type == "NUMBER" ? "1e39" : "18446744073709551616");  // one more than an f32, or 64 bits
    for (const std::string& value : values) {
      const std::string assigned = Cat(option.name, "=", value);
      std::vector<const char*> words = {"laneshift"};
      for (const std::string& verb : option.verb) words.push_back(verb.c_str());
      words.push_back(assigned.c_str());
      const Result<int> outcome = CommandLine(settings).Run(static_cast<int>(words.size()), words.data());
      ASSERT_FALSE(outcome.has_value()) << option.verb.front() << " " << assigned;
      EXPECT_EQ(outcome.error().code, ErrorCode::kInvalidArgument) << assigned;
      EXPECT_TRUE(outcome.error().message.starts_with(option.name)) << outcome.error().message;
    }
  }
}

struct Bounds {
  CLI::Validator validator;
  std::vector<std::string> taken, refused;
};

TEST(NumberOptions, TakeTheEndsOfTheirRanges) {
  const Bounds cases[] = {
      {WholeNumber(1, 1000), {"1", "1000"}, {"0", "1001", "1.5"}},
      {WholeNumber(0, kLargestSeed), {"0", "9223372036854775807"}, {"9223372036854775808"}},
      {RealNumber(0, kLongestSeconds), {"0", "0.5", "1e3", "31536000"}, {"31536001", "-0.1", "nan"}},
      {ByteCount(1), {"1", "1K", "8589934591G", "9223372036854775807"}, {"0", "0G", "8589934592G", "1T", "K", "1.5K"}},
  };
  for (const Bounds& bounds : cases) {
    for (std::string text : bounds.taken) EXPECT_EQ(bounds.validator(text), "") << text;
    for (std::string text : bounds.refused) EXPECT_NE(bounds.validator(text), "") << text;
  }
  std::string text = "512M";
  EXPECT_EQ(ByteCount(0)(text), "");
  EXPECT_EQ(text, "536870912");
}

}  // namespace
}  // namespace laneshift::tools
