#include "emulator/hazards/vector_clock.h"

#include <gtest/gtest.h>

namespace laneshift::emulator {
namespace {

// Of few agents and of many, which lie apart.
TEST(VectorClock, KnowsWhatItHasLearntAndJoined) {
  for (const uint16_t agent : {0, 31, 32, 200}) {
    VectorClock one, other;
    EXPECT_TRUE(one.empty());
    one.Learn({agent, kAllLanes, 5});
    EXPECT_FALSE(one.empty());
    EXPECT_TRUE(one.Knows({agent, kAllLanes, 5}));
    EXPECT_TRUE(one.Knows({agent, 3, 4}));
    EXPECT_FALSE(one.Knows({agent, kAllLanes, 6}));
    EXPECT_FALSE(one.Knows({static_cast<uint16_t>(agent + 1), kAllLanes, 1}));
    EXPECT_TRUE(one.KnowsAnyOf(agent, static_cast<uint16_t>(agent + 1)));
    EXPECT_FALSE(one.KnowsAnyOf(static_cast<uint16_t>(agent + 1), 300));
    other.Learn({agent, 7, 9});
    other.Learn({1, kAllLanes, 2});
    other.Join(one);
    EXPECT_TRUE(other.Knows({agent, 7, 9})) << "one lane";
    EXPECT_FALSE(other.Knows({agent, kAllLanes, 9}));
    EXPECT_TRUE(other.Knows({agent, kAllLanes, 5}));
    EXPECT_TRUE(other.Knows({1, kAllLanes, 2}));
    EXPECT_TRUE(other.Near().Knows({agent, kAllLanes, 5}));
    EXPECT_TRUE(other.Covers(one));
    EXPECT_FALSE(one.Covers(other));
    one.Learn({1, kAllLanes, 3});
    EXPECT_FALSE(one.Covers(other)) << "one lane";
    EXPECT_FALSE(other.Covers(one));
    one.Join(other);
    EXPECT_TRUE(one.Covers(other));
    other.Clear();
    EXPECT_TRUE(other.empty());
    EXPECT_FALSE(other.Covers(one));
    EXPECT_TRUE(one.Covers(other));
    EXPECT_FALSE(other.Knows({agent, kAllLanes, 1}));
    EXPECT_FALSE(other.Knows({1, kAllLanes, 1}));
  }
}

}  // namespace
}  // namespace laneshift::emulator
