#include "tools/reports/memory_map.h"

#include <gtest/gtest.h>

#include "tools/compilation.h"

namespace laneshift::tools {
namespace {

TEST(Census, CountsOpcodesAndNothingElse) {
  const auto census = Census(
      ".version 8.6\n.reg .b32 %r<3>;\n$L__BB0_1:\n  add.s32 %r1, %r2, 1;\n\t@%p1 bra $L__BB0_1;\n  add.s32 %r2, %r2, "
      "1; // x\n"
      "  { mbarrier.inval.shared.b64 [%r1]; }\n  ret;\n");
  std::string text;
  for (const OpcodeCount& row : census) text += row.opcode + "=" + std::to_string(row.count) + " ";
  EXPECT_EQ(text, "add.s32=2 bra=1 mbarrier.inval.shared.b64=1 ret=1 ");
}

TEST(MemoryMap, RegionsOfACompiledProgramDoNotOverlapAndFit) {
  const auto problem = ParseProblem("gemm m=256 n=256 k=256");
  for (const char* target : {"sm_100a", "sm_90a"}) {
    ProblemReader reader = ProblemReader::ForLooking(target, {.store_directory = ":memory:"});
    const auto compilation = CompileProblem(*problem, "", Keep::kPtx, reader);
    ASSERT_TRUE(compilation.has_value()) << compilation.error().message;
    const ir::Program& program = compilation->Product().program;
    const auto regions = SharedRegions(program);
    ASSERT_FALSE(regions.empty());
    int64_t end = 0;
    for (const Region& region : regions) {
      EXPECT_GE(region.begin, end) << region.what;
      EXPECT_GT(region.size, 0) << region.what;
      end = region.begin + region.size;
    }
    EXPECT_LE(end, program.smem_bytes);
    EXPECT_EQ(TensorRegions(program).empty(), program.tmem_columns == 0);
  }
}

TEST(MemoryMap, DrawsWhatIsFree) {
  const std::string drawn = DrawMap({{0, 50, "first"}, {75, 25, "last"}}, 100, "byte", {});
  EXPECT_NE(drawn.find("first"), std::string::npos);
  EXPECT_NE(drawn.find("  50    25"), std::string::npos) << drawn;
  EXPECT_NE(drawn.find("(free)"), std::string::npos);
}

}  // namespace
}  // namespace laneshift::tools
