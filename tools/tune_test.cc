// `tune` and `bench` as programs, on the emulator.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/line_process.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "store/temporary_directory.h"

namespace laneshift::tools {
namespace {

using Json = nlohmann::json;

class TuneProgram : public testing::Test {
 protected:
  TuneProgram() { setenv("LANESHIFT_CACHE_DIR", directory_.path().c_str(), 1); }
  ~TuneProgram() override { unsetenv("LANESHIFT_CACHE_DIR"); }

  static base::ProgramResult Call(std::vector<std::string> words) {
    words.insert(words.begin(), LANESHIFT_PROGRAM);
    const auto result = base::RunProgram({.argv = words, .timeout = std::chrono::minutes(5)});
    EXPECT_TRUE(result.has_value());
    return result ? *result : base::ProgramResult{};
  }
  static std::vector<Json> CallJson(std::vector<std::string> words) {
    words.push_back("--json");
    const base::ProgramResult result = Call(std::move(words));
    EXPECT_EQ(result.exit_code, 0) << result.messages;
    std::vector<Json> objects;
    for (const std::string_view line : base::Split(base::Trim(result.output), '\n')) {
      objects.push_back(Json::parse(line));
    }
    return objects;
  }

  store::TemporaryDirectory directory_;
};

constexpr char kTinyGemm[] = "gemm m=96 n=64 k=128 a=bf16 b=bf16 d=bf16";

TEST_F(TuneProgram, WithoutAGpuTheChoiceIsPredictedVerifiedStoredAndServed) {
  const auto tuned = CallJson({"tune", kTinyGemm, "--device", "emulator", "--target", "sm_100a"});
  ASSERT_EQ(tuned.size(), 1u);
  for (const char* key :
       {"problem", "target", "device", "schedule", "time_us", "predicted_us", "measured", "trials", "verified"}) {
    EXPECT_TRUE(tuned[0].contains(key)) << key;
  }
  EXPECT_EQ(tuned[0]["problem"], kTinyGemm);
  EXPECT_EQ(tuned[0]["target"], "sm_100a");
  EXPECT_EQ(tuned[0]["measured"], false);
  EXPECT_TRUE(tuned[0]["time_us"].is_null());
  EXPECT_EQ(tuned[0]["verified"], true);
  EXPECT_EQ(tuned[0]["trials"], 1);
  EXPECT_GT(tuned[0]["predicted_us"], 0);

  const auto again = CallJson({"tune", kTinyGemm, "--device", "emulator", "--target", "sm_100a", "--candidates"});
  EXPECT_EQ(again[0]["trials"], 0);
  EXPECT_EQ(again[0]["known_trials"], 1);
  EXPECT_EQ(again[0]["schedule"], tuned[0]["schedule"]);
  EXPECT_EQ(again[0]["candidates"].size(), again[0]["space"]);

  const auto run = CallJson({"run", kTinyGemm, "--device", "emulator", "--target", "sm_100a", "--check"});
  EXPECT_EQ(run[0]["schedule"], tuned[0]["schedule"]);
  EXPECT_EQ(run[0]["cache"], "store");
  EXPECT_EQ(run[0]["verified"], true);
}

TEST_F(TuneProgram, ShardsDivideTheProblems) {
  std::vector<std::string> seen;
  for (const char* shard : {"1/2", "2/2"}) {
    for (const Json& tuned : CallJson({"tune", "gemm m=16 n=16 k=64", "gemm m=32 n=16 k=64", "gemm m=48 n=16 k=64",
                                       "--device", "emulator", "--shard", shard})) {
      seen.push_back(tuned["problem"].get<std::string>().substr(5, 4));
    }
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"m=16", "m=48", "m=32"}));
}

TEST_F(TuneProgram, WhatIsNotUnderstoodIsRefusedBeforeAnythingRuns) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"--budget", "soon"},
                                                                                     {"--shard", "3/2"},
                                                                                     {"--devices", "0,0"},
                                                                                     {"--search", "luck"},
                                                                                     {"--deadline", "-1"},
                                                                                     {"--async", "sideways"}}) {
    std::vector<std::string> call = {"tune", kTinyGemm};
    call.insert(call.end(), words.begin(), words.end());
    const base::ProgramResult result = Call(call);
    EXPECT_EQ(result.exit_code, 2) << words[0];
    EXPECT_NE(result.messages.find("laneshift: error:"), std::string::npos) << result.messages;
  }
  EXPECT_EQ(Call({"tune", kTinyGemm, "--device", "cuda:900"}).exit_code, 4);
  EXPECT_EQ(Call({"bench", kTinyGemm, "--device", "emulator"}).exit_code, 3);
  EXPECT_EQ(Call({"bench", kTinyGemm, "--vs", "somebody", "--device", "emulator"}).exit_code, 2);
}

TEST_F(TuneProgram, CtrlCStopsAfterThePresentTrialAndKeepsWhatWasDone) {
  std::vector<std::string> words = {LANESHIFT_PROGRAM, "tune", "--json", "--device", "emulator"};
  for (int m = 1; m <= 60; ++m) words.push_back(base::Cat("gemm m=", 16 * m, " n=16 k=64"));
  auto tuner = base::LineProcess::Start(words);
  ASSERT_TRUE(tuner.has_value());
  ASSERT_TRUE(tuner->Read(std::chrono::minutes(2)).has_value());
  ASSERT_EQ(kill(tuner->pid(), SIGINT), 0);
  int told = 1;
  while (tuner->Read(std::chrono::minutes(2))) ++told;
  EXPECT_EQ(tuner->End(), "ended with exit code 130");
  EXPECT_LT(told, 60);
  // The first one is there; it is not tried again.
  const auto first = CallJson({"tune", "gemm m=16 n=16 k=64", "--device", "emulator"});
  EXPECT_EQ(first[0]["trials"], 0);
}

// A trial that would take long is given up, without a verdict, and the program says what it keeps.
TEST_F(TuneProgram, CtrlCIsAnsweredAtOnce) {
  const std::string problem =
      "gemm m=4096 n=4096 k=4096 lda=4104";  // minutes on the emulator, which reduces packed ones only
  const std::string messages = directory_.path() + "/messages";
  auto tuner = base::LineProcess::Start(
      {"/bin/sh", "-c",
       base::Cat("exec ", LANESHIFT_PROGRAM, " tune --device emulator '", problem, "' 2> ", messages)});
  ASSERT_TRUE(tuner.has_value());
  const auto told = [&] {
    std::ifstream file(messages);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  for (int i = 0; i < 600 && told().find("0/1 trials") == std::string::npos; ++i) usleep(50'000);
  ASSERT_NE(told().find("0/1 trials"), std::string::npos) << told();
  usleep(300'000);
  const auto before = std::chrono::steady_clock::now();
  ASSERT_EQ(kill(tuner->pid(), SIGINT), 0);
  EXPECT_FALSE(tuner->Read(std::chrono::seconds(30)).has_value());
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(5));
  EXPECT_EQ(tuner->End(), "ended with exit code 130");
  EXPECT_NE(told().find("interrupted: 0 of 1 problems are tuned"), std::string::npos) << told();
  // What was given up is not held against the candidate.
  EXPECT_EQ(Call({"db", "export", "--only", "trials"}).output.find("crashed"), std::string::npos);
}

}  // namespace
}  // namespace laneshift::tools
