#include "base/pool.h"

#include <gtest/gtest.h>

namespace laneshift::base {
namespace {

struct Node : Pooled<Node> {
  void Reset() {
    next = nullptr;
    numbers.clear();
  }
  Counted<Node> next;
  std::vector<int> numbers;
};

TEST(Pool, GivesWhatNobodyRefersToAsNew) {
  Pool<Node> pool;
  Counted<Node> first = pool.Take();
  Node* const place = first.get();
  first->numbers = {1, 2, 3};
  Counted<Node> second = first;
  first = nullptr;
  EXPECT_NE(pool.Take().get(), place) << "somebody still refers to it";
  EXPECT_EQ(second->numbers.size(), 3u);
  second = nullptr;
  const Counted<Node> again = pool.Take();
  EXPECT_EQ(again.get(), place);
  EXPECT_TRUE(again->numbers.empty());
  EXPECT_GE(again->numbers.capacity(), 3u) << "lists keep their memory";
}

TEST(Pool, TakesBackWhatAnObjectRefersTo) {
  Pool<Node> pool;
  Counted<Node> list;
  for (int i = 0; i < 3000; ++i) {
    Counted<Node> front = pool.Take();
    front->next = std::move(list);
    list = std::move(front);
  }
  list = nullptr;
  Pool<Node> other;
  other.Refill(pool);
  EXPECT_TRUE(other.Take());
}

TEST(Counted, OfAnObjectThatHasOneIsAnother) {
  Pool<Node> pool;
  Counted<Node> one = pool.Take(), another(one.get());
  EXPECT_EQ(one, another);
  one = nullptr;
  another->numbers.push_back(1);
  EXPECT_EQ(pool.Take()->numbers.size(), 0u);
  EXPECT_EQ(another->numbers.size(), 1u);
}

}  // namespace
}  // namespace laneshift::base
