#include "compiler/line_table.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "base/text.h"

namespace laneshift::compiler {
namespace {

struct LinedCase {
  const char *target, *problem, *schedule, *instruction, *op;
};

constexpr LinedCase kLined[] = {
    {"sm_100a", "gemm m=512 n=512 k=512", "tile=128x256x64 cluster=2x1 ctas=2", "tcgen05.mma", "mma "},
    {"sm_90a", "gemm m=512 n=512 k=512", "tile=128x128x64 acc=1 math=2", "wgmma.mma_async", "mma.registers "},
    {"sm_100a", "conv n=1 h=28 w=28 c=64 k=64 r=3 s=3 pad=1", "tile=128x64x64 reuse=lane_shift d_store=rows",
     "tcgen05.shift", "tensor.shift "},
};

// The IR carries no debug metadata, and most lines that became PTX.
void ExpectLinesOfLlvmIr(const LinedCode& lined, const std::set<int>& of_ptx) {
  const std::vector<std::string_view> text = base::Split(lined.llvm_ir, '\n');
  EXPECT_EQ(lined.llvm_ir.find("!dbg"), std::string::npos);
  EXPECT_EQ(lined.llvm_ir.find("!DILocation"), std::string::npos);
  std::set<int> of_ir;
  for (size_t i = 0; i < lined.llvm_lines.size(); ++i) {
    if (lined.llvm_lines[i] == 0) continue;
    of_ir.insert(lined.llvm_lines[i]);
    EXPECT_TRUE(text[i].starts_with("  ")) << "not an instruction: " << text[i];
  }
  for (const int line : of_ptx) EXPECT_TRUE(line == 0 || of_ir.contains(line)) << line;
}

// The lines do not change the code, and name the op that an instruction comes from.
TEST(LineTable, NamesTheOpOfEachInstruction) {
  for (const LinedCase& c : kLined) {
    const target::Target& target = target::NamedTarget(c.target);
    const auto program = BuildProgram(*ParseProblem(c.problem), ParseSchedule(c.schedule)->value, target);
    ASSERT_TRUE(program.has_value()) << program.error().message;
    const auto plain = EmitPtx(*program, target);
    const auto lined = EmitLinedCode(*program, target, {.with_llvm_ir = true});
    ASSERT_TRUE(plain.has_value() && lined.has_value());
    EXPECT_EQ(lined->ptx, plain->ptx) << c.problem;
    const std::string text = ir::PrintProgram(*program);
    const std::vector<std::string_view> ops = base::Split(text, '\n'), ptx = base::Split(lined->ptx, '\n');
    int found = 0;
    std::set<int> used;
    for (size_t i = 0; i < lined->ptx_lines.size(); ++i) {
      const int line = lined->ptx_lines[i];
      ASSERT_LE(line, static_cast<int>(ops.size()));
      used.insert(line);
      if (ptx[i].find(c.instruction) == std::string_view::npos) continue;
      ++found;
      ASSERT_GT(line, 0) << ptx[i];
      EXPECT_NE(ops[static_cast<size_t>(line) - 1].find(c.op), std::string_view::npos)
          << ptx[i] << " comes from " << ops[static_cast<size_t>(line) - 1];
    }
    EXPECT_GT(found, 0) << c.instruction;
    EXPECT_GT(used.size(), 20u);
    ExpectLinesOfLlvmIr(*lined, used);
  }
}

}  // namespace
}  // namespace laneshift::compiler
