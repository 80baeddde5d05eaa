#include "emulator/machine/pending_ranges.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace laneshift::emulator {
namespace {

TEST(PendingRanges, AgreesWithALinearSearch) {
  struct Plain {
    uint64_t begin, end;
    bool write;
  };
  std::mt19937 random(1);
  std::vector<Plain> plain;
  PendingRanges ranges;
  EXPECT_TRUE(ranges.empty());
  for (int step = 0; step < 4000; ++step) {
    const uint64_t begin = random() % 400;
    const Plain range{begin, begin + 1 + random() % 30, random() % 2 == 0};
    if (plain.size() < 12) {
      plain.push_back(range);
      ranges.Add(range.begin, range.end, range.write);
    } else {
      const size_t victim = random() % plain.size();
      ranges.Remove(plain[victim].begin, plain[victim].end, plain[victim].write);
      plain.erase(plain.begin() + static_cast<ptrdiff_t>(victim));
    }
    const uint64_t from = random() % 400, to = from + 1 + random() % 20;
    const bool write = random() % 2 == 0;
    bool expected = false;
    for (const Plain& p : plain) expected = expected || (from < p.end && p.begin < to && (write || p.write));
    EXPECT_EQ(ranges.Conflicts(from, to, write), expected) << from << " " << to;
  }
  for (const Plain& p : plain) ranges.Remove(p.begin, p.end, p.write);
  EXPECT_TRUE(ranges.empty());
}

TEST(PendingRanges, AreGoneOnceCleared) {
  PendingRanges ranges, other;
  for (uint64_t row = 0; row < 64; ++row) ranges.Add(1000 * row, 1000 * row + 64, true);
  ranges.Clear();
  EXPECT_TRUE(ranges.empty());
  EXPECT_FALSE(ranges.Conflicts(0, 64000, true));
  other.Refill(ranges);
  other.Add(500, 564, true);
  EXPECT_TRUE(other.Conflicts(563, 564, false));
  EXPECT_FALSE(other.Conflicts(1000, 1064, true));
}

}  // namespace
}  // namespace laneshift::emulator
