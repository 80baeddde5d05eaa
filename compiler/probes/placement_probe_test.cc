#include "compiler/probes/placement_probe.h"

#include <gtest/gtest.h>

namespace laneshift::compiler {
namespace {

TEST(PlacementProbe, BecomesPtxForEachTarget) {
  for (const target::Target& target : target::Targets()) {
    const auto probe = EmitPlacementProbe(target);
    ASSERT_TRUE(probe.has_value()) << probe.error().message;
    EXPECT_NE(probe->ptx.find("%smid"), std::string::npos);
  }
}

TEST(PlacementProbe, WhoSharesAClusterIsInOneGpc) {
  EXPECT_TRUE(GpcSizes({}).empty());
  // SMs 0 to 3 are connected through 1 and 2; 8 and 9 are separate from these; 5 had no neighbour.
  const Placement pairs{2, {0, 1, 2, 3, 1, 2, 8, 9}};
  const Placement single{1, {5, 0}};
  EXPECT_EQ(GpcSizes(std::vector{pairs, single}), (std::vector<int>{4, 2, 1}));
  const Placement fours{4, {3, 8, 9, 0, 5, 6, 7, 4}};
  EXPECT_EQ(GpcSizes(std::vector{pairs, fours, single}), (std::vector<int>{6, 4}));
}

}  // namespace
}  // namespace laneshift::compiler
