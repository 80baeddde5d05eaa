#include "autotune/machine.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace laneshift::autotune {
namespace {

const target::Target& TargetNamed(const char* name) { return **target::FindTarget(name); }

TEST(Machine, EveryFactIsPublishedForBothTargets) {
  for (const char* name : {"sm_100a", "sm_90a"}) {
    const Machine machine = PublishedMachine(TargetNamed(name));
    EXPECT_EQ(machine.sm_count, TargetNamed(name).default_sm_count);
    for (const MachineFact& fact : FactsOf(machine)) {
      // What memory and the walk over tiles cost more on an H200 is in its other constants.
      const bool in_others =
          std::string_view(name) == "sm_90a" && (fact.name == "memory_queue" || fact.name == "walk_lag");
      EXPECT_EQ(fact.value == 0, in_others) << fact.name;
      EXPECT_GE(fact.value, 0) << fact.name;
      EXPECT_FALSE(fact.doc.empty() || fact.unit.empty() || fact.source.empty()) << fact.name;
    }
  }
}

TEST(Machine, WrongFactsAreRefusedByName) {
  Machine machine = PublishedMachine(TargetNamed("sm_90a"));
  const Machine before = machine;
  EXPECT_NE(SetFact(machine, "load_latencie", "1").error().message.find("did you mean 'load_latency'"),
            std::string::npos);
  for (const char* answer : {"", "-1", "0", "nan", "1e999", "12 clocks"}) {
    EXPECT_FALSE(SetFact(machine, "load_latency", answer)) << answer;
  }
  EXPECT_EQ(machine, before);
}

TEST(Machine, StoredFactsReplacePublishedOnesOfTheirDeviceAlone) {
  store::Store store = store::Store::Open({});
  const target::Target& target = TargetNamed("sm_90a");
  ASSERT_TRUE(store.PutFact({.device = "one", .name = StoredName("load_latency"), .answer = "777.5"}));
  ASSERT_TRUE(store.PutFact({.device = "one", .name = StoredName("launch_us"), .answer = "soon"}));
  const Machine machine = MachineOf(target, 99, "one", store);
  EXPECT_EQ(machine.sm_count, 99);
  EXPECT_EQ(machine.load_latency, 777.5);
  EXPECT_EQ(machine.launch_us, PublishedMachine(target).launch_us) << "no number is no fact";
  EXPECT_EQ(MachineOf(target, 99, "two", store), PublishedMachine(target, 99));
}

}  // namespace
}  // namespace laneshift::autotune
