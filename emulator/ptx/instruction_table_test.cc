// Guards of the instruction table: vocabulary matching, ambiguity, and the messages for what is not supported.

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "base/text.h"
#include "emulator/emulated_test_device.h"
#include "emulator/ptx/ptx_instructions.h"

namespace laneshift::emulator {
namespace {

std::pair<std::string_view, std::vector<std::string_view>> SplitOpcode(std::string_view opcode) {
  std::vector<std::string_view> parts = base::Split(opcode, '.');
  const std::string_view root = parts[0];
  parts.erase(parts.begin());
  return {root, parts};
}

// Opcode strings of kernels that other people wrote; tests/emulator/opcodes.txt says where they come from.
std::vector<std::string> Corpus() {
  std::istringstream lines(ReadTestFile("opcodes.txt"));
  std::vector<std::string> opcodes;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != '#') opcodes.push_back(line);
  }
  return opcodes;
}

TEST(InstructionTable, NoOpcodeMatchesTwoRows) {
  const auto corpus = Corpus();
  ASSERT_GT(corpus.size(), 400u);
  for (const std::string& opcode : corpus) {
    const auto [root, suffixes] = SplitOpcode(opcode);
    const auto found = FindAll(root, suffixes);
    EXPECT_LE(found.size(), 1u) << opcode << ": " << (found.size() > 1 ? found[1].row->pattern : "");
  }
}

// What the table does not have yet is listed, so that adding a row without shortening the list fails.
TEST(InstructionTable, OnlyTheListedOpcodesAreMissing) {
  const std::set<std::string> listed = {
      "mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3"};
  for (const std::string& opcode : Corpus()) {
    const auto [root, suffixes] = SplitOpcode(opcode);
    EXPECT_EQ(FindAll(root, suffixes).empty(), listed.contains(opcode)) << opcode;
  }
}

TEST(InstructionTable, SuffixesBindByVocabulary) {
  const auto a = FindInstruction("stmatrix", {"sync", "aligned", "x4", "trans", "m8n8", "shared", "b16"});
  const auto b = FindInstruction("stmatrix", {"sync", "aligned", "m8n8", "x4", "trans", "shared::cta", "b16"});
  ASSERT_TRUE(a.has_value());
  ASSERT_TRUE(b.has_value());
  EXPECT_EQ(a->row, b->row);
}

TEST(InstructionTable, NamesTheSuffixWithoutMeaning) {
  const auto found = FindInstruction("add", {"sideways", "f32"});
  ASSERT_FALSE(found.has_value());
  EXPECT_NE(found.error().message.find("'.sideways'"), std::string::npos) << found.error().message;
  EXPECT_FALSE(FindInstruction("frobnicate", {"b32"}).has_value());
}

}  // namespace
}  // namespace laneshift::emulator
