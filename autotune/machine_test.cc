#include "autotune/machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/text.h"

namespace laneshift::autotune {
namespace {

TEST(Machine, EveryFactIsPublishedForBothTargets) {
  for (const char* name : {"sm_100a", "sm_90a"}) {
    const Machine machine = PublishedMachine(target::NamedTarget(name));
    EXPECT_EQ(machine.sm_count, target::NamedTarget(name).default_sm_count);
    for (const MachineFact& fact : FactsOf(machine)) {
      // The higher cost of memory and of static scheduling on an H200 is in its other constants, and clusters do not
      // relieve its L2. The power of loads of a B200 is in its clock.
      const std::set<std::string_view> zeros =
          std::string_view(name) == "sm_90a" ? std::set<std::string_view>{"memory_queue", "walk_lag", "cluster_relief"}
                                             : std::set<std::string_view>{"load_power"};
      const bool in_others = zeros.contains(fact.name);
      EXPECT_EQ(fact.value == 0, in_others) << fact.name;
      EXPECT_GE(fact.value, 0) << fact.name;
      EXPECT_FALSE(fact.doc.empty() || fact.unit.empty() || fact.source.empty()) << fact.name;
    }
  }
}

TEST(Machine, WrongFactsAreRefusedByName) {
  Machine machine = PublishedMachine(target::NamedTarget("sm_90a"));
  const Machine before = machine;
  EXPECT_NE(SetFact(machine, "load_latencie", "1").error().message.find("did you mean 'load_latency'"),
            std::string::npos);
  for (const char* answer : {"", "-1", "0", "nan", "1e999", "12 clocks"}) {
    EXPECT_FALSE(SetFact(machine, "load_latency", answer)) << answer;
  }
  EXPECT_EQ(machine, before);
}

TEST(Machine, StoredFactsReplacePublishedOnesOnlyOfTheirDevice) {
  store::Store store = store::Store::Open({});
  const target::Target& target = target::NamedTarget("sm_90a");
  ASSERT_TRUE(store.PutFact({.device = "one", .name = StoredName("clock_ghz"), .answer = "1.7"}));
  ASSERT_TRUE(store.PutFact({.device = "one", .name = StoredName("launch_us"), .answer = "soon"}));
  const Machine machine = MachineOf(target, 99, "one", store);
  EXPECT_EQ(machine.sm_count, 99);
  EXPECT_EQ(machine.clock_ghz, 1.7);
  EXPECT_EQ(machine.launch_us, PublishedMachine(target).launch_us) << "no number is no fact";
  EXPECT_EQ(MachineOf(target, 99, "two", store), PublishedMachine(target, 99));
}

// What five runs of the probe gave on an H200 is believed; what no device does is not, and is not used.
TEST(Machine, MeasuredFactsThatNoDeviceHasAreRefused) {
  const target::Target& target = target::NamedTarget("sm_90a");
  struct Row {
    const char* name;
    double value;
    bool plausible;
  };
  for (const Row& row :
       {Row{"clock_ghz", 1.98, true}, Row{"port", 107.7, true}, Row{"memory_latency", 642, true},
        Row{"launch_us", 4.18, true}, Row{"l2_rate", 69.3, true}, Row{"load_latency", 289, true},
        Row{"memory_rate", 4.38, true}, Row{"memory_rate", 5.5, false}, Row{"memory_rate", -4, false},
        Row{"shared_read", 160, false}, Row{"shared_read", 127, true}, Row{"product_columns", 2.2, false},
        Row{"clock_ghz", 3.5, false}, Row{"load_latency", 9e4, false}, Row{"launch_us", 0, false},
        Row{"outside_rate", 120, false}, Row{"memory_queue", 100, false}}) {
    EXPECT_EQ(FittedFact(target, row.name, row.value).has_value(), row.plausible) << row.name << " " << row.value;
    store::Store store = store::Store::Open({});
    ASSERT_TRUE(store.PutFact({.device = "d", .name = StoredName(row.name), .answer = base::Cat(row.value)}));
    EXPECT_EQ(MachineOf(target, 132, "d", store) == PublishedMachine(target, 132),
              !row.plausible || std::string_view(row.name) == "clock_ghz")
        << row.name;
  }
  EXPECT_NE(FittedFact(target, "memory_rate", 5.5).error().message.find("published are 4.33"), std::string::npos);
  EXPECT_FALSE(FittedFact(target, "memory_rat", 4));
}

// The H200 to which the figures are fitted is predicted by them, whatever a probe sees of it by itself; a device that
// answers half as late has half of the figure.
TEST(Machine, MeasuredFactsMoveTheFittedOnesInProportion) {
  const target::Target& target = target::NamedTarget("sm_90a");
  const Machine published = PublishedMachine(target);
  EXPECT_NEAR(*FittedFact(target, "load_latency", 298), published.load_latency, 1e-9);
  EXPECT_NEAR(*FittedFact(target, "memory_latency", 637), published.memory_latency, 1e-9);
  EXPECT_NEAR(*FittedFact(target, "l2_rate", 66), published.l2_rate, 1e-9);
  EXPECT_NEAR(*FittedFact(target, "memory_rate", 4.31 / 2), published.memory_rate / 2, 1e-9);
  EXPECT_NEAR(*FittedFact(target, "product_columns", 1.822), published.product_columns, 1e-9);
  EXPECT_NEAR(*FittedFact(target, "product_columns", 2), published.product_columns, 0.03 * published.product_columns)
      << "no device has more";
  EXPECT_EQ(*FittedFact(target, "clock_ghz", 1.7), 1.7) << "a clock is a clock";
}

TEST(Machine, OnlyLatenciesAreReportedWhereNothingIsFittedToAProbedDevice) {
  const target::Target& target = target::NamedTarget("sm_100a");
  const auto fitted = FittedFact(target, "load_latency", 300);
  ASSERT_FALSE(fitted);
  EXPECT_EQ(fitted.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(fitted.error().message.find("is only reported"), std::string::npos) << fitted.error().message;
  EXPECT_EQ(*FittedFact(target, "memory_rate", 7), 7);
  store::Store store = store::Store::Open({});
  ASSERT_TRUE(store.PutFact({.device = "d", .name = StoredName("load_latency"), .answer = "300"}));
  EXPECT_EQ(MachineOf(target, 148, "d", store), PublishedMachine(target, 148));
}

// What nobody has published is believed in a wide range, and then used as it is.
TEST(Machine, AnEstimateIsReplacedByAMeasurement) {
  const target::Target& target = target::NamedTarget("sm_100a");
  store::Store store = store::Store::Open({});
  for (const char* answer : {"3", "64", "300"}) {
    ASSERT_TRUE(store.PutFact({.device = "d", .name = StoredName("tensor_move"), .answer = answer}));
    EXPECT_EQ(MachineOf(target, 148, "d", store).tensor_move, *base::ParseDouble(answer));
  }
  EXPECT_FALSE(FittedFact(target, "tensor_move", 1000)) << "sixty times the estimate is a mistake of the probe";
  EXPECT_EQ(*FittedFact(target, "sums_read", 128), 128);
  EXPECT_FALSE(FittedFact(target, "sums_read", 2000));
}

}  // namespace
}  // namespace laneshift::autotune
