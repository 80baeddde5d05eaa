#include "target/tensor_facts.h"

#include <gtest/gtest.h>

namespace laneshift::target {
namespace {

TEST(TensorFacts, AreReadBackFromTheirWords) {
  const TensorFacts facts{ShiftScope::kAddressed, RefreshLane::kIgnored, AshiftTime::kOther};
  TensorFacts read;
  for (const FactAnswer& fact : AnswersOf(facts)) {
    EXPECT_FALSE(fact.question.empty());
    EXPECT_TRUE(SetFact(read, fact.name, fact.answer)) << fact.name << "=" << fact.answer;
  }
  EXPECT_TRUE(read == facts);
  EXPECT_EQ(AnswersOf({}).front().answer, "groups");
}

TEST(TensorFacts, UnknownWordsAreRefusedWithTheKnownOnes) {
  TensorFacts facts;
  EXPECT_NE(SetFact(facts, "shift_scope", "half").error().message.find("groups, addressed, cta, other"),
            std::string::npos);
  EXPECT_NE(SetFact(facts, "scope", "groups").error().message.find("cp_4x256b_lane"), std::string::npos);
  EXPECT_TRUE(facts == TensorFacts{});
}

}  // namespace
}  // namespace laneshift::target
