#include "tools/reports/measured_times.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace laneshift::tools {
namespace {

Problem Cube() { return *CompleteProblem(*ParseProblem("gemm m=4096 n=4096 k=4096")); }

std::string BenchLine(const char* problem, const char* target, const char* more) {
  return std::string(R"({"problem": ")") + PrintProblem(*CompleteProblem(*ParseProblem(problem))) +
         R"(", "target": ")" + target + R"(", "device": "a GPU", "time_us": 200.0)" + more + "}\n";
}

TEST(PeerTimes, AreThoseOfTheProblemAndTarget) {
  const std::string text =
      BenchLine("gemm m=4096 n=4096 k=8192", "sm_90a", R"(, "cublas_us": 400.0, "vs_cublas": 2.0)") +
      BenchLine("gemm m=4096 n=4096 k=4096", "sm_90a",
                R"(, "cublas_us": 220.0, "vs_cublas": 1.1, "cublaslt_us": 210.0, "vs_cublaslt": 1.05)") +
      "\n" + BenchLine("gemm m=4096 n=4096 k=4096", "sm_100a", R"(, "cublas_us": 90.0, "vs_cublas": 0.45)");
  const auto peers = ReadPeers(text, Cube(), "sm_90a");
  ASSERT_TRUE(peers) << peers.error().message;
  ASSERT_EQ(peers->size(), 2u);
  EXPECT_EQ(PeerText(peers->at(0), Cube()),
            "220.00 us, 625 TFLOP/s on a GPU; laneshift took 200.00 us in the same run");
  EXPECT_EQ(peers->at(1).name, "cublaslt");
  const auto json = MeasuredTimesJson({.ours = Measurement{.us = 100, .samples = {99, 101}}, .peers = *peers}, Cube());
  EXPECT_EQ(json["peers"].at(1)["us"], 210.0);
  EXPECT_NEAR(json["measured"]["tflops"].get<double>(), 1374.4, 0.1);
  EXPECT_EQ(json["measured"]["samples"].size(), 2u);
}

TEST(PeerTimes, OfAnotherProblemOrOtherTextAreRefused) {
  const auto message = [](const std::string& text) {
    const auto peers = ReadPeers(text, Cube(), "sm_90a");
    return peers ? std::string("taken") : peers.error().message;
  };
  EXPECT_NE(message(BenchLine("gemm m=64 n=64 k=64", "sm_90a", "")).find("the last one is of gemm m=64"),
            std::string::npos);
  EXPECT_NE(message(BenchLine("gemm m=4096 n=4096 k=4096", "sm_90a", "")).find("with --vs"), std::string::npos);
  EXPECT_NE(message(BenchLine("gemm m=4096 n=4096 k=4096", "sm_90a", R"(, "cublas_us": null, "vs_cublas": 1)"))
                .find("with --vs"),
            std::string::npos);
  for (const char* text : {"{", "[1]", "12", "{\"problem\": 3}", "problem\n"})
    EXPECT_NE(message(text).find("no object with a problem"), std::string::npos) << text;
  EXPECT_NE(message("").find("none of gemm"), std::string::npos);
}

// A trial that failed has no time, and a later trial replaces an earlier one.
TEST(Measurements, AreOfTheLastTrialWithATime) {
  const Schedule schedule = ParseSchedule("tile=128x128x64")->value;
  std::vector<store::TrialRecord> trials(4);
  for (store::TrialRecord& trial : trials) trial.schedule = PrintSchedule(schedule);
  trials[0].time_us = 5;
  trials[1].time_us = 4;
  trials[1].samples = {store::Sample{.time_us = 4}};
  trials[3].schedule = "another";
  trials[3].time_us = 1;
  const auto measured = MeasurementOf(schedule, trials);
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->us, 4);
  EXPECT_EQ(measured->samples.size(), 1u);
  EXPECT_EQ(MeasurementText(std::nullopt), "not measured on this device");
}

}  // namespace
}  // namespace laneshift::tools
