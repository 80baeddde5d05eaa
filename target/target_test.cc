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
    EXPECT_EQ(*TargetOfDevice(target.compute_major, target.compute_minor), &target);
  }
  EXPECT_FALSE(TargetOfDevice(8, 0).has_value());
}

TEST(Target, AccumulatorsLiveInExactlyOnePlace) {
  for (const Target& target : Targets()) {
    EXPECT_NE(target.Has(Feature::kWgmma), target.Has(Feature::kTensorMemory)) << target.name;
    EXPECT_EQ(target.tmem_columns > 0, target.Has(Feature::kTensorMemory)) << target.name;
  }
}

}  // namespace
}  // namespace laneshift::target
