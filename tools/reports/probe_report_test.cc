#include "tools/reports/probe_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace laneshift::tools {
namespace {

using autotune::Machine;

// A device that measures memory ten times as fast as its pins are, and a believable clock.
runtime::MachineProbe Fake() { return {.facts = {{"clock_ghz", 1.7}, {"memory_rate", 42}, {"load_latency", -3}}}; }

TEST(ProbeReport, WhatNoDeviceDoesIsReportedAndNotUsed) {
  const target::Target& target = **target::FindTarget("sm_90a");
  Machine used = autotune::PublishedMachine(target);
  used.clock_ghz = 1.7;
  const std::vector<ProbedRow> rows = CompareFacts(Fake(), target, used);
  const nlohmann::ordered_json json = FactsJson(rows);
  ASSERT_EQ(json.size(), rows.size());
  int seen = 0;
  for (const auto& fact : json) {
    if (fact["name"] == "clock_ghz") {
      ++seen;
      EXPECT_EQ(fact["measured"], true);
      EXPECT_EQ(fact["value"], 1.7);
      EXPECT_TRUE(fact["refused"].is_null());
    } else if (fact["name"] == "memory_rate" || fact["name"] == "load_latency") {
      ++seen;
      EXPECT_EQ(fact["measured"], false);
      EXPECT_EQ(fact["value"], fact["published"]);
      EXPECT_FALSE(fact["probed"].is_null());
      EXPECT_NE(fact["refused"].get<std::string>().find("is not plausible"), std::string::npos);
    } else {
      EXPECT_TRUE(fact["probed"].is_null()) << fact["name"];
    }
  }
  EXPECT_EQ(seen, 3);
  const std::string text = FactsText(rows, {});
  EXPECT_NE(text.find("not used: memory_rate = 42 TB/s is not plausible: published are 4.33"), std::string::npos)
      << text;
  EXPECT_NE(text.find("The model keeps what is published"), std::string::npos);
}

TEST(ProbeReport, WhatIsOnlyReportedIsNoFaultOfTheDevice) {
  const target::Target& target = **target::FindTarget("sm_100a");
  const std::string text =
      FactsText(CompareFacts({.facts = {{"load_latency", 300}}}, target, autotune::PublishedMachine(target)), {});
  EXPECT_NE(text.find("not used: load_latency = 300 clk is only reported"), std::string::npos) << text;
  EXPECT_EQ(text.find("Is another program"), std::string::npos) << text;
}

TEST(ProbeReport, NothingIsSaidWhereAllIsPlausible) {
  const target::Target& target = **target::FindTarget("sm_90a");
  const std::string text =
      FactsText(CompareFacts({.facts = {{"port", 107}}}, target, autotune::PublishedMachine(target)), {});
  EXPECT_EQ(text.find("not used"), std::string::npos) << text;
}

}  // namespace
}  // namespace laneshift::tools
