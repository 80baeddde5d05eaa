#include "emulator/units/mbarrier.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace laneshift::emulator {
namespace {

template <typename R>
std::string Misuse(const R& result) {
  return result ? std::string() : result.error().message;
}

TEST(Mbarrier, OnePhaseOfOneArrivalAndItsBytes) {
  Mbarrier b;
  ASSERT_TRUE(b.Init(1));
  EXPECT_FALSE(*b.TestParity(0));
  EXPECT_TRUE(*b.TestParity(1));  // the phase before the first counts as complete
  ASSERT_TRUE(b.ArriveExpectBytes(4096));
  EXPECT_FALSE(*b.TestParity(0));
  ASSERT_TRUE(b.CompleteBytes(1024));
  ASSERT_TRUE(b.CompleteBytes(3072));
  EXPECT_TRUE(*b.TestParity(0));
  EXPECT_EQ(b.phase(), 1u);
  EXPECT_EQ(b.pending(), 1);
}

TEST(Mbarrier, BytesMayArriveBeforeTheyAreExpected) {
  Mbarrier b;
  ASSERT_TRUE(b.Init(1));
  ASSERT_TRUE(b.CompleteBytes(512));
  EXPECT_EQ(b.bytes(), -512);
  EXPECT_FALSE(*b.TestParity(0));
  ASSERT_TRUE(b.ArriveExpectBytes(512));
  EXPECT_TRUE(*b.TestParity(0));
}

TEST(Mbarrier, ABareExpectCanCompleteThePhase) {
  Mbarrier b;
  ASSERT_TRUE(b.Init(1));
  ASSERT_TRUE(b.CompleteBytes(16));
  ASSERT_TRUE(b.Arrive());
  EXPECT_EQ(b.phase(), 0u);
  ASSERT_TRUE(b.ExpectBytes(16));
  EXPECT_EQ(b.phase(), 1u);
}

TEST(Mbarrier, EveryMisuseHasItsName) {
  Mbarrier b;
  EXPECT_NE(Misuse(b.Arrive()).find("not initialised"), std::string::npos);
  EXPECT_NE(Misuse(b.TestParity(0)).find("not initialised"), std::string::npos);
  EXPECT_NE(Misuse(b.Invalidate()).find("not initialised"), std::string::npos);
  EXPECT_NE(Misuse(b.Init(0)).find("count out of range"), std::string::npos);
  EXPECT_NE(Misuse(b.Init(1 << 20)).find("count out of range"), std::string::npos);
  ASSERT_TRUE(b.Init(Mbarrier::kMaxCount));
  EXPECT_NE(Misuse(b.Init(1)).find("already initialised"), std::string::npos);
  EXPECT_NE(Misuse(b.AddPending()).find("count out of range"), std::string::npos);
  ASSERT_TRUE(b.Invalidate());
  ASSERT_TRUE(b.Init(2));
  EXPECT_NE(Misuse(b.Arrive(0)).find("no arrivals"), std::string::npos);
  EXPECT_NE(Misuse(b.Arrive(3)).find("too many arrivals"), std::string::npos);
  EXPECT_NE(Misuse(b.Arrive(2, Mbarrier::Completion::kNoComplete)).find("noComplete"), std::string::npos);
  EXPECT_NE(Misuse(b.ExpectBytes(1 << 20)).find("bytes out of range"), std::string::npos);
  ASSERT_TRUE(b.ExpectBytes(Mbarrier::kMaxCount));
  EXPECT_NE(Misuse(b.ExpectBytes(1)).find("bytes out of range"), std::string::npos);
  ASSERT_TRUE(b.CompleteBytes(Mbarrier::kMaxCount));
  const Mbarrier::PtxToken first = *b.Arrive(2);
  EXPECT_TRUE(*b.TestToken(first));
  const Mbarrier::PtxToken second = *b.Arrive(1);
  EXPECT_FALSE(*b.TestToken(second));
  ASSERT_TRUE(b.Arrive(1));
  EXPECT_NE(Misuse(b.TestToken(first)).find("stale token"), std::string::npos);
}

TEST(Mbarrier, TokensOfNoCompleteRememberThePendingCount) {
  Mbarrier b;
  ASSERT_TRUE(b.Init(5));
  const auto token = b.Arrive(2, Mbarrier::Completion::kNoComplete);
  ASSERT_TRUE(token);
  EXPECT_EQ(token->pending, 5);
  EXPECT_EQ(Mbarrier::PtxToken::Unpack(token->Pack()).pending, 5);
  EXPECT_EQ(Mbarrier::PtxToken::Unpack(token->Pack()).phase, 0u);
}

TEST(Mbarrier, DroppingEveryParticipantLeavesAByteCounter) {
  Mbarrier b;
  ASSERT_TRUE(b.Init(1));
  ASSERT_TRUE(b.ArriveAndDrop());
  EXPECT_EQ(b.phase(), 1u);
  EXPECT_TRUE(b.dropped_to_zero());
  ASSERT_TRUE(b.ExpectBytes(16));
  ASSERT_TRUE(b.CompleteBytes(16));
  EXPECT_EQ(b.phase(), 2u);  // as an H200 does
}

// The state as sums over the history of the current phase: nothing is counted down.
struct History {
  int expected = 0, phase = 0, arrivals = 0, added = 0, dropped = 0;
  std::vector<int64_t> bytes;
  int64_t Outstanding() const {
    int64_t sum = 0;
    for (int64_t b : bytes) sum += b;
    return sum;
  }
  int Pending() const { return expected + added - arrivals; }
  void Settle() {
    if (arrivals != expected + added || Outstanding() != 0) return;
    *this = History{expected - dropped, phase + 1, 0, 0, 0, {}};
  }
};

TEST(Mbarrier, RandomSequencesFollowTheHistory) {
  std::mt19937 random(17);
  for (int round = 0; round < 500; ++round) {
    Mbarrier b;
    History h;
    h.expected = 1 + static_cast<int>(random() % 6);
    ASSERT_TRUE(b.Init(h.expected));
    for (int step = 0; step < 60; ++step) {
      const int64_t bytes = 16 * static_cast<int64_t>(random() % 5);
      const int count = 1 + static_cast<int>(random() % 3);
      const bool can_arrive = count <= h.Pending();
      switch (random() % 6) {
        case 0:
          ASSERT_TRUE(b.ExpectBytes(bytes));
          h.bytes.push_back(bytes);
          h.Settle();
          break;
        case 1:
          ASSERT_TRUE(b.CompleteBytes(bytes));
          h.bytes.push_back(-bytes);
          h.Settle();
          break;
        case 2: {
          const int phase = h.phase;
          const auto token = b.Arrive(count);
          ASSERT_EQ(static_cast<bool>(token), can_arrive);
          if (!can_arrive) break;
          h.arrivals += count;
          h.Settle();
          EXPECT_EQ(*b.TestToken(*token), h.phase != phase);
          break;
        }
        case 3:
          if (h.Pending() < 1) break;
          ASSERT_TRUE(b.ArriveExpectBytes(bytes));
          h.bytes.push_back(bytes);
          h.arrivals += 1;
          h.Settle();
          break;
        case 4:
          if (h.expected - h.dropped < 2 || !can_arrive || count > 1) break;
          ASSERT_TRUE(b.ArriveAndDrop(1));
          h.arrivals += 1;
          h.dropped += 1;
          h.Settle();
          break;
        case 5:
          ASSERT_TRUE(b.AddPending());
          h.added += 1;
          break;
      }
      ASSERT_EQ(b.phase(), static_cast<uint32_t>(h.phase));
      ASSERT_EQ(b.pending(), h.Pending());
      ASSERT_EQ(b.bytes(), h.Outstanding());
      ASSERT_EQ(b.expected(), h.expected - h.dropped);
      ASSERT_EQ(*b.TestParity(0), h.phase % 2 == 1);
      ASSERT_EQ(*b.TestParity(1), h.phase % 2 == 0);
    }
  }
}

}  // namespace
}  // namespace laneshift::emulator
