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

// The lines do not change the code, and name the op that an instruction comes from.
TEST(LineTable, NamesTheOpOfEachInstruction) {
  for (const LinedCase& c : kLined) {
    const target::Target& target = target::NamedTarget(c.target);
    const auto program = BuildProgram(*ParseProblem(c.problem), ParseSchedule(c.schedule)->value, target);
    ASSERT_TRUE(program.has_value()) << program.error().message;
    const auto plain = EmitPtx(*program, target);
    const auto lined = EmitLinedPtx(*program, target);
    ASSERT_TRUE(plain.has_value() && lined.has_value());
    EXPECT_EQ(lined->ptx, plain->ptx) << c.problem;
    const std::string text = ir::PrintProgram(*program);
    const std::vector<std::string_view> ops = base::Split(text, '\n'), ptx = base::Split(lined->ptx, '\n');
    int found = 0;
    std::set<int> used;
    for (size_t i = 0; i < lined->program_lines.size(); ++i) {
      const int line = lined->program_lines[i];
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
  }
}

}  // namespace
}  // namespace laneshift::compiler
