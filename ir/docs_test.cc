// Parts of docs/ that are printed from tables of ir/. BLESS=1 rewrites them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/text.h"
#include "ir/program_text.h"
#include "laneshift/schedule.h"

namespace laneshift::ir {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// Compares what lies between <!-- NAME --> and <!-- end of NAME --> in a file of docs/.
void ExpectSection(const std::string& file, const std::string& name, const std::string& expected) {
  const std::string path = base::Cat(LANESHIFT_SOURCE_DIR "/", file);
  const std::string begin = base::Cat("<!-- ", name, " -->\n"), end = base::Cat("<!-- end of ", name, " -->");
  std::string text = ReadFile(path);
  const size_t first = text.find(begin), last = text.find(end);
  ASSERT_TRUE(first != std::string::npos && last != std::string::npos && first < last)
      << file << " has no section " << name;
  const size_t start = first + begin.size();
  if (std::getenv("BLESS") != nullptr) {
    text.replace(start, last - start, expected);
    std::ofstream(path) << text;
    return;
  }
  EXPECT_EQ(text.substr(start, last - start), expected)
      << file << " is stale: run BLESS=1 ir_test --gtest_filter='Docs.*'";
}

std::string ScheduleTable() {
  std::string table = "| key | values | default | meaning |\n|---|---|---|---|\n";
  for (const ScheduleKey& key : ScheduleKeys()) {
    table += base::Cat("| `", key.name, "=` | ", key.values, " | `", key.name, "=", key.usual, "` | ", key.doc, " |\n");
  }
  return table;
}

// The opening comment of the verifier.
std::string Rules() {
  std::istringstream in(ReadFile(LANESHIFT_SOURCE_DIR "/ir/verifier.cc"));
  std::string rules;
  for (std::string line; std::getline(in, line) && line.starts_with("//");) {
    const std::string_view text = base::Trim(std::string_view(line).substr(2));
    const bool starts_rule = !text.empty() && text[0] >= '0' && text[0] <= '9' && text.find(". ") <= 2;
    if (!starts_rule && rules.empty()) continue;  // what stands before the first rule
    rules += base::Cat(rules.empty() ? "" : starts_rule ? "\n" : " ", text);
  }
  return rules + "\n";
}

TEST(Docs, OpTableIsThatOfOpsDef) { ExpectSection("docs/ir.md", "ops", OpTable()); }
TEST(Docs, RulesAreThoseOfTheVerifier) { ExpectSection("docs/ir.md", "rules", Rules()); }
TEST(Docs, ExampleIsAGoldenProgram) {
  ExpectSection(
      "docs/ir.md", "example",
      base::Cat("```\n", ReadFile(LANESHIFT_SOURCE_DIR "/tests/golden/ir/gemm_sm_100a_scheduled.tir"), "```\n"));
}
TEST(Docs, ScheduleKeysAreThoseOfTheTable) { ExpectSection("docs/schedules.md", "keys", ScheduleTable()); }

}  // namespace
}  // namespace laneshift::ir
