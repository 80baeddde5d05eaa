#include "compiler/build/cta_plan.h"

#include <gtest/gtest.h>

#include "compiler/compile.h"

namespace laneshift::compiler {
namespace {

ir::Program ProgramOf(const Schedule& schedule) {
  const auto tile = [&](ir::Axis axis, int rows) {
    return ir::SharedLayout{.type = DataType::kBf16,
                            .outer_axis = axis,
                            .inner_axis = ir::Axis::kK,
                            .outer = rows,
                            .inner = schedule.tile_k,
                            .swizzle = ir::Swizzle::k128};
  };
  ir::Program program;
  program.tile_m = schedule.tile_m;
  program.tile_n = schedule.tile_n;
  program.tile_k = schedule.tile_k;
  program.channels.push_back(
      {.name = "ab",
       .stages = schedule.stages,
       .tiles = {{"a", tile(ir::Axis::kM, schedule.tile_m)}, {"b", tile(ir::Axis::kN, schedule.tile_n)}}});
  return program;
}

CtaPlan PlanOf(const Schedule& schedule, const EpilogueTerms& terms, bool copies, bool many_addresses = false) {
  const ir::Program program = ProgramOf(schedule);
  const std::vector<int> rings = {0};
  return PlanCta({program, rings, copies, many_addresses}, schedule, terms, target::NamedTarget("sm_90a"));
}

TEST(CtaPlan, RegistersFollowWhatThreadsLoad) {
  const Schedule wide{.tile_m = 128, .tile_n = 192, .tile_k = 64, .math_warpgroups = 2};
  EXPECT_EQ(PlanOf(wide, {}, false).registers.math, 232);
  EXPECT_EQ(PlanOf(wide, {}, true).registers.math, 208);
  EXPECT_EQ(PlanOf(wide, {}, true, true).registers.math, 200);
  const Schedule narrow{.tile_m = 128, .tile_n = 128, .tile_k = 64, .math_warpgroups = 2};
  EXPECT_EQ(PlanOf(narrow, {}, true).registers.math, 0);
  EXPECT_EQ(PlanOf(narrow, {.promotes = true}, true).registers.math, 208);  // sums besides the accumulator
  const Schedule one{.tile_m = 64, .tile_n = 128, .tile_k = 64, .math_warpgroups = 1};
  EXPECT_EQ(PlanOf(one, {}, true).registers.math, 0);
  const Schedule three{.tile_m = 192, .tile_n = 128, .tile_k = 64, .math_warpgroups = 3};
  const CtaPlan plan = PlanOf(three, {.promotes = true}, false);
  EXPECT_EQ(plan.registers.load + 3 * plan.registers.math, 4 * 128) << "as many as four warpgroups are launched with";
  EXPECT_EQ(plan.blocks, 1);
}

TEST(CtaPlan, ConsumersOfPingPongHaveAWarpgroupAndABufferEach) {
  const Schedule pingpong{
      .tile_m = 64, .tile_n = 128, .tile_k = 64, .math_warpgroups = 2, .consumers = Consumers::kPingpong};
  const CtaPlan plan = PlanOf(pingpong, {}, false);
  EXPECT_EQ(plan.consumers, 2);
  EXPECT_EQ(plan.warps, 4);
  EXPECT_EQ(plan.blocks, 1);
  ASSERT_EQ(plan.buffers.size(), 2u);
  EXPECT_EQ(plan.buffers[0].name, "out0");
  EXPECT_EQ(plan.buffers[1].name, "out1");
}

TEST(CtaPlan, StagingLeavesTheRingItsUsefulStages) {
  const auto bytes_of = [](const CtaPlan& plan) {
    const ir::Buffer& buffer = plan.buffers.at(0);
    return buffer.layout.Bytes() * buffer.copies * buffer.warps / buffer.sharers;
  };
  const Schedule half{.tile_m = 128, .tile_n = 128, .tile_k = 64, .stages = 4, .math_warpgroups = 2};
  const CtaPlan roomy = PlanOf(half, {}, false);
  EXPECT_EQ(roomy.staging.layout.Span(), 128);  // rows of whole lines
  // 4 stages of 52 KiB leave 19 KiB: rows of lines in two copies would cost one of them.
  Schedule schedule{.tile_m = 256, .tile_n = 160, .tile_k = 64, .stages = 4, .math_warpgroups = 2};
  const CtaPlan tight = PlanOf(schedule, {}, false);
  EXPECT_LE(4 * (256 + 160) * 64 * 2 + bytes_of(tight), target::NamedTarget("sm_90a").smem_bytes);
  EXPECT_LT(bytes_of(tight), bytes_of(roomy));
  // What leaves from where the sums are needs no buffer.
  schedule.d_store = StorePath::kDirect;
  EXPECT_TRUE(PlanOf(schedule, {}, false).buffers.empty());
}

TEST(CtaPlan, TwoAccumulatorsOfPromotedProductsNeedRegisters) {
  const EpilogueTerms promoted{.promotes = true};
  const Schedule narrow{.tile_m = 64, .tile_n = 128, .tile_k = 128, .math_warpgroups = 1};
  EXPECT_EQ(PlanOf(narrow, promoted, false).promotion, Promotion::kAlternating);
  EXPECT_EQ(PlanOf(narrow, {}, false).promotion, Promotion::kTile);
  const Schedule wide{.tile_m = 64, .tile_n = 192, .tile_k = 128, .math_warpgroups = 1};
  EXPECT_EQ(PlanOf(wide, promoted, false).promotion, Promotion::kTile);
  // Two blocks of rows a warpgroup share an accumulator of one.
  const Schedule tall{.tile_m = 256, .tile_n = 128, .tile_k = 128, .math_warpgroups = 2};
  EXPECT_EQ(PlanOf(tall, promoted, false).promotion, Promotion::kByBlock);
}

}  // namespace
}  // namespace laneshift::compiler
