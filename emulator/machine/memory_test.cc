#include "emulator/machine/memory.h"

#include <gtest/gtest.h>

#include "emulator/machine/cluster.h"
#include "emulator/machine/host_thread.h"
#include "emulator/machine/plan_cache.h"

namespace laneshift::emulator {
namespace {

TEST(GranuleWords, SayWhatTheRangesSay) {
  const std::vector<SharedRange> ranges = {{0x400, 0x410}, {0x7f0, 0x820}, {0xc00, 0x1400}};
  const auto words = GranulesOf(ranges);
  ASSERT_EQ(words->size(), 4u);
  EXPECT_EQ((*words)[0].mask, uint64_t{1} | uint64_t{1} << 63);  // both ranges that overlap block 1
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

TEST(SharedMemory, IsAsNewAfterAReset) {
  // Up to the end of a window that is not a whole number of KiB.
  SharedMemory memory(4096 + 24);
  const auto change = [&](uint32_t begin, uint32_t end) {
    for (uint32_t at = begin; at < end; ++at) *memory.At(at) = 0xee;
  };
  const std::pair<uint32_t, uint32_t> parts[] = {
      {0x403, 0x404}, {0x7f8, 0x818}, {0xc00, 0x1000}, {0x1004, 0x100c}, {0x1400, 0x1418}};
  for (const auto& [begin, end] : parts) {
    change(begin, end);
    memory.MarkWritten(begin, end - begin);
    EXPECT_TRUE(memory.Written(begin, end - begin));
    EXPECT_FALSE(memory.Written(begin - 1, 2));
  }
  change(0x1200, 0x1240);
  memory.MarkChanged(0x1200, 0x40);
  EXPECT_FALSE(memory.Written(0x1200, 4));
  memory.SetBarrier(0x1300, true);
  memory.Reset();
  for (uint32_t at = kSharedBase; at < kSharedBase + memory.size(); ++at) {
    ASSERT_EQ(*memory.At(at), 0) << at;
    ASSERT_FALSE(memory.Written(at, 1)) << at;
    ASSERT_FALSE(memory.HoldsBarrier(at)) << at;
  }
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
  // Those that a loop asks for repeatedly are kept.
  for (int turn = 0; turn < 3; ++turn) {
    for (int request = 1; request <= 4; ++request) EXPECT_EQ(find(request), request);
  }
  EXPECT_EQ(made, 4);
  EXPECT_EQ(find(5), 5);
  EXPECT_EQ(find(4), 4);
  EXPECT_EQ(made, 5);
  EXPECT_EQ(find(1), 1);  // the least recently requested one
  EXPECT_EQ(made, 6);
}

TEST(HostThread, KeepsWhatTheLastFewSizesOfLaunchesHaveLeft) {
  HostThread host;
  for (const uint32_t bytes : {1024u, 2048u, 4096u, 8192u}) {
    host.Prepare(bytes, true);
    EXPECT_TRUE(host.kept().memories.empty());
    host.kept().memories.emplace_back();
  }
  for (const uint32_t bytes : {2048u, 8192u, 4096u, 1024u}) {
    host.Prepare(bytes, true);
    EXPECT_EQ(host.kept().memories.size(), 1u) << bytes;
  }
  host.Prepare(1024, false);
  EXPECT_TRUE(host.kept().memories.empty());
  host.Prepare(2048, true);  // the least recently used one
  EXPECT_TRUE(host.kept().memories.empty());
  host.Prepare(1024, true);
  EXPECT_EQ(host.kept().memories.size(), 1u);
}

}  // namespace
}  // namespace laneshift::emulator
