// Parts of docs/ that are printed from tables of ir/. BLESS=1 rewrites them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
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

// What kernels are built for of the kinds of matrix instruction: the rows of ir/mma_kinds.def, for each target.
std::string MmaKindTable() {
  constexpr std::pair<MmaKind, std::string_view> kKinds[] = {
#define MMA_KIND(Name, text, ...) {MmaKind::k##Name, text},
#define MMA_TYPE(...)
#include "ir/mma_kinds.def"
  };
  constexpr std::pair<MmaKind, DataType> kTypes[] = {
#define MMA_KIND(...)
#define MMA_TYPE(Kind, Type, code) {MmaKind::k##Kind, DataType::k##Type},
#include "ir/mma_kinds.def"
  };
  std::string table =
      "| instruction | A and B | bits in shared memory | K | A from | CTAs | scale factors (`scale=`) | sums | target "
      "|\n"
      "|---|---|---|---|---|---|---|---|---|\n";
  for (const auto& [kind, text] : kKinds) {
    const MmaKindInfo& info = InfoOf(kind);
    std::vector<std::pair<std::string, std::string>> rows;  // with the targets that have it
    for (const target::Target& target : target::Targets()) {
      std::vector<std::string> types, from_tensor_memory, scales;
      for (const auto& [of, type] : kTypes) {
        if (of != kind || !Multiplies(target.mma, kind, type)) continue;
        types.emplace_back(DataTypeName(type));
        if (ReadsTensorMemory(target.mma, kind, type)) from_tensor_memory.emplace_back(DataTypeName(type));
      }
      if (types.empty()) continue;
      for (const Scaling scale : {Scaling::kTensor, Scaling::kBlock, Scaling::kMx, Scaling::kNv}) {
        const auto blocks = BlockScalingOf(scale);
        const bool multiplied = (blocks ? blocks->run : 0) == info.scale_run && (blocks || kind == MmaKind::kF8f6f4);
        if (multiplied) scales.push_back(base::Cat("`", NameOf(scale), "`"));
      }
      const bool wgmma = !target.mma.AccumulatesInTensorMemory();
      const bool mixes = info.pairing == MmaKindInfo::kAnyTypes && types.size() > 1;
      const std::string_view tensor_memory = from_tensor_memory.empty()                  ? ""
                                             : from_tensor_memory.size() == types.size() ? ", Tensor Memory"
                                                                                         : ", Tensor Memory (8 bits)";
      const std::string row =
          base::Cat("| `", wgmma ? "wgmma" : base::Cat("kind::", text), "` | ", Joined(types),
                    mixes              ? ", each"
                    : types.size() > 1 ? ", both"
                                       : "",
                    " | ", info.operand_bits, " | ", info.Depth(), " | shared memory", tensor_memory, " | ",
                    target.mma.most_ctas == 2 ? "1, 2" : "1", " | ", scales.empty() ? "none" : Joined(scales), " | ",
                    DataTypeName(info.accumulator), " | ");
      const auto same = std::find_if(rows.begin(), rows.end(), [&](const auto& other) { return other.first == row; });
      if (same == rows.end()) {
        rows.emplace_back(row, target.name);
      } else {
        same->second += base::Cat(", ", target.name);
      }
    }
    for (const auto& [row, targets] : rows) table += base::Cat(row, targets, " |\n");
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
