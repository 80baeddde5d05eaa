#include "target/target.h"

#include <gtest/gtest.h>

namespace laneshift::target {
namespace {

TEST(Target, UnknownNameListsKnownOnes) {
  const auto found = FindTarget("sm_80");
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(found.error().message.find("sm_100a, sm_90a"), std::string::npos);
}

TEST(Target, EveryTargetIsFoundByNameAndCapability) {
  for (const Target& target : Targets()) {
    EXPECT_EQ(*FindTarget(target.name), &target);
    const Target* own = *TargetOfDevice(target.compute_major, target.compute_minor);
    EXPECT_EQ(own == &target, !target.family) << target.name;
    EXPECT_TRUE(target.RunsOn(own->compute_major, own->compute_minor)) << target.name;
  }
  EXPECT_FALSE(TargetOfDevice(8, 0).has_value());
}

// A family's code runs on every chip of the major version, code with all features of a chip only there.
TEST(Target, CodeRunsOnItsChipOrFamily) {
  EXPECT_TRUE(NamedTarget("sm_100f").RunsOn(10, 0));
  EXPECT_TRUE(NamedTarget("sm_100f").RunsOn(10, 3));
  EXPECT_FALSE(NamedTarget("sm_100f").RunsOn(11, 0));
  EXPECT_FALSE(NamedTarget("sm_103a").RunsOn(10, 0));
  EXPECT_FALSE(NamedTarget("sm_100a").RunsOn(10, 3));
  EXPECT_EQ((*TargetOfDevice(10, 3))->name, "sm_103a");
}

TEST(Target, AccumulatorsLiveInExactlyOnePlace) {
  for (const Target& target : Targets()) {
    EXPECT_NE(target.Has(Feature::kWgmma), target.Has(Feature::kTensorMemory)) << target.name;
    EXPECT_EQ(target.tmem_columns > 0, target.Has(Feature::kTensorMemory)) << target.name;
  }
}

}  // namespace
}  // namespace laneshift::target
