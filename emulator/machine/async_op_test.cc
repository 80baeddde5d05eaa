#include "emulator/machine/async_op.h"

#include <gtest/gtest.h>

namespace laneshift::emulator {
namespace {

// What an operation was must not be seen in the next one that has its memory.
TEST(AsyncOp, ComesFromItsPoolAsNew) {
  base::Pool<AsyncOp> pool, other;
  OpHandle first = pool.Take();
  AsyncOp* const place = first.get();
  first->kind = AsyncKind::kMma;
  first->state = AsyncOp::State::kReleased;
  first->lane = 7;
  first->in_chain = first->reads_released = true;
  first->loads.push_back({16, 32});
  first->copy.runs.emplace_back();
  first->copied.push_back({0, 16});
  first->global.push_back({16, 32, true});
  first->after.push_back(pool.Take());
  first->effect = [](AsyncOp&) { return true; };
  first = nullptr;
  const OpHandle second = pool.Take();
  EXPECT_EQ(second.get(), place);
  EXPECT_EQ(second->kind, AsyncKind::kBulkLoad);
  EXPECT_EQ(second->state, AsyncOp::State::kPending);
  EXPECT_EQ(second->lane, 0);
  EXPECT_FALSE(second->in_chain || second->reads_released || second->effect);
  EXPECT_TRUE(second->loads.empty() && second->copy.runs.empty() && second->copied.empty() && second->global.empty() &&
              second->after.empty());
  EXPECT_GE(second->loads.capacity(), 1u) << "lists keep their memory";
  other.Refill(pool);
  EXPECT_NE(other.Take(), nullptr);
}

}  // namespace
}  // namespace laneshift::emulator
