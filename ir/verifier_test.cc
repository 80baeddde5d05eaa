#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/text.h"
#include "ir/program.h"

namespace laneshift::ir {
namespace {

std::string ReadGolden(std::string_view name) {
  std::ifstream in(base::Cat(LANESHIFT_SOURCE_DIR "/tests/golden/ir/", name, ".tir"));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

constexpr std::string_view kScheduled = "gemm_sm_100a_scheduled";
constexpr std::string_view kLoweredGemm = "gemm_sm_100a_lowered";
constexpr std::string_view kHopper = "gemm_sm_90a_scheduled";
constexpr std::string_view kHopperLowered = "gemm_sm_90a_lowered";
constexpr std::string_view kShared = "gemm_shared_sm_90a_scheduled";
constexpr std::string_view kClusterK = "gemm_cluster_k_sm_90a_scheduled";
constexpr std::string_view kClusterKLowered = "gemm_cluster_k_sm_100a_lowered";
constexpr std::string_view kPingpong = "gemm_pingpong_sm_90a_scheduled";
constexpr std::string_view kPingpongLowered = "gemm_pingpong_sm_90a_lowered";
constexpr std::string_view kEarly = "gemm_begins_early_sm_90a_scheduled";
constexpr std::string_view kEarlyLowered = "gemm_begins_early_sm_90a_lowered";
constexpr std::string_view kResident = "gemm_resident_sm_90a_scheduled";
constexpr std::string_view kResidentColumns = "gemm_resident_columns_sm_90a_lowered";
constexpr std::string_view kResidentLowered = "gemm_resident_sm_90a_lowered";
constexpr std::string_view kAsync = "gemm_async_sm_90a_scheduled";
constexpr std::string_view kLines = "gemm_reductions_sm_100a_scheduled";
constexpr std::string_view kReductions = "reductions_sm_90a_lowered";
constexpr std::string_view kPack = "pack_sm_90a_lowered";
constexpr std::string_view kWords = "gemm_words_sm_90a_scheduled";
constexpr std::string_view kPanels = "gemm_panels_sm_90a_scheduled";
constexpr std::string_view kGrouped = "gemm_grouped_sm_90a_scheduled";
constexpr std::string_view kGroupedBulk = "gemm_grouped_bulk_sm_90a_scheduled";
constexpr std::string_view kGroupedBlocks = "gemm_grouped_blocks_sm_90a_scheduled";
constexpr std::string_view kDividedRows = "gemm_divided_rows_sm_90a_scheduled";
constexpr std::string_view kDividedRowsLowered = "gemm_divided_rows_sm_90a_lowered";
constexpr std::string_view kMaskedGroups = "gemm_masked_sm_100a_scheduled";
constexpr std::string_view kRows = "gemm_rows_sm_90a_scheduled";
constexpr std::string_view kRowScaled = "gemm_row_scaled_sm_90a_scheduled";
constexpr std::string_view kParts = "gemm_parts_sm_100a_scheduled";
constexpr std::string_view kPartsLowered = "gemm_parts_sm_90a_lowered";
constexpr std::string_view kStores = "gemm_stored_factors_sm_100a_scheduled";
constexpr std::string_view kStoresLowered = "gemm_stored_factors_sm_100a_lowered";
constexpr std::string_view kSlotScales = "gemm_slot_scales_sm_90a_scheduled";
constexpr std::string_view kVectorScales = "gemm_vector_scales_sm_90a_scheduled";
constexpr std::string_view kWhole = "gemm_whole_sm_90a_scheduled";
constexpr std::string_view kWholeLowered = "gemm_whole_sm_90a_lowered";
constexpr std::string_view kColumnScales = "gemm_slot_scales_rows_n_sm_90a_scheduled";
constexpr std::string_view kSharers = "gemm_sharers_sm_90a_scheduled";
constexpr std::string_view kQuantized = "gemm_quantized_sm_100a_scheduled";
constexpr std::string_view kPixels = "conv_im2col_sm_100a_scheduled";
constexpr std::string_view kPatch = "conv_patch_sm_90a_scheduled";
constexpr std::string_view kGather = "conv_gather_sm_90a_scheduled";
constexpr std::string_view kOffset = "conv_row_offset_sm_90a_scheduled";
constexpr std::string_view kDepthwise = "conv_depthwise_sm_90a_scheduled";
constexpr std::string_view kDepthwiseGradient = "conv_depthwise_gradient_sm_100a_scheduled";
constexpr std::string_view kGemv = "gemm_direct_sm_100a_scheduled";
constexpr std::string_view kScaledGemv = "gemm_direct_nv_sm_100a_scheduled";
constexpr std::string_view kShift = "conv_lane_shift_sm_100a_scheduled";
constexpr std::string_view kShiftLowered = "conv_lane_shift_sm_100a_lowered";
constexpr std::string_view kFused = "conv_lane_shift_fused_sm_100a_scheduled";
constexpr std::string_view kMasked = "conv_row_offset_masked_sm_100a_scheduled";

Status Verify(const Program& program) {
  const auto target = target::FindTarget(program.target);
  if (!target) return target.error();
  return VerifyProgram(program, **target);
}

TEST(Verifier, AcceptsTheGoldenPrograms) {
  for (const std::string_view name : {kScheduled,
                                      kLoweredGemm,
                                      kHopper,
                                      kHopperLowered,
                                      kShared,
                                      kPixels,
                                      kGather,
                                      kOffset,
                                      kShift,
                                      kShiftLowered,
                                      kFused,
                                      kMasked,
                                      kPingpong,
                                      kPingpongLowered,
                                      kPack,
                                      kReductions,
                                      kLines,
                                      kWords,
                                      kResident,
                                      kResidentColumns,
                                      kResidentLowered,
                                      kPanels,
                                      kSharers,
                                      kGrouped,
                                      kGroupedBulk,
                                      kGroupedBlocks,
                                      kDividedRows,
                                      kDividedRowsLowered,
                                      kMaskedGroups,
                                      kQuantized,
                                      kParts,
                                      kPartsLowered,
                                      kDepthwise,
                                      kDepthwiseGradient,
                                      kSlotScales,
                                      kVectorScales,
                                      kWhole,
                                      kWholeLowered,
                                      kGemv,
                                      kScaledGemv,
                                      kColumnScales,
                                      kEarly,
                                      kEarlyLowered,
                                      kPatch,
                                      kRows,
                                      kRowScaled,
                                      kClusterK,
                                      kClusterKLowered,
                                      kStores,
                                      kStoresLowered}) {
    const auto program = ParseProgram(ReadGolden(name));
    ASSERT_TRUE(program.has_value()) << name << ":" << program.error().message;
    const Status status = Verify(*program);
    EXPECT_TRUE(status.has_value()) << name << ": " << status.error().message;
  }
}

// Each case breaks one rule of a golden program by one replacement of text, and nothing before it.
struct Broken {
  int rule;
  std::string_view program;
  const char* from;
  const char* to;
  const char* message;
};

std::ostream& operator<<(std::ostream& out, const Broken& broken) {
  return out << "rule " << broken.rule << ", " << broken.message;
}

class BrokenProgram : public testing::TestWithParam<Broken> {};

TEST_P(BrokenProgram, IsRefusedByItsRule) {
  std::string text = ReadGolden(GetParam().program);
  const std::string from = GetParam().from;
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << "the golden program has no '" << from << "'";
  text.replace(at, from.size(), GetParam().to);
  const auto program = ParseProgram(text);
  ASSERT_TRUE(program.has_value()) << program.error().message;
  const Status status = Verify(*program);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kInternal);
  EXPECT_NE(status.error().message.find(base::Cat("rule ", GetParam().rule, ": ")), std::string::npos)
      << status.error().message;
  EXPECT_NE(status.error().message.find(GetParam().message), std::string::npos) << status.error().message;
}

// clang-format off
constexpr Broken kBroken[] = {
    {4, kStores, "stages=5 rows=128 columns=24 stored", "stages=5 rows=128 columns=24 own", "each CTA's own slots, but not a shared ring"},
    {4, kStores, "factors shared stages=4 own", "factors shared stages=4 stored", "stored by threads, but not a ring in Tensor Memory"},
    {6, kStores, "role scales kind=copy warps=8+4", "role scales kind=copy warps=8+3", "are not whole, aligned warpgroups"},
    {8, kStores, "b_scales=8 parts=2", "b_scales=8 parts=3", "part 0 of 3 has not whole blocks"},
    {8, kStores, "tile=sa0 step=4 parts=2", "tile=sa0 step=4 parts=3", "part 0 of 3 has not whole blocks"},
    {8, kStoresLowered, "barrier.expect %44 bytes=2048", "barrier.expect %44 bytes=2048 leader", "without pairs every CTA does"},
    {12, kStores, "columns=24 stored", "columns=28 stored", "does not hold 8 and 16 columns of scale factors"},
    {1, kScheduled, "threads=256", "threads=250", "threads=250 is not a multiple of 32"},
    {1, kScheduled, "threads=256", "threads=1056", "up to 1024"},
    {1, kScheduled, "tile=128x256x64", "tile=128x256x0", "tile extent 0"},
    {1, kScheduled, "role mma ", "role load ", "two roles are named 'load'"},
    {1, kScheduled, "  buffer out", "  buffer out bf16[m:32 n:64] swizzle=128 copies=2 warps=4\n  buffer out", "two buffers are named 'out'"},
    {1, kShared, "rows=n", "rows=k", "run along m or n, not k"},
    {2, kScheduled, "  param n\n", "  param m\n", "param m is declared twice"},
    {2, kScheduled, "param m\n", "param m box=bf16[m:8 k:64] swizzle=128\n", "param m is not a tensor map, but has a box"},
    {2, kScheduled, "param map_a box=bf16[m:128 k:64] swizzle=128", "param map_a", "tensor map map_a has no box"},
    {2, kScheduled, "box=bf16[n:256", "box=bf16[n:264", "264 rows, more than 256"},
    {3, kScheduled, "channel ab shared stages=4 {\n    tile a bf16[m:128 k:64]", "channel ab shared stages=4 {\n    tile a bf16[k:128 k:64]", "one axis twice"},
    {3, kScheduled, "tile a bf16[m:128 k:64]", "tile a bf16[m:128 k:72]", "rows of 144 bytes, not whole spans of 128"},
    {3, kScheduled, "tile a bf16[m:128 k:64]", "tile a bf16[m:132 k:64]", "132 rows, not a multiple of 8"},
    {3, kScheduled, "tile a bf16[m:128 k:64]", "tile a bf16[m:0 k:64]", "extents 0 and 64"},
    {3, kScheduled, "tile a bf16[m:128 k:64] swizzle=128", "tile a bf16[m:128 k:64] swizzle=none", "no swizzle, and is multiplied"},
    {4, kScheduled, "shared stages=4", "shared stages=0", "0 stages"},
    {4, kScheduled, "shared stages=4", "shared stages=4 rows=128", "has rows or columns"},
    {4, kScheduled, "rows=128 columns=256", "rows=96 columns=256", "96 rows, not 64 or 128"},
    {4, kScheduled, "rows=128 columns=256", "rows=128 columns=513", "513 columns"},
    {4, kHopper, "channel ab shared", "channel acc tensor stages=1 rows=64 columns=32\n  channel ab shared", "channel acc needs Tensor Memory, which sm_90a does not have"},
    {4, kScheduled, "shared stages=4", "shared stages=4 arrivals=1/1", "of a scheduled program has 1 arrivals"},
    {4, kLoweredGemm, "arrivals=1/4", "arrivals=1/0", "of a lowered program has 0 arrivals"},
    {4, kScheduled, "copies=2 warps=4", "copies=0 warps=4", "0 copies"},
    {5, kScheduled, "kind=mma warps=1+1", "kind=mma warps=0+1", "share warp 0"},
    {5, kScheduled, "kind=epilogue warps=4+4", "kind=epilogue warps=5+4", "warps 5+4 of a CTA of 8"},
    {5, kScheduled, "kind=load warps=0+1 elected", "kind=load warps=2+2 elected", "elects a thread of 2 warps"},
    {5, kResident, "registers=232", "registers=234", "registers=234, not a multiple of 8"},
    {5, kResident, "registers=40", "registers=96", "share a warpgroup and differ in registers"},
    {5, kResident, "registers=232", "registers=240", "the SM has 65536"},
    {6, kScheduled, "bulk.wait pending=0 buffer=out", "fence.proxy", "it is not legal in a scheduled program"},
    {6, kLoweredGemm, "advance %19", "send %19", "it is not legal in a lowered program"},
    {6, kHopper, "drain channel=ab lag=1\n", "drain channel=ab lag=1\n      fence.tensor edge=before\n", "it is not legal in a scheduled program"},
    {6, kHopper, "copy.load", "tma.load", "it is not legal in a role of kind copy"},
    {6, kScheduled, "kind=load warps=0+1 elected", "kind=load warps=0+1", "it is for one thread"},
    {6, kHopper, "kind=copy warps=1+3", "kind=copy warps=1+1 elected", "it is for whole warps"},
    {6, kHopper, "kind=math warps=4+8", "kind=math warps=4+7", "warps 4+7 are not whole, aligned warpgroups"},
    {7, kScheduled, "%3 = ceil_div %2, %0", "%3 = ceil_div %2, %5", "%5 is used before its definition"},
    {7, kScheduled, "send %32", "send %38", "%38 is used outside its region"},
    {7, kScheduled, "%18 = mul %16, %17", "%18 = less %16, %17", "is of type predicate, not index"},
    {7, kScheduled, "%40 = less %39, %37\n        mma %32, %38, %38, %40", "%72 = less %39, %37\n        mma %32, %38, %38, %72", "%40 is defined nowhere"},
    {8, kScheduled, "raster=8", "raster=0", "raster is not positive"},
    {8, kShared, "raster=8", "raster=0", "raster is not positive"},
    {8, kShared, "slices=4", "slices=0", "slices is not positive"},
    {7, kShared, " slices=4", "", "it has an operand about K if and only if tiles are cut into slices"},
    {7, kScheduled, "raster=8", "raster=8 slices=2", "it has an operand about K if and only if tiles are cut into slices"},
    {8, kShared, "slices=4", "slices=4 source=launch_control", "tiles can be cut into slices only in a static order of work"},
    {14, kShared, "slices=4", "slices=4 pingpong_roles=2", "ping-pong roles need whole tiles in a static order"},
    {8, kShared, "vector=1", "vector=2", "vector=2 is not a power of two that divides runs of 1 within 16 bytes"},
    {8, kScheduled, "step=1", "step=0", "step is not positive"},
    {8, kScheduled, "const 128", "const -1", "a constant cannot be negative"},
    {8, kHopper, "channel=ab lag=1", "channel=3 lag=1", "there is no channel 3"},
    {8, kScheduled, "tile=a operand=a", "tile=2 operand=a", "has no tile 2"},
    {8, kScheduled, "tile=a operand=a", "tile=a operand=d", "only A and B"},
    {8, kScheduled, "a=a b=b", "a=a b=3", "has no tile 3"},
    {8, kScheduled, "buffer=out", "buffer=1", "there is no buffer 1"},
    {8, kScheduled, "%2 = param m", "%2 = param alpha", "param alpha is no 32-bit integer"},
    {8, kScheduled, "by=alpha", "by=m", "param m is no float"},
    {8, kScheduled, "pending=1", "pending=-1", "pending is negative"},
    {8, kScheduled, "rows=32\n", "rows=8\n", "16 or 32 rows, not 8"},
    {8, kHopper, "axis=n", "axis=none", "a vector has an axis"},
    {8, kHopper, "operand=c", "operand=d", "its operand is c, not d"},
    {8, kHopper, "vector=2", "vector=4", "vector=4 is not a power of two that divides runs of 2 within 16 bytes"},
    {8, kHopper, "drain channel=ab lag=1", "drain channel=ab lag=0", "a drain without lag"},
    {8, kLoweredGemm, "by=warp", "inverted", "only a wait can be inverted"},
    {8, kWholeLowered, "to=n in_order", "in_order", "only a warp arrives in order, at the CTAs of a line"},
    {8, kWhole, "operand=a to=n whole", "operand=a whole", "only a multicast is of a whole tile"},
    {9, kWhole, "operand=a to=n whole", "operand=a to=n", "the box of map_a is not a column of tile a"},
    {8, kLoweredGemm, "bytes=49152", "bytes=0", "bytes is not positive"},
    {8, kPack, "tile=16x256x1", "tile=16x128x1", "is not 32 pieces of 16 bytes"},
    {8, kPack, "tile=16x256x1", "tile=18x256x1", "as many rows for each of 4 warps"},
    {9, kPack, "  param pitch_a\n", "", "param pitch_a is not declared"},
    {8, kPack, "outer=m inner=k", "outer=n inner=k", "the rows of a cannot be along this axis"},
    {8, kPack, "operand=a", "operand=d", "the rows of d cannot be along this axis"},
    {9, kPack, "  param workspace\n", "", "param workspace is not declared"},
    {9, kPack, "  param stride_b\n", "", "param stride_b is not declared"},
    {8, kLines, "axis=n", "axis=none", "partial rows are reductions of rows or columns"},
    {8, kLines, "unit=32", "unit=0", "a unit of 0 in 1"},
    {9, kLines, "  param base_e1\n", "", "param base_e1 is not declared"},
    {12, kReductions, "tile=1x32x1", "tile=1x16x1", "a tile of 1x16 is not 8 columns for each of 4 warps"},
    {9, kReductions, "  param count_partial_rows1\n", "", "param count_partial_rows1 is not declared"},
    {9, kReductions, "  param base_e0\n", "", "param base_e0 is not declared"},
    {8, kReductions, "reduction=1", "reduction=8", "there is no reduction 8"},
    {6, kReductions, "kind=copy", "kind=load", "it is not legal in a role of kind load"},
    {6, kPack, "kind=copy", "kind=load", "it is not legal in a role of kind load"},
    {9, kScheduled, "  param batch\n", "", "param batch is not declared"},
    {9, kScheduled, "  param map_b box=bf16[n:256 k:64] swizzle=128\n", "", "param map_b is not declared"},
    {9, kScheduled, "box=bf16[m:128 k:64]", "box=bf16[m:64 k:64]", "the box of map_a is not a column of tile a"},
    {9, kScheduled, "box=bf16[m:32 n:64]", "box=f16[m:32 n:64]", "the box of map_d is not a column of buffer out"},
    {9, kShared, "  param workspace\n", "", "param workspace is not declared"},
    {9, kHopper, "  param pitch_a\n", "", "param pitch_a is not declared"},
    {9, kHopper, "  param base_bias\n", "", "param base_bias is not declared"},
    {9, kHopper, "  param beta\n", "", "param beta is not declared"},
    {9, kHopper, "  param stride_d\n", "", "param stride_d is not declared"},
    {10, kScheduled, "  buffer out", "  channel idle tensor stages=1 rows=128 columns=32\n  buffer out", "no role produces channel idle"},
    {10, kHopper, "        %55 = take ab\n        %56 = const 0\n        %57 = less %56, %54\n        mma.registers %55, %55, %57 a=a b=b\n        release.late %55, %57 lag=1\n      }\n      drain channel=ab lag=1\n", "        %55 = const 0\n        %56 = const 0\n        %57 = const 0\n      }\n", "no role consumes channel ab"},
    {10, kScheduled, "        tma.load %19, %18, %11, %9 tile=b operand=b\n", "", "nothing loads tile ab.b"},
    {10, kScheduled, "        send %19\n", "        send %19\n        %72 = take ab\n        release %72\n", "it produces and consumes channel ab"},
    {10, kLoweredGemm, "arrivals=1/4", "arrivals=1/128", "empty barriers of channel acc await 128 arrivals, the roles make 4"},
    {10, kLoweredGemm, "by=warp", "by=thread", "await 4 arrivals, the roles make 128"},
    {10, kHopperLowered, "      barrier.arrive %91 side=empty by=warp", "      barrier.arrive %91 side=empty", "it arrives 256 times, elsewhere 8 times"},
    {11, kScheduled, "        send %19\n", "", "slot %19 is put, but not sent"},
    {11, kScheduled, "        release %38\n", "", "slot %38 is taken, but not released"},
    {11, kScheduled, "        send %19\n", "        send %19\n        send %19\n", "%19 is used after it was sent"},
    {11, kScheduled, "send %19", "release %19", "was put, not taken"},
    {11, kScheduled, "release %38", "send %38", "was taken, not put"},
    {11, kScheduled, "        release %38\n", "        release %38\n        send %32\n", "was opened in another region"},
    {11, kScheduled, "      release %53\n", "      %72 = take acc\n      %73 = take acc\n      release %72\n      release %73\n      release %53\n", "it holds 3 slots of channel acc"},
    {11, kHopper, "      drain channel=ab lag=1\n", "", "with lag 1 and drains lag 0"},
    {11, kHopper, "release.late %55, %57 lag=1", "release.late %55, %57 lag=5", "lag 5 is not at least 1 and below the 5 stages of the channel"},
    {8, kAsync, "tile=a operand=a piece=8", "tile=a operand=a piece=6", "no asynchronous copy is of 6 bytes"},
    {8, kAsync, "tile=a operand=a piece=8", "tile=a operand=a transposed piece=8", "they transpose none"},
    {8, kScheduled, "tile=b operand=b", "tile=b operand=b piece=8", "only threads copy pieces of rows"},
    {11, kAsync, "send.late %19", "send %19", "asynchronous copies into it are on their way"},
    {11, kAsync, "    drain.sends ab\n", "", "the slots of channel ab that it sends late are not drained"},
    {11, kAsync, "      for %16", "      drain.sends ab\n      for %16", "it is sent after the late sends of its channel were drained"},
    {11, kScheduled, "%32 = put acc", "%32 = take acc", "accumulates into a slot that was taken"},
    {11, kScheduled, "%38 = take ab", "%38 = put ab", "reads slot %38, which was put"},
    {11, kScheduled, "%53 = take acc", "%53 = put acc", "it reads a slot that was put"},
    {11, kScheduled, "%19 = put ab", "%19 = take ab", "it fills slot %19, which was taken"},
    {11, kLoweredGemm, "bytes=49152\n", "bytes=49152\n        barrier.expect %19 bytes=49152\n", "slot %19 expects bytes twice"},
    {11, kLoweredGemm, "bytes=49152", "bytes=49151", "expects 49151 bytes, but bulk copies bring 49152"},
    {11, kLoweredGemm, "        advance %19\n", "        advance %19\n        barrier.arrive %19 side=full\n", "%19 is used after it was sent"},
    {12, kScheduled, "operands=bf16", "operands=f16", "tile a is not f16 of m=128"},
    {12, kScheduled, "tile=128x256x64", "tile=128x256x32", "and k=32"},
    {12, kScheduled, "a=a b=b", "a=b b=a", "tile b is not bf16 of m=128"},
    {12, kScheduled, "rows=128 columns=256", "rows=128 columns=128", "accumulator acc is not 128 x 256"},
    {12, kScheduled, "columns=64 fragment=row_per_lane", "columns=64 fragment=mma_16x8", "read as row_per_lane"},
    {12, kScheduled, "columns=64 fragment", "columns=264 fragment", "columns 0+264 are not inside the 256"},
    {12, kScheduled, "%60 columns=64", "%60 columns=128", "a fragment of 32 x 128 does not fill a copy of buffer out"},
    {12, kScheduled, "copies=2 warps=4", "copies=2 warps=2", "is for 2 warps, the role has 4"},
    {12, kShared, "a=b b=a", "a=a b=b", "tile a is not bf16 of n=128"},
    {12, kShared, "buffer out bf16[m:16 n:64]", "buffer out bf16[m:24 n:64]", "a fragment of 16 x 16 does not fill a copy of buffer out"},
    {12, kHopper, "column=96 columns=32", "column=96 columns=40", "columns 96+40 are not inside the 128"},
    {13, kLoweredGemm, " smem_bytes=229488", "", "has a place in a program without smem_bytes"},
    {13, kLoweredGemm, "swizzle=128 @16384", "swizzle=128", "has no place in an assigned program"},
    {13, kLoweredGemm, "swizzle=128 @16384", "swizzle=128 @16896", "is not aligned to 1024"},
    {13, kLoweredGemm, "swizzle=128 @16384", "swizzle=128 @15360", "overlap at byte 15360"},
    {13, kLoweredGemm, "barriers=@229440", "barriers=@229436", "is not aligned to 8"},
    {13, kLoweredGemm, "tmem_slot=@229472", "tmem_slot=@229470", "is not aligned to 4"},
    {13, kLoweredGemm, "smem_bytes=229488", "smem_bytes=229472", "the Tensor Memory slot ends at byte 229476, after the end 229472"},
    {13, kLoweredGemm, "smem_bytes=229488", "smem_bytes=232449", "the target has 232448"},
    {13, kLoweredGemm, "tmem_columns=512", "tmem_columns=256", "channel acc ends at column 512, after the end 256"},
    {13, kLoweredGemm, "tmem_columns=512", "tmem_columns=500", "tmem_columns=500 is not a power of two from 32 to the target's"},
    {13, kScheduled, "operands=bf16", "operands=bf16 tmem_columns=512", "without smem_bytes"},
    {3, kPanels, "box=bf16[m:16 n:48]", "box=bf16[m:16 n:44]", "has rows of 88 bytes, not whole spans of 128"},
    {3, kPanels, "box=bf16[n:176 k:64]", "box=bf16[n:176 k:48]", "has rows of 96 bytes, not whole spans of 128"},
    {8, kPanels, "buffer=out0 map=map_d_rest", "buffer=out0 map=map_b", "map_b is not a tensor map of D"},
    {9, kPanels, "  param map_d_rest box=bf16[m:16 n:48] swizzle=128\n", "", "param map_d_rest is not declared"},
    {9, kPanels, "param map_d_rest box=bf16[m:16 n:48]", "param map_d_rest box=bf16[m:16 n:64]", "the box of map_d_rest is not a column of buffer out0"},
    {9, kPanels, "param map_d box=bf16[m:16 n:64]", "param map_d box=bf16[m:16 n:48]", "the box of map_d is not a column of buffer out0"},
    {8, kQuantized, "scaling=nv type=e2m1", "scaling=nv type=e4m3", "nv is no scaling of e4m3"},
    {8, kQuantized, "scaling=nv type=e2m1", "scaling=none type=e2m1", "none is no scaling of e2m1"},
    {7, kQuantized, "scaling=nv type=e2m1", "scaling=mx type=e2m1", "mx has no f32 factor of D"},
    {9, kQuantized, "param base_block_scale_d", "param base_scale_b", "base_block_scale_d"},
    {4, kSharers, "sharers=4", "sharers=3", "buffer out is shared by 3 of 8 warps each"},
    {12, kSharers, "sharers=4", "sharers=2", "a fragment of 16 x 64 does not fill a copy of buffer out"},
    {4, kResident, "channel a shared stages=4", "channel a shared stages=4 private", "channel a is a private ring, but not in Tensor Memory or filled by other roles"},
    {4, kResidentLowered, "resident arrivals=1/0", "resident arrivals=1/8", "channel b is resident, but is not shared or is released"},
    {4, kResidentLowered, "resident arrivals=1/0", "resident arrivals=0/0", "of a lowered program has 0 arrivals"},
    {10, kResidentLowered, "resident arrivals=1/0", "resident arrivals=2/0", "channel b await 2 arrivals, the roles make 1"},
    {15, kResident, "    await %32 b\n", "", "it has not awaited channel b"},
    {15, kResident, "stages=4 resident", "stages=4", "channel b is not resident"},
    {15, kResident, "%19 = put a\n        tma.load %19, %18, %10, %9 tile=a operand=a", "%19 = put b\n        tma.load %19, %18, %10, %9 tile=b operand=b", "it fills the slots of channel b, which is resident, for each tile"},
    {15, kResident, "%51 = resident %47 b", "%51 = take b", "it takes from channel b, which is resident"},
    {11, kResident, "release.late %48", "release.late %51", "slot %51 was put, not taken"},
    {12, kShared, "sharers=4\n", "sharers=2\n", "of 2 warps that share a copy of buffer out, 4 arrive together"},
    {1, kClusterK, "cluster_k=4", "cluster=2x1 cluster_k=4", "CTAs that share a tile have no neighbours along m or n, and are no pairs"},
    {4, kClusterK, "sums sums stages=1 rows=128", "sums sums stages=1 rows=64", "channel sums does not hold the sums of a tile that CTAs of a cluster share"},
    {4, kPingpong, "order order stages=1", "order order stages=2", "channel order is an order channel, but not one empty slot"},
    {8, kDepthwise, "fragment=runs_8", "fragment=mma_16x8", "its sums are runs of lanes, not mma_16x8"},
    {8, kDepthwise, "columns=3 stride=1", "columns=0 stride=1", "columns, stride and dilation are positive"},
    {8, kDepthwise, "lines=10 reversed", "lines=10 reversed phase=1", "phase 1 is not below the stride"},
    {8, kDepthwise, "stride=1 dilation=1 line=18 lines=10 reversed", "stride=3 dilation=1 line=18 lines=10 reversed divides", "not a multiple of the stride 3"},
    {9, kDepthwise, "  param dilation_h\n", "", "param dilation_h is not declared"},
    {1, kDepthwise, "tile=128x64x16", "tile=256x64x16", "box_lines=8 of box_columns=16 are not the tile's 256 rows"},
    {12, kDepthwise, "tile=128x64x16 box_lines=8", "tile=80x64x16 box_lines=5", "is not a multiple of 32 rows of 64 channels in runs of 8"},
    {12, kDepthwise, "tile=128x64x16", "tile=128x64x32", "tile w is not 64 channels of 16 bits, in order, for each of k=32 taps"},
    {12, kDepthwise, " lines=10 ", " lines=7 ", "tile x is not planes of 126 pixels of 64 channels of 16 bits"},
    {3, kDepthwise, "tile x linear bf16[m:180 n:64]", "tile x linear bf16[m:180 n:128]", "is linear, but its rows are not one span"},
    {8, kDepthwise, " line=18 lines=10 ", " line=9 lines=20 ", "a lane reads 10 pixels of a line of 9"},
    {8, kDepthwiseGradient, " run=7 ", " run=0 ", "run, columns, stride, dilation, rows and groups are positive"},
    {8, kDepthwiseGradient, "taps.add %82, %79, %81, %64 run=7", "taps.add %82, %79, %81, %64 run=4", "lines of 14 outputs are not whole runs of 4"},
    {9, kDepthwiseGradient, "  param dilation_h\n", "", "param dilation_h is not declared"},
    {12, kDepthwiseGradient, " rows=3 ", " rows=1 ", "is not 64 channels with all taps of 1 groups of 1 rows"},
    {12, kDepthwiseGradient, " copies=8", " copies=2", "tile w is not 2 copies of f32 sums of 16 columns x 64 rows"},
    {15, kDepthwise, "    await %43 w\n", "", "it has not awaited channel w"},
    {15, kResident, "= resident %47 b", "= preview b", "it previews a slot of channel b, which is resident"},
    {5, kGemv, " waits", "", "role sum does not wait for the previous kernel and does more than load B"},
    {5, kScaledGemv, " scale_run=16", " scale_run=16 waits", "role sum waits twice for the previous kernel"},
    {8, kGemv, " stages=2 halves", " stages=0 halves", "vectors, lines, copies and stages are positive"},
    {8, kGemv, " vectors=4", " vectors=3", "a warp adds the sums of 3 vectors x 4 lines, not powers of two"},
    {9, kGemv, "  param pitch_a\n", "", "param pitch_a is not declared"},
    {12, kGemv, " lines=4", " lines=8", "a tile of 32 lines is not 8 for each of 8 warps, in 1 copies"},
    {12, kGemv, "tile=8x32x256", "tile=8x32x512", "blocks of k=512 are not 8 elements for each lane of 1 warps"},
    {12, kScaledGemv, " scale_run=16", "", "operands are of 16 or 8 bits, or e2m1 with scale factors"},
    {8, kGrouped, " rows=groups", "", "rows belong to groups if and only if work does"},
    {8, kGrouped, "buffer=out rows=groups", "buffer=out", "rows belong to groups if and only if work does"},
    {8, kGrouped, "raster=8 source=groups", "raster=8 source=groups slices=2", "tiles of groups are not cut into slices"},
    {8, kScheduled, "raster=8", "raster=8 row_step=8", "row_step=8: only tiles of groups divide rows"},
    {8, kDividedRows, "row_step=16", "row_step=-16", "row_step=-16: only tiles of groups"},
    {8, kGrouped, "= %38, %37 step=1", "= %38, %37, %37 step=1",
     "only where tiles divide the rows of groups may some of a tile not be multiplied"},
    {8, kGroupedBlocks, "= %24, %23 step=1", "= %24, %23, %23 step=1",
     "only where tiles divide the rows of groups may some of a tile not be multiplied"},
    {8, kGroupedBlocks, "= %63, %62, %44 step=1", "= %63, %62, %44, %44 step=1",
     "a loop has a first index, an end, and rows of the tile that count"},
    {8, kGrouped, "%12, %14 tile=a", "%12, %14, %12 tile=a",
     "only where tiles divide the rows of groups may some of a tile not be loaded, and only rows of A"},
    {8, kDividedRows, "%13, %7 tile=b", "%13, %7, %10 tile=b",
     "only where tiles divide the rows of groups may some of a tile not be loaded, and only rows of A"},
    {8, kDividedRows, "%14, %10 tile=a", "%14, %10, %10 tile=a",
     "a copy has a slot, an inner and an outer index, a batch, and rows of the tile that count"},
    {9, kDividedRows, "map_a box=bf16[m:32", "map_a box=bf16[m:48", "the box of map_a is not a column of tile a"},
    {8, kDividedRowsLowered, "expect %22, %10 bytes", "expect %22, %10, %10 bytes",
     "a slot, and the rows of its tile that count"},
    {11, kDividedRowsLowered, "expect %22, %10 bytes", "expect %22 bytes",
     "slot %22 expects other rows of A than bulk copies bring"},
    {10, kDividedRows, "raster=8 source=groups row_step=16", "raster=8 source=groups row_step=8",
     "its tiles are not those of the roles before it, in their order"},
    {10, kScheduled, "raster=8", "raster=4", "its tiles are not those of the roles before it, in their order"},
    {9, kMaskedGroups, "  param group_rows\n", "", "param group_rows is not declared"},
    {8, kMaskedGroups, "rows=groups", "rows=matrix", "rows belong to groups if and only if work does"},
    {9, kGrouped, "  param group_offsets\n", "", "param group_offsets is not declared"},
    {8, kGroupedBulk, "buffer=out rows=groups", "buffer=out", "rows belong to groups if and only if work does"},
    {9, kGroupedBulk, "  param base_d\n", "", "param base_d is not declared"},
    {12, kGroupedBulk, "buffer=out rows=groups", "buffer=out rows=pixels", "rows of a bulk store are those of a matrix"},
    {9, kRows, "  param row_indices_a\n", "", "param row_indices_a is not declared"},
    {2, kRows, "  param stored_rows_d\n", "", "param row_indices_d without the number of rows that its indices may name"},
    {8, kRows, "rows.find %39 rows=64", "rows.find %39 rows=64 at_once=4", "sm_90a has no bulk copies of 4 rows"},
    {9, kRows, "tile=a rows=64 to=n", "tile=a rows=32 to=n", "its 32 rows are not a part of the tile's"},
    {9, kRows, "map_a box=bf16[m:1 k:64]", "map_a box=bf16[m:8 k:64]", "the box of map_a is not a row of the tile"},
    {6, kRows, "kind=load warps=2+2", "kind=load warps=2+1 elected", "it is for whole warps; the role is elected"},
    {9, kRowScaled, "  param base_scale_b\n", "", "param base_scale_b is not declared"},
    {8, kParts, "raster=8 source=parts_of_k", "raster=8 source=parts_of_k slices=2", "tiles of groups are not cut into slices"},
    {7, kParts, "= %3, %5, %6, %7 raster=8 source=parts_of_k", "= %3, %5, %6 raster=8 source=parts_of_k", "it has an operand about K if and only if tiles are cut into slices or have parts of K"},
    {9, kParts, "  param group_offsets\n", "", "param group_offsets is not declared"},
    {8, kPingpong, "pingpong_index=1 pingpong_roles=2", "pingpong_index=2 pingpong_roles=2", "pingpong_index=2 of 2"},
    {14, kPingpong, "pingpong_index=1 pingpong_roles=2", "pingpong_roles=2", "2 roles have ping-pong index 0 of 2"},
    {14, kPingpong, "pingpong_index=1 pingpong_roles=2", "pingpong_index=1 pingpong_roles=3", "0 roles have ping-pong index 2 of 3"},
    {14, kPingpong, "= take ab", "= preview ab", "it previews a slot, which may be the other ping-pong role's"},
};

// The same for the ops of convolutions.
constexpr Broken kBrokenConvolutions[] = {
    {1, kFused, "live_rows=120", "live_rows=122", "live_rows=122 is not an equal part of each 32 of 128 rows"},
    {1, kFused, "live_rows=120", "live_rows=128", "live_rows=128 is not an equal part of each 32 of 128 rows"},
    {1, kFused, "live_rows=120", "live_rows=-4", "live_rows=-4 is not an equal part of each 32 of 128 rows"},
    {1, kPixels, "operands=bf16", "diagonal_blocks=5000 operands=bf16", "diagonal_blocks=5000 is not 1 to 4096"},
    {12, kPixels, "operands=bf16", "diagonal_blocks=2 operands=bf16", "rows in shared memory are whole rows of D"},
    {1, kPatch, "patch=1x2x2", "patch=1x0x2", "patch=1x0x2 is not 1 to 4096 pixels"},
    {1, kPatch, "patch=1x2x2", "patch=1x64x128", "patch=1x64x128 is not 1 to 4096 pixels"},
    {8, kPatch, "patch=1x2x2", "patch=2x2x2", "a patch of several planes in images that have one"},
    {9, kPatch, "  param pixels_h\n", "", "param pixels_h is not declared"},
    {12, kPixels, "operands=bf16", "patch=1x2x2 operands=bf16", "its columns are not channels of one pixel"},
    {3, kShift, "box=bf16[m:1 k:64]", "box=bf16[m:2 k:64]", "2 rows, not a multiple of 8"},
    {4, kShift, "channel x shared stages=3", "channel x shared stages=3 private", "channel x is a private ring, but not in Tensor Memory or filled by other roles"},
    {6, kShift, "          send %116\n", "          send %116\n          tensor.shift %116\n", "it is not legal in a role of kind load"},
    {6, kShift, "          send %116\n", "          tensor.copy %116, %116 tile=x0\n          send %116\n", "it is not legal in a role of kind load"},
    {6, kShift, "          send %116\n", "          tensor.refresh %116, %116 tile=edge0 row=0\n          send %116\n", "it is not legal in a role of kind load"},
    {6, kShift, "kind=mma warps=1+1 elected", "kind=mma warps=1+1", "it is for one thread"},
    {6, kGather, "      send %22\n", "      tma.load.pixels %22, %23, %20, %20, %19, %23, %23 tile=x map=map_a\n      send %22\n", "it is not legal in a role of kind copy"},
    {6, kOffset, "          send %44\n", "          copy.load.pixels %44, %45, %20, %9 tile=x0 vector=8\n          send %44\n", "it is not legal in a role of kind load"},
    {7, kPixels, "%20, %50, %53 tile=x", "%20, %50 tile=x", "an im2col copy has a channel, 3 or 4 starts and 2 or 3 offsets"},
    {7, kPixels, "%104, %107, %108 buffer", "%104, %107 buffer", "an implicit-GEMM index starts with 3 or 4 coordinates"},
    {7, kMasked, "border.mask %83 columns=1", "border.mask %85 columns=1", "operand %85 is of type slot, not index"},
    {7, kMasked, ", %86 a=", ", %86, %87 a=", "an MMA has more than one lane mask"},
    {7, kMasked, ", %86 a=", ", %83 a=", "operand %83 is of type index, not lane_mask"},
    {8, kPixels, "map=map_a", "map=alpha", "map is not a tensor map"},
    {8, kShift, "tile=edge0 map=map_edge row=7", "tile=edge0 map=map_edge row=8", "a box from row 8 on exceeds the tile of 8 rows"},
    {8, kShift, "tile=edge0 map=map_edge row=1", "tile=edge0 map=map_edge row=-1", "a box from row -1 on exceeds the tile of 8 rows"},
    {8, kShift, "tile=edge0 map=map_edge row=7", "tile=edge0 map=map_edge column=1 row=7", "column=1 is not one of the tile's 1"},
    {8, kShift, "tile=edge0 map=map_edge row=7", "tile=edge0 map=map_edge column=-2 row=7", "column=-2 is not one of the tile's 1"},
    {8, kShift, "tile=x0 map=map_a", "tile=7 map=map_a", "has no tile 7"},
    {8, kShift, "tensor.copy %189, %188 tile=x0", "tensor.copy %189, %188 tile=7", "has no tile 7"},
    {8, kShift, "%190, %187 b=w", "%190, %187 b=7", "has no tile 7"},
    {8, kGather, "tile=x vector=1", "tile=x vector=4", "vector=4 is not 1 or 8"},
    {8, kGather, "channels=3 columns=7", "columns=7", "either all extents of a filter are known, or none"},
    {8, kGather, "columns=7 rows=7", "columns=0 rows=7", "either all extents of a filter are known, or none"},
    {8, kGather, "first=64", "first=-64", "only blocks of a known filter have a first element"},
    {8, kGather, "vector=1 channels=3", "vector=8 channels=3", "only blocks of a known filter have a first element, and they are accessed by single elements"},
    {8, kGather, "tile=w operand=b", "tile=w operand=a taps", "only loads by threads address taps, and only those of B"},
    {8, kFused, "shift stale=1", "shift stale=32", "of 32 lanes 32 are stale"},
    {8, kFused, "warp.row rows=30", "warp.row rows=32", "a warp has 30 rows, not 32"},
    {8, kMasked, "columns=1\n", "columns=0\n", "columns=0 is not a distance of 1 to 31"},
    {8, kMasked, "columns=-1\n", "columns=-32\n", "columns=-32 is not a distance of 1 to 31"},
    {9, kGather, "  param in_w\n", "", "param in_w is not declared"},
    {9, kGather, "  param row_a\n", "", "param row_a is not declared"},
    {9, kGather, "tile=w operand=b", "tile=w operand=b taps", "param row_b is not declared"},
    {9, kGather, "  param out_q\n", "", "param out_q is not declared"},
    {9, kOffset, "box=bf16[m:136 k:64]", "box=f16[m:136 k:64]", "the box of map_a is not a column of tile x0"},
    {9, kOffset, "box=bf16[m:136 k:64]", "box=bf16[m:144 k:64]", "the box of map_a is not a column of tile x0"},
    {9, kShift, "box=bf16[m:1 k:64]", "box=f16[m:1 k:64]", "the box of map_edge is not a column of tile edge0"},
    {9, kPixels, "  param map_d box=bf16[m:32 n:64] swizzle=128\n", "", "param map_d is not declared"},
    {10, kShift, "reserve a\n", "reserve acc\n", "it reserves a slot of a channel that other roles use, too"},
    {10, kGather, "      copy.load %7, %9, %0, %1 tile=w operand=b\n", "", "nothing loads tile w.w"},
    {10, kEarly, "= put ab\n", "= put ab\n        peek ab\n", "it peeks at channel ab and takes no slot of it"},
    {4, kShiftLowered, "private column=0", "column=0", "of a lowered program has 0 arrivals"},
    {11, kShift, "          retire %189\n", "", "slot %189 is put, but not sent"},
    {11, kShift, "          release %188\n", "", "slot %188 is taken, but not released"},
    {11, kShift, "%190, %187 b=w\n          release %190\n", "%190, %187 b=w\n          release %190\n          mma.tensor %174, %189, %190, %187 b=w\n", "is used after it was sent, released or passed"},
    {12, kShift, "columns=32 private", "columns=64 private", "channel a is not an operand of 128 lanes and 32 columns in Tensor Memory"},
    {12, kShift, "rows=128 columns=32 private", "rows=64 columns=32 private", "channel a is not an operand of 128 lanes and 32 columns in Tensor Memory"},
    {12, kShift, "tensor.copy %189, %188 tile=x0", "tensor.copy %189, %188 tile=edge0", "tile edge0 has not 128 rows"},
    {12, kShift, "tensor.copy %189, %188 tile=x0", "tensor.copy %189, %188 tile=x0 row=1", "tile x0 has not 129 rows"},
    {12, kShift, "tile=edge0 row=4\n          %195", "tile=edge0 row=5\n          %195", "tile edge0 has not 9 rows"},
    {12, kShift, "tensor.shift %189\n", "tensor.shift %189 issues=2\n", "a shift is 1 or 4 issues, not 2"},
    {12, kShift, "tensor.shift %189\n", "tensor.shift %174\n", "channel acc is not an operand of 128 lanes and 32 columns in Tensor Memory"},
    {12, kOffset, "row=2\n", "row=9\n", "tile x0 is not bf16 of m=128"},
    {12, kOffset, "row=1\n", "row=-1\n", "tile x0 is not bf16 of m=128"},
    {8, kSlotScales, "a_tile=2 b_tile=3", "a_tile=4 b_tile=3", "channel ab has no tile 4"},
    {12, kSlotScales, "a_tile=2 b_tile=3", "a_tile=3 b_tile=2", "tile sb is not 32 lines of 4 f32 scale factors"},
    {12, kSlotScales, "a_tile=2 b_tile=3", "a_tile=2 b_tile=0", "tile a is not 2 lines of 4 f32 scale factors"},
    {8, kVectorScales, "b_tile=3 fragment=mma_16x8 b_vector", "b_tile=4 fragment=mma_16x8 b_vector", "channel ab has no tile 5"},
    {12, kVectorScales, "mma_16x8 b_vector", "mma_16x8 packed b_vector", "lines of packed scale factors of B are whole, and no vector"},
    {12, kColumnScales, "column=112 columns=16 aligned", "column=120 columns=16 aligned", "columns 120+16 are not inside the 128 of the accumulator"},
    {12, kColumnScales, "columns=16 aligned", "columns=12 aligned", "columns 0+12 are not inside the 128 of the accumulator"},
    {12, kColumnScales, "a_tile=2 b_tile=3", "a_tile=1 b_tile=3", "tile b is not 4 lines of 4 f32 scale factors"},
    {13, kShiftLowered, "private column=0", "private column=1", "overlap at column"},
};
// clang-format on

INSTANTIATE_TEST_SUITE_P(All, BrokenProgram, testing::ValuesIn(kBroken));
INSTANTIATE_TEST_SUITE_P(Convolutions, BrokenProgram, testing::ValuesIn(kBrokenConvolutions));

// What no text can say, since the parser refuses it.
struct BrokenStruct {
  const char* message;
  void (*breaks)(Program&);
};

constexpr BrokenStruct kBrokenStructs[] = {
    {"rule 1: program '7up'", [](Program& p) { p.name = "7up"; }},
    {"rule 1: two channels", [](Program& p) { p.channels[1].name = p.channels[0].name; }},
    {"rule 1: two tiles", [](Program& p) { p.channels[0].tiles[1].name = p.channels[0].tiles[0].name; }},
    {"rule 7: it has 0 operands", [](Program& p) { p.roles[0].body[3].operands.clear(); }},
    {"rule 7: %0 is defined twice", [](Program& p) { p.roles[0].body[1].result = 0; }},
    {"rule 7: %0 is listed as slot, but defined as index", [](Program& p) { p.values[0] = ValueType::kSlot; }},
    {"rule 7: %4294967294 is not in the program's list", [](Program& p) { p.roles[0].body[0].result = kNoValue - 1; }},
    {"rule 7: %99999 is not in the program's list", [](Program& p) { p.roles[0].body[3].operands[0] = 99999; }},
    {"rule 7: it defines a value without an id", [](Program& p) { p.roles[0].body[0].result = kNoValue; }},
    {"rule 7: it has a body", [](Program& p) { p.roles[0].body[0].body.emplace_back(); }},
    {"rule 7: %66 is defined nowhere", [](Program& p) { p.values.push_back(ValueType::kIndex); }},
    {"rule 8: its attributes are not those of its row", [](Program& p) { p.roles[0].body[0].attrs = ParamAttrs{}; }},
};

TEST(Verifier, RefusesWhatTheParserCannotRead) {
  const auto whole = ParseProgram(ReadGolden(kScheduled));
  ASSERT_TRUE(whole.has_value()) << whole.error().message;
  for (const BrokenStruct& broken : kBrokenStructs) {
    Program program = *whole;
    broken.breaks(program);
    const Status status = Verify(program);
    ASSERT_FALSE(status.has_value()) << broken.message;
    EXPECT_NE(status.error().message.find(broken.message), std::string::npos) << status.error().message;
  }
}

// What takes more than one replacement.
struct BrokenConvolution {
  const char* message;
  std::string_view program;
  void (*breaks)(Program&);
};

constexpr BrokenConvolution kBrokenConvolutionStructs[] = {
    {"rule 12: an MMA can begin at a later row of a tile only if rows are spans of 64 or 128 bytes", kOffset,
     [](Program& p) { p.params[0].box.swizzle = p.channels[0].tiles[0].layout.swizzle = Swizzle::k32; }},
    {"rule 12: lanes are positions only in tiles of 128 rows without stale lanes", kMasked,
     [](Program& p) { p.live_rows = 120; }},
    {"rule 12: a shift moves 128 lanes", kFused,
     [](Program& p) {
       p.live_rows = 0;
       p.tile_m = p.channels[2].rows = 64;
     }},
};

TEST(Verifier, RefusesConvolutionsThatBreakARuleInSeveralPlaces) {
  for (const BrokenConvolution& broken : kBrokenConvolutionStructs) {
    auto program = ParseProgram(ReadGolden(broken.program));
    ASSERT_TRUE(program.has_value()) << program.error().message;
    broken.breaks(*program);
    const Status status = Verify(*program);
    ASSERT_FALSE(status.has_value()) << broken.message;
    EXPECT_NE(status.error().message.find(broken.message), std::string::npos) << status.error().message;
  }
}

TEST(Verifier, RefusesStampsThatRecordNothingOrCannotBeToldApart) {
  const auto lowered = ParseProgram(ReadGolden(kLoweredGemm));
  ASSERT_TRUE(lowered.has_value()) << lowered.error().message;
  const auto with = [&](std::vector<StampAttrs> stamps, bool param) {
    Program program = *lowered;
    for (size_t i = 0; i < stamps.size(); ++i) {
      std::vector<Op>& body = program.roles[0].body;
      body.insert(body.begin() + static_cast<ptrdiff_t>(i), Op{.kind = OpKind::kStamp, .attrs = stamps[i]});
    }
    if (param) program.params.push_back({.binding = Binding::kStamps});
    const Status status = Verify(program);
    return status ? std::string() : status.error().message;
  };
  const StampAttrs begin{.event = StampEvent::kBegin, .id = 0}, tile{.event = StampEvent::kTile, .id = 1};
  EXPECT_EQ(with({begin, tile}, true), "");
  EXPECT_NE(with({begin, tile}, false).find("rule 9: param stamps is not declared"), std::string::npos);
  EXPECT_NE(with({tile}, true).find("rule 8: a stamp before the role's stamp event=begin"), std::string::npos);
  EXPECT_NE(with({begin, {.event = StampEvent::kTile, .id = 0}}, true).find("rule 8: the id 0 of a stamp"),
            std::string::npos);
  EXPECT_NE(with({{.event = StampEvent::kBegin, .id = -1}}, true).find("rule 8: the id -1"), std::string::npos);
}

TEST(Verifier, NamesTheRoleAndTheOp) {
  auto program = ParseProgram(ReadGolden(kScheduled));
  ASSERT_TRUE(program.has_value()) << program.error().message;
  std::get<ConstAttrs>(program->roles[1].body[1].attrs).value = -3;
  EXPECT_EQ(Verify(*program).error().message, "role mma: const %21: rule 8: a constant cannot be negative");
}

TEST(Verifier, EveryRuleHasACaseThatBreaksIt) {
  for (int rule = 1; rule <= 14; ++rule) {
    const bool broken =
        std::any_of(std::begin(kBroken), std::end(kBroken), [&](const Broken& b) { return b.rule == rule; });
    EXPECT_TRUE(broken) << "rule " << rule;
  }
}

}  // namespace
}  // namespace laneshift::ir
