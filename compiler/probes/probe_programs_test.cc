#include "compiler/probes/probe_programs.h"

#include <gtest/gtest.h>

#include "compiler/compile.h"

namespace laneshift::compiler {
namespace {

class MachineProbe : public testing::TestWithParam<const char*> {
 protected:
  const target::Target& target() const { return target::NamedTarget(GetParam()); }
};

TEST_P(MachineProbe, ProbesBecomePtx) {
  for (const StreamProbe& probe : {StreamProbe{.rows = 128, .stages = 1}, StreamProbe{.rows = 128, .stages = 8},
                                   StreamProbe{.rows = 128, .columns = 128, .stages = 6}}) {
    const auto program = BuildStreamProbe(probe, target());
    ASSERT_TRUE(program.has_value()) << program.error().message;
    const auto ptx = EmitPtx(*program, target());
    ASSERT_TRUE(ptx.has_value()) << ptx.error().message;
    EXPECT_NE(ptx->ptx.find("cp.async.bulk.tensor"), std::string::npos);
  }
}

TEST_P(MachineProbe, ProductsChangeTheirSlotsInEachIteration) {
  for (const int columns : {16, 32, 48, 64, 128, 256}) {
    const auto program = BuildProductProbe({.columns = columns}, target());
    ASSERT_TRUE(program.has_value()) << columns << ": " << program.error().message;
    const auto ptx = EmitPtx(*program, target());
    ASSERT_TRUE(ptx.has_value()) << ptx.error().message;
    const std::string product = target().Has(target::Feature::kTensorMemory) ? "tcgen05.mma" : "wgmma.mma_async";
    size_t products = 0;
    for (size_t at = 0; (at = ptx->ptx.find(product, at)) != std::string::npos; ++at) ++products;
    // Each of a block's four steps of 32 bytes.
    EXPECT_GE(products, size_t{4} * kProbeProducts) << columns;
  }
  EXPECT_FALSE(BuildProductProbe({.columns = 20}, target()).has_value());
}

TEST_P(MachineProbe, HandoffsMoveNothing) {
  const auto program = BuildHandoffProbe(target());
  ASSERT_TRUE(program.has_value()) << program.error().message;
  const auto ptx = EmitPtx(*program, target());
  ASSERT_TRUE(ptx.has_value()) << ptx.error().message;
  EXPECT_EQ(ptx->ptx.find("cp.async.bulk"), std::string::npos);
  EXPECT_NE(ptx->ptx.find("mbarrier.arrive"), std::string::npos);
}

TEST_P(MachineProbe, RingThatDoesNotFitIsRefused) {
  const auto program = BuildStreamProbe({.rows = 256, .columns = 256, .stages = 8}, target());
  ASSERT_FALSE(program.has_value());
  EXPECT_EQ(program.error().code, ErrorCode::kResourceExhausted);
}

INSTANTIATE_TEST_SUITE_P(Targets, MachineProbe, testing::Values("sm_100a", "sm_90a"));

}  // namespace
}  // namespace laneshift::compiler
