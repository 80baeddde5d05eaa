// Kernels of convolutions: the instructions in their PTX, and the schedules that are refused.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "compiler/compile.h"

namespace laneshift::compiler {
namespace {

std::vector<std::string> LinesOf(const char* problem, const char* schedule) {
  const target::Target& target = target::NamedTarget("sm_100a");
  const auto program = BuildProgram(*ParseProblem(problem), ParseSchedule(schedule)->value, target);
  EXPECT_TRUE(program.has_value()) << program.error().message;
  if (!program) return {};
  const auto module = EmitPtx(*program, target);
  EXPECT_TRUE(module.has_value()) << module.error().message;
  if (!module) return {};
  std::vector<std::string> lines;
  for (const std::string_view line : base::Split(module->ptx, '\n')) lines.emplace_back(line);
  return lines;
}

bool Holds(const std::string& line, std::string_view word) { return line.find(word) != std::string::npos; }

int Count(const std::vector<std::string>& lines, std::string_view word) {
  return static_cast<int>(
      std::count_if(lines.begin(), lines.end(), [&](const std::string& line) { return Holds(line, word); }));
}

// From the first full copy to the last product, both included.
std::vector<std::string> ChainOf(const std::vector<std::string>& lines) {
  const auto first = std::find_if(lines.begin(), lines.end(),
                                  [](const std::string& line) { return Holds(line, "tcgen05.cp.cta_group::1.128x"); });
  const auto last =
      std::find_if(lines.rbegin(), lines.rend(), [](const std::string& line) { return Holds(line, "tcgen05.mma."); });
  EXPECT_LT(first, last.base());
  return first < last.base() ? std::vector<std::string>(first, last.base()) : std::vector<std::string>();
}

struct Chain {
  const char* problem;
  const char* schedule;
  int filter_columns, groups, phases;
  int idle;  // products between two shifts of one column
};

class LaneShiftPtx : public testing::TestWithParam<Chain> {};

// The body of the loop over channel blocks and filter rows is one chain: with 64 bf16 channels a tile is four groups of
// 32 bytes. A phase of a stride has its own chain.
TEST_P(LaneShiftPtx, HoldsOneChainForEachBlockAndFilterRow) {
  const Chain& c = GetParam();
  const std::vector<std::string> lines = LinesOf(c.problem, c.schedule);
  const std::vector<std::string> chain = ChainOf(lines);
  const int moves = c.filter_columns - c.phases + c.idle;
  EXPECT_EQ(Count(lines, "tcgen05.cp.cta_group::1.128x256b"), c.phases * c.groups);
  EXPECT_EQ(Count(chain, "tcgen05.shift.cta_group::1.down"), moves * c.groups);
  EXPECT_EQ(Count(chain, "tcgen05.cp.cta_group::1.4x256b"), moves * c.groups);
  EXPECT_EQ(Count(lines, "tcgen05.shift."), moves * c.groups) << "outside of the chain";
  EXPECT_EQ(Count(lines, "tcgen05.cp."), (c.phases + moves) * c.groups) << "outside of the chain";
  EXPECT_GE(Count(chain, "tcgen05.mma."), c.filter_columns * c.groups);
}

// Inside of the chain the issuing thread waits only for filters (and with several phases for a free operand).
TEST_P(LaneShiftPtx, WaitsForNothingInsideOfTheChain) {
  const Chain& c = GetParam();
  const std::vector<std::string> chain = ChainOf(LinesOf(c.problem, c.schedule));
  EXPECT_EQ(Count(chain, "mbarrier.try_wait"), c.filter_columns + (c.phases - 1));
  EXPECT_EQ(Count(chain, "mbarrier.test_wait"), 0);
  EXPECT_EQ(Count(chain, "tcgen05.wait"), 0);
  EXPECT_EQ(Count(chain, "bar.sync"), 0);
  EXPECT_EQ(Count(chain, "bar.warp.sync"), 0);
}

INSTANTIATE_TEST_SUITE_P(All, LaneShiftPtx,
                         testing::Values(Chain{"conv n=1 h=28 w=28 c=64 k=64 r=3 s=3 pad=1",
                                               "tile=128x64x64 reuse=lane_shift d_store=direct", 3, 4, 1, 0},
                                         Chain{"conv n=1 h=28 w=28 c=128 k=64 r=5 s=7 pad=1",
                                               "tile=128x64x64 reuse=lane_shift d_store=direct", 7, 4, 1, 0},
                                         Chain{"conv n=1 h=28 w=28 c=128 k=32 r=3 s=3 pad=1",
                                               "tile=128x32x128 stages=2 reuse=lane_shift d_store=direct", 3, 8, 1, 0},
                                         Chain{"conv n=1 h=28 w=28 c=64 k=32 r=3 s=3 pad=1 dilation=2",
                                               "tile=128x32x64 reuse=lane_shift d_store=direct", 3, 4, 1, 2},
                                         Chain{"conv n=1 h=28 w=28 c=64 k=32 r=3 s=3 pad=1 stride=2",
                                               "tile=128x32x64 reuse=lane_shift d_store=direct", 3, 4, 2, 0}));

// MMAs that shift their lanes: S - 1 of them in a chain (and an idle one for each further lane), the others none; no
// shift, no refresh, and no waits except for filters.
class FusedShiftPtx : public testing::TestWithParam<Chain> {};

TEST_P(FusedShiftPtx, MovesLanesOnlyByProducts) {
  const Chain& c = GetParam();
  const std::vector<std::string> lines = LinesOf(c.problem, c.schedule);
  const std::vector<std::string> chain = ChainOf(lines);
  const int moves = c.filter_columns - c.phases + c.idle;
  EXPECT_EQ(Count(lines, "tcgen05.cp.cta_group::1.128x256b"), c.phases * c.groups);
  EXPECT_EQ(Count(lines, "tcgen05.cp."), c.phases * c.groups) << "a refresh";
  EXPECT_EQ(Count(lines, "tcgen05.shift."), 0);
  EXPECT_EQ(Count(chain, ".ashift"), moves * c.groups);
  EXPECT_EQ(Count(chain, "tcgen05.mma."), (c.filter_columns + c.idle) * c.groups);
  EXPECT_EQ(Count(chain, "mbarrier.try_wait"), c.filter_columns + (c.phases - 1));
  EXPECT_EQ(Count(chain, "tcgen05.wait") + Count(chain, "bar.") - Count(chain, "mbar."), 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, FusedShiftPtx,
    testing::Values(Chain{"conv n=1 h=28 w=28 c=64 k=64 r=3 s=3 pad=1",
                          "tile=128x64x64 reuse=lane_shift shift=fused d_store=direct", 3, 4, 1, 0},
                    Chain{"conv n=1 h=28 w=28 c=128 k=64 r=5 s=7 pad=1",
                          "tile=128x64x64 reuse=lane_shift shift=fused d_store=rows", 7, 4, 1, 0},
                    Chain{"conv n=1 h=28 w=28 c=64 k=32 r=3 s=3 pad=1 dilation=2",
                          "tile=128x32x64 reuse=lane_shift shift=fused d_store=direct", 3, 4, 1, 2},
                    Chain{"conv n=1 h=28 w=28 c=64 k=32 r=3 s=3 pad=1 stride=2",
                          "tile=128x32x64 reuse=lane_shift shift=fused d_store=direct", 3, 4, 2, 0}));

// A mask of lanes on the MMAs of the taps around the output pixel, none on that of the pixel itself.
TEST(MaskedBorderPtx, LeavesLanesOutOfEveryColumnButTheCentre) {
  constexpr const char* kProblem = "conv n=1 h=28 w=28 c=64 k=64 r=3 s=5 pad=1,2";
  const auto masked = [](const std::vector<std::string>& lines) {
    return std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
      return Holds(line, "tcgen05.mma.") && line.find('{') != std::string::npos;
    });
  };
  for (const char* schedule :
       {"tile=128x64x64 reuse=row_offset border=mask", "tile=128x64x64 reuse=lane_shift border=mask"}) {
    const std::vector<std::string> lines = LinesOf(kProblem, schedule);
    EXPECT_EQ(Count(lines, "tcgen05.mma."), 5 * 4) << schedule;
    EXPECT_EQ(masked(lines), 4 * 4) << schedule;
  }
  EXPECT_EQ(masked(LinesOf(kProblem, "tile=128x64x64 reuse=row_offset border=zeros d_store=rows")), 0);
}

TEST(LaneShiftPtx, OtherModesHaveNoChain) {
  for (const char* schedule : {"tile=128x64x64 reuse=im2col", "tile=128x64x64 reuse=row_offset d_store=direct"}) {
    const std::vector<std::string> lines = LinesOf("conv n=1 h=28 w=28 c=64 k=64 r=3 s=3 pad=1", schedule);
    EXPECT_EQ(Count(lines, "tcgen05.shift") + Count(lines, "tcgen05.cp."), 0) << schedule;
    EXPECT_GT(Count(lines, "tcgen05.mma."), 0) << schedule;
  }
}

TEST(CheckConvSchedule, NamesTheRule) {
  const std::tuple<const char*, const char*, const char*, const char*> cases[] = {
      {"sm_100a", "conv w=9 c=64 k=64 s=3", "reuse=none", "use reuse=im2col"},
      {"sm_100a", "conv w=9 c=64 k=64 s=3", "tile=128x64x8 reuse=im2col", "power of two from 16 to 256"},
      {"sm_100a", "conv w=9 c=64 k=64 s=3", "tile=128x64x16 reuse=row_offset", "rows must be of 64 bytes or more"},
      {"sm_100a", "conv w=9 c=64 k=64 s=3", "tile=128x64x32 reuse=lane_shift", "single rows of 128 bytes"},
      {"sm_100a", "conv w=9 c=64 k=64 s=3", "tile=64x64x64 reuse=lane_shift", "tile m=128 instead of 64"},
      {"sm_100a", "conv w=9 c=64 k=64 s=3", "reuse=row_offset a_load=copy", "use a_load=tma or reuse=im2col"},
      {"sm_100a", "conv w=9 c=64 k=64 s=3", "reuse=row_offset filter_stages=1", "filter_stages=1"},
      {"sm_100a", "conv w=300 c=64 k=64 s=17", "reuse=row_offset", "unrolls the 17 columns"},
      {"sm_100a", "conv w=300 c=64 k=64 s=2 dilation=130", "reuse=row_offset", "258 positions in a tile"},
      {"sm_90a", "conv w=9 c=64 k=64 s=3", "tile=64x64x64 acc=1 reuse=lane_shift", "use reuse=row_offset"},
      {"sm_100a", "conv h=9 w=9 c=64 k=64 r=3 s=3 w_row=200", "reuse=im2col", "not at a constant stride"},
      {"sm_100a", "gemm m=64 n=64 k=64", "reuse=im2col", "use reuse=none"},
      {"sm_100a", "gemm m=64 n=64 k=64", "shift=fused", "use reuse=lane_shift or shift=separate"},
      {"sm_100a", "gemm m=64 n=64 k=64", "border=mask", "use reuse=row_offset or border=zeros"},
      {"sm_100a", "conv w=9 c=64 k=64 s=3 pad=1", "reuse=row_offset shift=fused", "use reuse=lane_shift or shift"},
      {"sm_100a", "conv w=300 c=64 k=64 s=5 dilation=8", "reuse=lane_shift shift=fused", "leaves 32 stale lanes"},
      {"sm_100a", "conv w=9 c=64 k=64 s=3 pad=1", "reuse=im2col border=mask", "use reuse=row_offset or border=zeros"},
      {"sm_100a", "conv w=9 c=64 k=64 s=3", "reuse=row_offset border=mask", "rows of 9 give 7 at stride 1"},
      {"sm_100a", "conv w=9 c=64 k=64 s=3 pad=1 stride=2", "reuse=row_offset border=mask",
       "rows of 9 give 5 at stride 2"},
      {"sm_100a", "conv w=9 c=64 k=64 s=3 pad=1:3 dilation=2", "reuse=row_offset border=mask", "use border=zeros"},
      {"sm_100a", "conv w=9 c=64 k=64 s=3 pad=1", "tile=64x64x64 reuse=row_offset border=mask", "tile m=128 instead"},
      {"sm_100a", "conv w=9 c=64 k=64 s=3 pad=1", "reuse=lane_shift shift=fused border=mask", "use shift=separate or"},
      {"sm_100a", "conv w=90 c=64 k=64 s=3 pad=32 dilation=32", "reuse=row_offset border=mask", "reach of 32 columns"},
      {"sm_100a", "conv w=1 c=64 k=64 s=5 pad=2", "reuse=row_offset border=mask", "smaller than the padding"},
      {"sm_90a", "conv w=9 c=64 k=64 s=3 pad=1", "tile=64x64x64 acc=1 reuse=row_offset border=mask",
       "which sm_90a has not"},
  };
  for (const auto& [target, problem, schedule, message] : cases) {
    const auto parsed = ParseProblem(problem);
    ASSERT_TRUE(parsed.has_value()) << problem << ": " << parsed.error().message;
    const auto valid = ValidateSchedule(*parsed, ParseSchedule(schedule)->value, target::NamedTarget(target));
    ASSERT_FALSE(valid.has_value()) << schedule;
    EXPECT_EQ(valid.error().code, ErrorCode::kUnsupported) << schedule;
    EXPECT_NE(valid.error().message.find(message), std::string::npos) << valid.error().message;
  }
}

}  // namespace
}  // namespace laneshift::compiler
