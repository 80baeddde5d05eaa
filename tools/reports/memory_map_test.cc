#include "tools/reports/memory_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

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

// What each kind of kernel holds in Tensor Memory, in the notation of layouts.
TEST(MemoryMap, LayoutsOfTensorMemory) {
  struct Case {
    const char *problem, *schedule;
    std::vector<std::string> regions;
  };
  const Case cases[] = {
      {"gemm m=512 n=512 k=512",
       "tile=128x256x64 cluster=1x1 acc=2",
       {"acc[0]: f32 accumulator S[(128,256):(1@TLane,1@TCol)] + 0@TCol",
        "acc[1]: f32 accumulator S[(128,256):(1@TLane,1@TCol)] + 256@TCol"}},
      {"gemm m=512 n=512 k=512",
       "tile=128x256x64 cluster=2x1 ctas=2 acc=1",
       {"acc[0]: f32 accumulator S[(2,128,256):(1@CTA,1@TLane,1@TCol)] + 0@TCol"}},
      // Four scale factors of a block in a column, and each block four times.
      {"gemm m=512 n=512 k=512 a=e4m3 b=e4m3 scale=mx",
       "tile=128x256x128 cluster=1x1 rows=m",
       {"scales[0] of A: ue8m0 scale factors S[(4,32,4):(1@TCol,1@TLane,1@TByte)] + R[4:32@TLane] + 0@TCol",
        "scales[0] of B: ue8m0 scale factors S[(8,32,4):(1@TCol,1@TLane,1@TByte)] + R[4:32@TLane] + 4@TCol"}},
      // Both CTAs of a pair hold all scale factors of B.
      {"gemm m=512 n=512 k=512 a=e4m3 b=e4m3 scale=mx",
       "tile=128x256x128 cluster=2x1 ctas=2",
       {"scales[0] of A: ue8m0 scale factors S[(2,4,32,4):(1@CTA,1@TCol,1@TLane,1@TByte)] + R[4:32@TLane] + "
        "0@TCol",
        "scales[0] of B: ue8m0 scale factors S[(8,32,4):(1@TCol,1@TLane,1@TByte)] + R[2:1@CTA] + R[4:32@TLane] + "
        "4@TCol"}},
      {"gemm m=512 n=512 k=512 sparse=a",
       "tile=128x128x128 cluster=1x1 rows=m",
       {"metadata[0]: metadata of A S[(128,4):(1@TLane,1@TCol)] + 0@TCol"}},
      {"gemm m=512 n=512 k=512 a=e2m1 scale=nv sparse=a",
       "tile=128x128x256 cluster=1x1 rows=m",
       {"scales[0] of A: ue4m3 scale factors S[(4,32,2,4):(1@TCol,1@TLane,4@TCol,1@TByte)] + R[4:32@TLane] + 0@TCol",
        "scales[0] of B: ue4m3 scale factors S[(4,32,2,4):(1@TCol,1@TLane,4@TCol,1@TByte)] + R[4:32@TLane] + 8@TCol",
        "scales[0] of A's metadata: metadata of A S[(128,4):(1@TLane,1@TCol)] + 16@TCol"}},
      {"conv n=1 h=28 w=28 c=64 k=64 r=3 s=3 pad=1",
       "tile=128x64x64 reuse=lane_shift",
       {"a[0]: bf16 A S[(128,32,2):(1@TLane,1@TCol,2@TByte)] + 0@TCol"}},
      {"gemm m=64 n=512 k=512",
       "tile=64x128x64 rows=m cluster=1x1",
       {"acc[0]: f32 accumulator S[(4,16,128):(32@TLane,1@TLane,1@TCol)] + 0@TCol"}},
  };
  for (const Case& c : cases) {
    ProblemReader reader = ProblemReader::ForLooking("sm_100a", {.store_directory = ":memory:"});
    const auto compilation = CompileProblem(*ParseProblem(c.problem), c.schedule, Keep::kPtx, reader);
    ASSERT_TRUE(compilation.has_value()) << c.schedule << ": " << compilation.error().message;
    const std::vector<Region> regions = TensorRegions(compilation->Product().program);
    for (const std::string& expected : c.regions) {
      EXPECT_TRUE(std::any_of(regions.begin(), regions.end(), [&](const Region& r) { return r.what == expected; }))
          << c.problem << " " << c.schedule << ": no " << expected << ", but " << testing::PrintToString([&] {
               std::string all;
               for (const Region& region : regions) all += region.what + "\n";
               return all;
             }());
    }
    int64_t end = 0;
    for (const Region& region : regions) {
      EXPECT_GE(region.begin, end) << region.what;
      end = region.begin + region.size;
    }
    EXPECT_LE(end, compilation->Product().program.tmem_columns);
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
