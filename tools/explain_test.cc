// What explain, inspect, compile and run say of a kernel, as their users meet it. Runs the binary.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/read_file.h"
#include "base/text.h"
#include "laneshift/engine.h"
#include "runtime/engine_parts.h"
#include "tools/called_program.h"

namespace laneshift::tools {
namespace {

using Json = nlohmann::json;

class Views : public CalledProgram {
 protected:
  Json ReadJson(const std::string& name) const {
    std::ifstream file(File(name));
    std::stringstream text;
    text << file.rdbuf();
    return Json::parse(text.str(), nullptr, false);
  }
};

const std::vector<std::string> kBadCall = {"explain",    "gemm m=4096 n=4096 k=4096",
                                           "--target",   "sm_100a",
                                           "--schedule", "tile=128x256x64 stages=2 acc=2 cluster=2x1 ctas=2"};

TEST_F(Views, ExplainNamesTheSameBoundAndWeaknessInTextAndJson) {
  const Json* advice = nullptr;
  const std::vector<Json> candidates = CallJson(kBadCall);
  for (const Json& candidate : candidates) {
    if (candidate["advice"].is_null()) continue;
    EXPECT_EQ(advice, nullptr) << "one schedule runs";
    advice = &candidate["advice"];
    EXPECT_EQ(candidate["bound"], (*advice)["bound"]);
    EXPECT_EQ(candidate["choice"], "given");
  }
  ASSERT_NE(advice, nullptr);
  EXPECT_EQ((*advice)["weaknesses"].at(0)["name"], "too few stages");
  EXPECT_GT((*advice)["times_floor"].get<double>(), 1.5);
  EXPECT_FALSE((*advice)["rival"].is_null());
  const std::string text = Call(kBadCall).output;
  EXPECT_NE(text.find("why        " + (*advice)["bound"].get<std::string>() + " binds"), std::string::npos) << text;
  EXPECT_NE(text.find("too few stages: "), std::string::npos) << text;
}

TEST_F(Views, ExplainFoldsTiesAndFitsItsTerminal) {
  const std::string text = Call({"explain", "gemm m=4096 n=4096 k=4096", "--target", "sm_100a"}).output;
  EXPECT_NE(text.find(" as fast)"), std::string::npos) << text;
  EXPECT_EQ(text.find("consumers=cooperative"), std::string::npos) << "a default is shown";
  EXPECT_NE(Call({"explain", "gemm m=64 n=64 k=64", "--full"}).output.find("consumers=cooperative"), std::string::npos);
}

TEST_F(Views, ExplainSupposesFacts) {
  const std::string problem = "conv n=32 h=56 w=56 c=64 k=64 r=3 s=3 pad=1";
  const auto best = [&](const char* fact) {
    const std::vector<Json> ranked =
        CallJson({"explain", problem, "--target", "sm_100a", "--fact", fact, "--top", "1", "--json"});
    EXPECT_EQ(ranked.at(0)["choice"], "rule");
    return ranked.at(0)["schedule"].get<std::string>();
  };
  EXPECT_NE(best("tensor_move=1").find("reuse=lane_shift"), std::string::npos);
  EXPECT_NE(best("tensor_move=64").find("reuse=row_offset"), std::string::npos);
  const std::string text =
      Call({"explain", problem, "--target", "sm_100a", "--fact", "tensor_move=1", "--fact", "load_latency=900"}).output;
  EXPECT_NE(text.find("supposed tensor_move=1 load_latency=900"), std::string::npos) << text;
  for (const auto& [fact, why] : {std::pair{"tensor_move", "has no value; write NAME=VALUE"},
                                  {"tensor_move=-1", "is a positive number of clk, not '-1'"},
                                  {"shift=1", "unknown fact 'shift'"}}) {
    const base::ProgramResult refused = Call({"explain", problem, "--fact", fact});
    EXPECT_EQ(refused.exit_code, 2) << fact;
    EXPECT_NE(refused.messages.find(why), std::string::npos) << refused.messages;
  }
}

TEST_F(Views, InspectShowsTheLaunchTheTimeAndTheirReasons) {
  const std::vector<std::string> call = {"inspect",    "gemm m=4096 n=4096 k=512",      "--target", "sm_100a",
                                         "--schedule", "tile=128x256x64 scheduler=clc", "--no-ptx"};
  const Json json = CallJson(call).at(0);
  // 512 tiles: work stealing launches a cluster for each, and its waves are those of the CTAs that run at one time.
  EXPECT_EQ(json["launch"]["tiles"], 512);
  EXPECT_EQ(json["launch"]["grid"], 512);
  EXPECT_EQ(json["launch"]["waves"], 4);
  EXPECT_EQ(json["prediction"]["bound"], json["advice"]["bound"]);
  EXPECT_EQ(json["choice"], "given");
  const std::string text = Call(call).output;
  for (const char* part : {" (given)", "4 waves on 148 SMs by work stealing", "predicted ", "── why ──"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

// A tile of 128 x 128 has 32 KiB of D in bf16. 200 rows take two of them.
TEST_F(Views, InspectShowsTheWayOfTheOutput) {
  const auto levels = [&](const char* problem, const char* schedule) {
    std::map<std::string, double> moved;
    const Json json = CallJson({"inspect", problem, "--target", "sm_90a", "--schedule", schedule, "--no-ptx"}).at(0);
    for (const Json& level : json["bytes"]) {
      const auto name = level["level"].get<std::string>();
      if (!name.starts_with("D, ")) continue;
      moved[name] = level["moved"].get<double>() / 32768;
      EXPECT_EQ(level["least"], std::string_view(problem).find("m=200") != std::string_view::npos ? 200 * 512 : 131072);
    }
    return moved;
  };
  using Moved = std::map<std::string, double>;
  for (const std::string schedule :
       {"tile=128x128x64 math=2", "tile=128x128x64 math=2 consumers=pingpong", "tile=256x128x64 math=2"}) {
    EXPECT_EQ(levels("gemm m=256 n=256 k=128", (schedule + " d_store=tma").c_str()),
              (Moved{{"D, registers to shared memory", 4}, {"D, bulk stores from shared memory", 4}}))
        << schedule;
  }
  EXPECT_EQ(levels("gemm m=200 n=256 k=8192", "tile=128x128x64 split_k=1 d_store=tma"),
            (Moved{{"D, registers to shared memory", 4}, {"D, bulk stores from shared memory", 4}}));
  EXPECT_EQ(levels("gemm m=256 n=256 k=128", "tile=128x128x64 d_store=direct"), (Moved{{"D, stores by threads", 4}}));
}

TEST_F(Views, InspectShowsWhatWasMeasuredOfTheKernelAndItsPeers) {
  const std::string problem = PrintProblem(*CompleteProblem(*ParseProblem("gemm m=4096 n=4096 k=512")));
  const std::string schedule = "tile=128x128x64 stages=4 math=2";
  std::vector<std::string> call = {"inspect", problem, "--target", "sm_90a", "--schedule", schedule, "--no-ptx"};
  const Json before = CallJson(call).at(0);
  EXPECT_TRUE(before["measured"].is_null());
  EXPECT_EQ(before["peers"], Json::array());
  EXPECT_NE(Call(call).output.find("measured  not measured on this device"), std::string::npos);
  {
    const auto engine = Engine::Open({.device = "emulator", .target = "sm_90a", .store_directory = File("store")});
    ASSERT_TRUE(engine) << engine.error().message;
    ASSERT_TRUE(engine->parts().store.PutTrial({.problem = problem,
                                                .target = "sm_90a",
                                                .device = engine->parts().device_key,
                                                .schedule = before["schedule"],
                                                .generator = "1",
                                                .driver = "1",
                                                .samples = {{.time_us = 31}, {.time_us = 33}},
                                                .time_us = 32,
                                                .low_us = 31,
                                                .high_us = 33}));
  }
  std::ofstream(File("bench.json")) << Json{{"problem", problem}, {"target", "sm_90a"},  {"device", "H200"},
                                            {"time_us", 32.5},    {"cublas_us", 34.375}, {"vs_cublas", 1.06}}
                                    << "\n";
  call.insert(call.end(), {"--peers", File("bench.json"), "--html", File("report.html")});
  const Json after = CallJson(call).at(0);
  EXPECT_EQ(after["measured"]["us"], 32);
  EXPECT_EQ(after["measured"]["samples"], Json::array({31, 33}));
  EXPECT_EQ(after["peers"].at(0)["name"], "cublas");
  EXPECT_NEAR(after["peers"].at(0)["tflops"].get<double>(), 499.8, 0.1);
  const std::string text = Call(call).output;
  EXPECT_NE(text.find("measured  32.00 us, 95 % between 31.00 and 33.00 us, of 2 samples"), std::string::npos) << text;
  EXPECT_NE(text.find("peer      cublas: 34.38 us, 500 TFLOP/s on H200; laneshift took 32.50 us"), std::string::npos)
      << text;
  const std::string report = *base::ReadFile(File("report.html"));
  EXPECT_NE(report.find(">cublas, 34.38 us: 500</text>"), std::string::npos) << "no point of the roofline";
  // Of another problem.
  call[1] = "gemm m=64 n=64 k=64";
  const base::ProgramResult other = Call(call);
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.messages.find("bench.json: no peers' times"), std::string::npos) << other.messages;
}

TEST_F(Views, SassOrWhatToInstall) {
  const base::ProgramResult result = Call({"compile", "gemm m=64 n=64 k=64", "--target", "sm_90a", "--emit", "sass"});
  if (result.exit_code == 0) {
    EXPECT_NE(result.output.find("EXIT"), std::string::npos);
  } else {
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_NE(result.messages.find("install "), std::string::npos) << result.messages;
  }
}

// Slices of warps do not overlap: the emulator runs one after the other.
TEST_F(Views, RunWritesTheOrderOfEvents) {
  for (const char* target : {"sm_100a", "sm_90a"}) {
    const base::ProgramResult ran = Call({"run", "gemm m=128 n=64 k=256", "--device", "emulator", "--target", target,
                                          "--async", "late", "--timeline", File("trace.json")});
    ASSERT_EQ(ran.exit_code, 0) << ran.messages;
    EXPECT_NE(ran.output.find("\nload "), std::string::npos) << ran.output;
    const Json trace = ReadJson("trace.json");
    ASSERT_TRUE(trace.contains("traceEvents"));
    double end = 0;
    int runs = 0, waits = 0, operations = 0;
    for (const Json& event : trace["traceEvents"]) {
      if (event["ph"] != "X") continue;
      if (event["name"] == "run") {
        ++runs;
        EXPECT_GE(event["ts"].get<double>(), end);
        end = event["ts"].get<double>() + event["dur"].get<double>();
      } else if (event["cat"] == "wait") {
        ++waits;
      } else {
        ++operations;
      }
    }
    EXPECT_GT(runs, 10);
    EXPECT_GT(waits, 5);
    EXPECT_GT(operations, 5);
  }
  EXPECT_EQ(Call({"run", "gemm m=16 n=16 k=16", "gemm m=32 n=16 k=16", "--timeline", File("x")}).exit_code, 2);
}

// Only a time line of the same kernel, in time, belongs into its report.
TEST_F(Views, InspectTakesTheMeasuredTimelineOfTheSameKernelOnly) {
  const auto inspect = [&](const char* problem, const char* of) {
    return Call(
        {"inspect", problem, "--target", "sm_90a", "--no-ptx", "--html", File("report.html"), "--measured", File(of)});
  };
  ASSERT_EQ(
      Call({"inspect", "gemm m=256 n=256 k=256", "--target", "sm_90a", "--no-ptx", "--timeline", File("model.json")})
          .exit_code,
      0);
  ASSERT_EQ(Call({"run", "gemm m=256 n=256 k=256", "--device", "emulator", "--target", "sm_90a", "--timeline",
                  File("steps.json")})
                .exit_code,
            0);
  EXPECT_EQ(inspect("gemm m=256 n=256 k=256", "model.json").exit_code, 0);
  EXPECT_NE(base::ReadFile(File("report.html"))->find("<h3>Measured</h3>"), std::string::npos);
  const base::ProgramResult other = inspect("gemm m=128 n=256 k=256", "model.json");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.messages.find("is of another kernel: gemm m=256"), std::string::npos) << other.messages;
  const base::ProgramResult steps = inspect("gemm m=256 n=256 k=256", "steps.json");
  EXPECT_EQ(steps.exit_code, 2);
  EXPECT_NE(steps.messages.find("counts steps, which are no time"), std::string::npos) << steps.messages;
  EXPECT_EQ(inspect("gemm m=256 n=256 k=256", "report.html").exit_code, 2);
  EXPECT_EQ(inspect("gemm m=256 n=256 k=256", "nothing.json").exit_code, 2);
}

TEST_F(Views, InspectWritesATraceAndAReport) {
  const base::ProgramResult result = Call({"inspect", "gemm m=256 n=256 k=256", "--target", "sm_90a", "--no-ptx",
                                           "--timeline", File("trace.json"), "--html", File("report.html")});
  ASSERT_EQ(result.exit_code, 0) << result.messages;
  EXPECT_NE(result.output.find("── time line ──"), std::string::npos);
  EXPECT_FALSE(ReadJson("trace.json")["traceEvents"].empty());
  std::ifstream report(File("report.html"));
  std::string first;
  std::getline(report, first);
  EXPECT_EQ(first, "<!DOCTYPE html>");
}

}  // namespace
}  // namespace laneshift::tools
