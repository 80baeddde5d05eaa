// Parts of docs/ that are printed from tables of ir/. BLESS=1 rewrites them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "ir/mma_support.h"
#include "ir/problem_keys.h"
#include "ir/program_text.h"
#include "ir/stored_tensor.h"
#include "laneshift/schedule.h"
#include "target/target.h"

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

std::string Joined(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += base::Cat(text.empty() ? "" : ", ", item);
  return text;
}

// What there are kernels for of the kinds of matrix instruction, for each target.
std::string MmaKindTable() {
  std::string table =
      "| instruction | A and B | bits in shared memory | K | A from | CTAs | scale factors (`scale=`) | sums | target "
      "|\n"
      "|---|---|---|---|---|---|---|---|---|\n";
  std::map<MmaKind, std::vector<std::pair<std::string, std::string>>> rows;  // with the targets that have it
  for (const target::Target& target : target::Targets()) {
    for (const MmaSupport& support : MmaSupportOf(target)) {
      const MmaKindInfo& info = InfoOf(support.kind);
      std::vector<std::string> types, ctas, scales;
      for (const DataType type : support.types) types.emplace_back(DataTypeName(type));
      for (const int count : support.ctas) ctas.push_back(std::to_string(count));
      for (const Scaling scale : support.scales)
        scales.push_back(scale == Scaling::kNone ? "none" : base::Cat("`", NameOf(scale), "`"));
      const std::string instruction =
          target.mma.AccumulatesInTensorMemory() ? base::Cat("`kind::", info.text, "`") : "`wgmma`";
      const std::string row =
          base::Cat("| ", instruction, support.sparse ? " `.sp`" : "", " | ", Joined(types),
                    support.Mixes()    ? ", each"
                    : types.size() > 1 ? ", both"
                                       : "",
                    " | ", info.operand_bits, " | ", support.Depth(), " | ",
                    support.a_space == Space::kTensor ? "Tensor Memory" : "shared memory", " | ", Joined(ctas), " | ",
                    Joined(scales), " | ", DataTypeName(info.accumulator), " | ");
      auto& of_kind = rows[support.kind];
      const auto same =
          std::find_if(of_kind.begin(), of_kind.end(), [&](const auto& other) { return other.first == row; });
      if (same == of_kind.end()) {
        of_kind.emplace_back(row, target.name);
      } else {
        same->second += base::Cat(", ", target.name);
      }
    }
  }
  for (const auto& [kind, of_kind] : rows) {
    for (const auto& [row, targets] : of_kind) table += base::Cat(row, targets, " |\n");
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
TEST(Docs, MmaKindsAreThoseOfTheTable) { ExpectSection("README.md", "matrix instructions", MmaKindTable()); }
TEST(Docs, ScheduleKeysAreThoseOfTheTable) { ExpectSection("docs/schedules.md", "keys", ScheduleTable()); }

}  // namespace
}  // namespace laneshift::ir
