// The verb `probe` as its users call it, on emulated devices.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tools/called_program.h"

namespace laneshift::tools {
namespace {

using Json = nlohmann::json;

class ProbeVerb : public CalledProgram {};

TEST_F(ProbeVerb, ChecksDataOnAnEmulatorAndSaysThatItsClocksAreNotTimes) {
  const std::vector<std::string> arguments = {"probe",  "--device", "emulator", "--target", "sm_100a",
                                              "--only", "shift",    "--only",   "ld.32x32b"};
  const auto objects = CallJson(arguments);
  ASSERT_EQ(objects.size(), 1u);
  EXPECT_EQ(objects[0]["clocks"], "not times");
  EXPECT_EQ(objects[0]["left_out"], 0);
  ASSERT_EQ(objects[0]["probes"].size(), 5u);
  for (const Json& probe : objects[0]["probes"]) {
    EXPECT_EQ(probe["data"], "right") << probe.dump();
    EXPECT_TRUE(probe["figure"].is_null() && probe["ratio"].is_null()) << probe.dump();
    EXPECT_GT(probe["model"], 0);
  }
  EXPECT_EQ(objects[0]["probes"][0]["fact"], "tensor_move");
  for (const Json& fact : objects[0]["facts"]) EXPECT_EQ(fact["measured"], false) << fact.dump();
  const auto text = Call(arguments);
  EXPECT_NE(text.output.find("clocks are not times"), std::string::npos) << text.output;
  EXPECT_NE(text.messages.find("shift, from point 1 of 5"), std::string::npos) << text.messages;
}

// With another answer to what the manual leaves open the data are others: a probe does not believe its clocks blindly.
TEST_F(ProbeVerb, ReportsWrongData) {
  const auto objects = CallJson({"probe", "--device", "emulator", "--target", "sm_100a", "--only", "shift.cta1",
                                 "--policy", "shift_scope=cta", "--async", "eager"},
                                1);
  ASSERT_EQ(objects.size(), 1u);
  const Json& probe = objects[0]["probes"][0];
  EXPECT_EQ(probe["data"], "wrong");
  EXPECT_NE(probe["wrong"].get<std::string>().find("words of CTA 0 differ"), std::string::npos) << probe.dump();
}

TEST_F(ProbeVerb, ListsWhatATargetHasAndWritesAFile) {
  const auto listed = CallJson({"probe", "--list", "--target", "sm_90a"});
  ASSERT_EQ(listed.size(), 1u);
  size_t points = 0;
  for (const Json& family : listed[0]["families"]) {
    EXPECT_EQ(family["points"].empty(), family["name"] == "machine" || family["name"] == "mma" ||
                                            family["name"] == "mma_latency" || family["name"] == "shift" ||
                                            family["name"] == "cp" || family["name"] == "ld" ||
                                            family["name"] == "ld_latency")
        << family.dump();
    points += family["points"].size();
  }
  EXPECT_GT(points, 80u);
  const std::string file = File("probe.json");
  const auto made = CallJson({"probe", "--device", "emulator", "--only", "gpc", "--out", file});
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(Json::parse(std::ifstream(file), nullptr, false), made[0]);
}

// What a B200 has answered is used without one: the model's shifts take longer.
TEST_F(ProbeVerb, LoadsTheFactsOfAnotherDevice) {
  const std::string report = File("b200.json");
  std::ofstream(report) << R"({"target": "sm_100a", "facts": [{"name": "tensor_move", "probed": 200},
      {"name": "load_latency", "probed": 300}, {"name": "port", "probed": null}]})";
  const std::vector<std::string> explain = {"explain",  "conv",    "n=8",   "h=28",  "w=28",       "c=64",
                                            "k=64",     "r=3",     "s=3",   "pad=1", "--schedule", "reuse=lane_shift",
                                            "--target", "sm_100a", "--top", "1"};
  const auto before = CallJson(explain);
  const auto loaded = CallJson({"probe", "--load", report, "--device", "emulator", "--target", "sm_100a"});
  ASSERT_EQ(loaded.size(), 1u);
  for (const Json& fact : loaded[0]["facts"]) {
    if (fact["name"] == "tensor_move") {
      EXPECT_EQ(fact["value"], 200);
    }
    if (fact["name"] == "load_latency") {
      EXPECT_FALSE(fact["refused"].is_null()) << "no B200 was probed under load";
    }
  }
  const auto after = CallJson(explain);
  ASSERT_FALSE(before.empty() || after.empty());
  EXPECT_GT(after[0]["predicted_us"].get<double>(), before[0]["predicted_us"].get<double>());
}

}  // namespace
}  // namespace laneshift::tools
