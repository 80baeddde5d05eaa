#include "emulator/machine/memory.h"

#include <gtest/gtest.h>

#include "emulator/machine/cluster.h"
#include "emulator/machine/plan_cache.h"

namespace laneshift::emulator {
namespace {

TEST(GranuleWords, SayWhatTheRangesSay) {
  const std::vector<SharedRange> ranges = {{0x400, 0x410}, {0x7f0, 0x820}, {0xc00, 0x1400}};
  const auto words = GranulesOf(ranges);
  ASSERT_EQ(words->size(), 4u);
  EXPECT_EQ((*words)[0].mask, uint64_t{1} | uint64_t{1} << 63);  // both ranges that block 1 has a part of
  EXPECT_EQ((*words)[1].mask, 3u);
  EXPECT_EQ((*words)[2].block, 3u);
  EXPECT_EQ((*words)[2].mask, ~uint64_t{0});
  EXPECT_EQ((*words)[3].mask, ~uint64_t{0});
  EXPECT_EQ(BytesOf(*words), 0x10u + 0x30u + 0x800u);
}

TEST(GranuleWords, AUseOfSomeGranulesOverlapsOnlyThose) {
  const std::vector<SharedRange> ranges = {{0x400, 0x420}, {0x480, 0x4a0}, {0x880, 0x8a0}};
  AsyncOp::SharedUse use{nullptr, {0x400, 0x8a0}, false};
  EXPECT_TRUE(use.Overlaps(0x420, 0x480));  // all of the range
  use.granules = GranulesOf(ranges);
  EXPECT_FALSE(use.Overlaps(0x420, 0x480));
  EXPECT_FALSE(use.Overlaps(0x4a0, 0x880));
  EXPECT_TRUE(use.Overlaps(0x41c, 0x420));
  EXPECT_TRUE(use.Overlaps(0x4a0, 0x884));
}

TEST(SharedMemory, GranulesAreWrittenWhenAllTheirBytesAre) {
  SharedMemory memory(4096);
  const GranuleWord granules = GranuleWord::Of(0x410, 0x430);
  memory.MarkWritten(0x408, 0x20);  // the first of them, and half of the second
  EXPECT_TRUE(memory.Written(GranuleWord::Of(0x410, 0x420)));
  EXPECT_FALSE(memory.Written(granules));
  for (uint32_t at = 0x428; at < 0x430; at += 4) memory.MarkWritten(at, 4);
  EXPECT_TRUE(memory.Written(granules));
  EXPECT_FALSE(memory.Written(GranuleWord::Of(0x410, 0x440)));
}

TEST(PlanCache, GivesThePlanOfTheRequestAlsoWhenKeysMeet) {
  struct Plan {
    int request;
  };
  PlanCache<int, Plan> plans;
  int made = 0;
  const auto find = [&](int request) {
    return (*plans.Find(request, 7,
                        [&]() -> Result<Plan> {
                          ++made;
                          return Plan{request};
                        }))
        ->request;
  };
  EXPECT_EQ(find(1), 1);
  EXPECT_EQ(find(1), 1);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(find(2), 2);
  EXPECT_EQ(find(1), 1);
  EXPECT_EQ(made, 3);
}

}  // namespace
}  // namespace laneshift::emulator
