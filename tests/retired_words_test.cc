// Prose in the field's words: comments, messages and documents use the terms that CUTLASS, Triton or LLVM engineers
// know, and no literal translations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "tests/source_tree.h"

namespace laneshift::tests {
namespace {

// All prose is checked but this: that of other projects, measurements, and inputs of tests.
constexpr std::string_view kLeftOut[] = {
    "bench/measured/", "bench/published/", "tests/fuzz/", "tests/golden/", "tests/retired_words_test.cc",
    "tests/sweep/",    "tests/words/",
};

// `word` is a plain part of every match, in lower case, to be quick. `pattern` is for text in lower case.
struct RetiredWord {
  std::string_view word, pattern, instead;
};

constexpr RetiredWord kRetired[] = {
    {"so-manieth", "\\bso-manieth\\b", "every Nth"},
    {"grant", "\\bgranted\\b(?!;|, answer|  *clusterlaunch)|\\bgranted tiles\\b", "CLC work stealing; accepted"},
    {"over", "\\b(take|takes|taking|taken|took) over\\b", "steals, replaces, continues"},
    {"turns", "\\bin turns\\b|\\b(take|takes|taking|took) turns\\b", "interleaved, alternating, ping-pong"},
    {"turn", "\\bturns? of (a|the|its) (k )?loops?\\b|\\bturns of the loop\\b", "iteration"},
    {"totals", "\\blines of totals\\b|\\btotals are\\b|\\badds? up totals\\b|\\bof totals\\b",
     "reductions, partial rows"},
    {"factors", "(^|[^e] )factors of (a|b|d|the rows|blocks|whole)\\b", "scale factors"},
    {"stay", "\\boperands? that stays?\\b(?! in)|\\bb (that )?stays\\b|\\bwhat stays\\b", "resident B"},
    {"lanes", "\\blost lanes\\b|\\blanes (that )?are lost\\b", "stale lanes"},
    {"sections", "\\bsections of k\\b", "split-K slices"},
    {"walk", "\\bthe walks?\\b|\\ba walk\\b|\\bwalks? over\\b", "implicit-GEMM index, tile order, loop over"},
    {"pairs", "\\bjoins? (no )?pairs\\b", "gated linear unit"},
    {"product", "\\bthe product's kernel\\b|\\bbehind the product\\b", "the main kernel"},
    {"beside", "(^|[^.])\\bbeside\\b", "next to, in addition to, during"},
    {"behind", "\\bbehind\\b", "after"},
    {"alone", "\\balone\\b", "only, by itself"},
    {" own", "\\bof (its|their|one's|your|his|her|our) own\\b(?! [a-zA-Z])", "separate, its own X"},
    {"none", "\\bthat is none\\b|\\bis none of\\b|\\bare none of\\b", "is not one of"},
    {"multiple", "\\bno multiple\\b", "not a multiple"},
    {"told", "\\b(is|are|be|been) told\\b(?! apart)", "is given, is reported"},
    {"told apart", "\\btold apart\\b", "distinguished"},
    {"far as it", "\\bas far as (it|they) goe?s?\\b", "as far as possible"},
    {"for ever", "\\bfor ever\\b", "forever"},
    {"fro", "\\bto and fro\\b", "back and forth"},
    {"side by", "\\bside by side\\b", "adjacent, concurrently"},
    {"stand", "\\bstands? (in|at|under|below|above)\\b", "is"},
    {"by", "\\b(goes|go) by\\b(?! itself)", "uses, is based on"},
    {"taken back", "\\btaken back\\b", "removed"},
    {"anew", "\\bmade anew\\b|\\bstarted anew\\b", "recreated, restarted"},
};

enum class Form { kCpp, kHash, kMarkdown, kNone };

Form FormOf(const SourceFile& file) {
  const auto ends = [&](std::string_view end) { return file.path.ends_with(end); };
  if (ends(".h") || ends(".cc") || ends(".def") || ends(".cu") || ends(".cuh")) return Form::kCpp;
  if (ends(".py") || ends(".sh") || ends(".cmake") || ends("CMakeLists.txt") || ends("Makefile")) return Form::kHash;
  return ends(".md") ? Form::kMarkdown : Form::kNone;
}

// The comment of a line and what its string literals contain; words in backticks are code.
std::string CommentsAndStrings(std::string_view line, std::string_view comment) {
  std::string prose;
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (!quoted && line.substr(i).starts_with(comment))
      return prose + ' ' + std::string(line.substr(i + comment.size()));
    if (line[i] == '\\' && quoted) {
      prose += ' ';
      ++i;
    } else if (line[i] == '"') {
      quoted = !quoted;
      prose += quoted ? ' ' : '|';  // so that two strings are no phrase
    } else if (quoted) {
      prose += line[i];
    }
  }
  return prose;
}

// In lower case, but for names in capitals.
std::string WithoutCode(const std::string& prose) {
  std::string text;
  bool code = false;
  for (size_t i = 0; i < prose.size(); ++i) {
    const bool name = i + 1 < prose.size() && std::isupper(static_cast<unsigned char>(prose[i + 1]));
    if (prose[i] == '`') {
      code = !code;
      text += '`';
    } else if (!code) {
      text += name ? prose[i] : static_cast<char>(std::tolower(static_cast<unsigned char>(prose[i])));
    }
  }
  return code ? prose : text;
}

// What people read of each line, in lower case.
std::vector<std::string> ProseOf(const SourceFile& file) {
  const Form form = FormOf(file);
  std::vector<std::string> prose(file.lines.size());
  bool fenced = false, generated = false;
  for (size_t i = 0; form != Form::kNone && i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    if (form != Form::kMarkdown) {
      prose[i] = WithoutCode(CommentsAndStrings(line, form == Form::kCpp ? "//" : "#"));
      continue;
    }
    if (line.starts_with("```")) fenced = !fenced;
    if (line.starts_with("<!-- ")) generated = !line.starts_with("<!-- end");
    if (!fenced && !generated) prose[i] = WithoutCode(line);
  }
  return prose;
}

// The retired word that a line has, which may end in the next one; nullptr if there is none.
const RetiredWord* RetiredIn(const std::string& line, const std::string& next) {
  if (line.empty()) return nullptr;
  const std::string both = line + ' ' + next.substr(std::min(next.find_first_not_of(' '), next.size()));
  for (const RetiredWord& retired : kRetired) {
    if (both.find(retired.word) == std::string::npos) continue;
    std::smatch match;
    if (std::regex_search(both, match, std::regex(std::string(retired.pattern))) &&
        static_cast<size_t>(match.position()) < line.size()) {
      return &retired;
    }
  }
  return nullptr;
}

bool IsChecked(const SourceFile& file) {
  const auto under = [&](std::string_view prefix) { return file.Under(prefix); };
  return std::none_of(std::begin(kLeftOut), std::end(kLeftOut), under);
}

TEST(RetiredWords, ProseIsInTheFieldsWords) {
  int checked = 0;
  for (const SourceFile& file : ReadSourceTree()) {
    if (!IsChecked(file)) continue;
    ++checked;
    const std::vector<std::string> prose = ProseOf(file);
    for (size_t i = 0; i < prose.size(); ++i) {
      const RetiredWord* retired = RetiredIn(prose[i], i + 1 < prose.size() ? prose[i + 1] : "");
      if (retired == nullptr) continue;
      ADD_FAILURE() << file.At(i) << ": \"" << retired->word << "\": write " << retired->instead << ": "
                    << file.lines[i];
    }
  }
  EXPECT_GT(checked, 300);
}

TEST(RetiredWords, CodeIsNotProse) {
  const auto found = [](std::string path, std::vector<std::string> lines) {
    const std::vector<std::string> prose = ProseOf({.path = std::move(path), .lines = std::move(lines)});
    bool any = false;
    for (size_t i = 0; i < prose.size(); ++i) {
      any = any || RetiredIn(prose[i], i + 1 < prose.size() ? prose[i + 1] : "") != nullptr;
    }
    return any;
  };
  EXPECT_TRUE(found("a.cc", {"int x;  // the ring beside it"}));
  EXPECT_TRUE(found("a.cc", {"Say(\"eight bytes behind the end\");"}));
  EXPECT_TRUE(found("a.h", {"// Which warpgroups take", "// turns."}));
  EXPECT_TRUE(found("a.py", {"x = 1  # Granted tiles."}));
  EXPECT_TRUE(found("a.md", {"Stores by threads alone."}));
  EXPECT_FALSE(found("a.cc", {"int beside = behind + alone;  // the ring next to it"}));
  EXPECT_FALSE(found("a.cc", {"Say(\"take\", \"turns\");"}));
  EXPECT_FALSE(
      found("a.md", {"`TotalsOf(behind)`", "```", "beside", "```", "<!-- table -->", "alone", "<!-- end -->"}));
  EXPECT_FALSE(found("a.tir", {"; behind"}));
}

}  // namespace
}  // namespace laneshift::tests
