// `laneshift db` as its users meet it: output, files and exit codes.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/subprocess.h"
#include "base/text.h"
#include "store/store.h"
#include "store/temporary_directory.h"

namespace laneshift::tools {
namespace {

using Json = nlohmann::json;

class Db : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return directory_.path() + "/" + name; }

  // A store of a choice, a trial, a fact and a kernel, all of `schedule`.
  void Fill(const std::string& name, const std::string& schedule) const {
    store::Store store = store::Store::Open({.directory = Path(name)});
    const std::string problem = "gemm m=16 n=32 k=64 a=bf16 b=bf16 d=bf16";
    EXPECT_TRUE(store.PutChoice({.problem = problem,
                                 .target = "sm_90a",
                                 .device = "H200",
                                 .schedule = schedule,
                                 .source = store::ChoiceSource::kMeasured,
                                 .time_us = 3.5,
                                 .generator = "1",
                                 .driver = "13.0",
                                 .created = 1700000000}));
    EXPECT_TRUE(store.PutTrial({.problem = problem,
                                .target = "sm_90a",
                                .device = "H200",
                                .schedule = schedule,
                                .generator = "1",
                                .driver = "13.0",
                                .samples = {{.time_us = 3.5}},
                                .time_us = 3.5,
                                .low_us = 3.25,
                                .high_us = 3.75,
                                .created = 1700000000}));
    EXPECT_TRUE(store.PutFact({.device = "H200", .name = "scope", .answer = schedule, .created = 1700000000}));
    EXPECT_TRUE(store.PutKernel({.key = "key of " + schedule,
                                 .target = "sm_90a",
                                 .problem = problem,
                                 .schedule = schedule,
                                 .generator = "1",
                                 .ptx = ".version 8.6",
                                 .created = 1700000000}));
  }

  // On the store `own`.
  base::ProgramResult Call(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(),
                     {"/usr/bin/env", "LANESHIFT_CACHE_DIR=" + Path("own"), LANESHIFT_PROGRAM, "db"});
    auto result = base::RunProgram({.argv = arguments, .input = {}, .timeout = std::chrono::seconds(60)});
    if (!result) ADD_FAILURE() << result.error().message;
    return result ? *result : base::ProgramResult{};
  }
  std::vector<Json> CallJson(std::vector<std::string> arguments, int exit_code = 0) const {
    arguments.push_back("--json");
    const base::ProgramResult result = Call(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << base::Join(arguments, " ") << ": " << result.messages;
    std::vector<Json> objects;
    for (const std::string_view line : base::Split(result.output, '\n')) {
      if (!line.empty()) objects.push_back(Json::parse(line, nullptr, false));
    }
    return objects;
  }

  store::TemporaryDirectory directory_;
};

TEST_F(Db, StatListAndShow) {
  Fill("own", "stages=2");
  const Json stat = CallJson({"stat"}).at(0);
  EXPECT_EQ(stat["choices"], 1);
  EXPECT_EQ(stat["trials"], 1);
  EXPECT_EQ(stat["digest"].get<std::string>().size(), 32u);
  const auto listed = CallJson({"list"});
  ASSERT_EQ(listed.size(), 4u);
  EXPECT_EQ(CallJson({"list", "--only", "trials"}).at(0)["record"], "trial");
  EXPECT_FALSE(listed[2].contains("ptx"));
  EXPECT_NE(Call({"list"}).output.find("stages=2 (measured, generator 1)"), std::string::npos) << Call({"list"}).output;
  // However the problem is written.
  EXPECT_EQ(CallJson({"show", "gemm", "k=64", "n=32", "m=16"}).size(), 2u);
  EXPECT_EQ(CallJson({"show", "key of stages=2"}).at(0)["ptx"], ".version 8.6");
  EXPECT_EQ(Call({"show", "gemm", "m=1", "n=1", "k=1"}).exit_code, 4);
  EXPECT_EQ(Call({"list", "--only", "songs"}).exit_code, 2);
}

TEST_F(Db, WhatIsExportedIsImportedAndMergingAgainChangesNothing) {
  Fill("own", "stages=2");
  Fill("other", "stages=3");
  ASSERT_EQ(Call({"export", Path("own.jsonl")}).exit_code, 0);
  const Json merged = CallJson({"merge", Path("other")}).at(0);
  EXPECT_EQ(merged["added"], 1) << "the trial";
  EXPECT_EQ(merged["left_out"], 1) << "the kernel, which is code";
  EXPECT_EQ(CallJson({"merge", Path("other"), "--with-kernels"}).at(0)["added"], 1);
  const Json again = CallJson({"merge", Path("other")}).at(0);
  EXPECT_EQ(again["added"].get<int>() + again["replaced"].get<int>(), 0);

  // The other way round, by text, comes to the same.
  EXPECT_EQ(Call({"import", Path("own.jsonl"), "--with-kernels", "--store", Path("other/laneshift.db")}).exit_code, 0);
  EXPECT_EQ(Call({"diff", Path("other")}).exit_code, 0) << Call({"diff", Path("other")}).output;
  EXPECT_EQ(Call({"diff", Path("own.jsonl")}).exit_code, 1);
  EXPECT_EQ(CallJson({"diff", Path("own.jsonl"), Path("other")}, 1).at(0)["difference"].is_string(), true);
  EXPECT_EQ(Call({"export"}).output, Call({"export", "--store", Path("other")}).output);
}

TEST_F(Db, TextThatIsWrongIsRefusedWithItsLineAndChangesNothing) {
  Fill("own", "stages=2");
  ASSERT_EQ(Call({"export", Path("own.jsonl")}).exit_code, 0);
  std::ofstream(Path("own.jsonl"), std::ios::app) << "{\"record\":\"fact\"}\n";
  std::filesystem::remove_all(Path("own"));
  const auto refused = Call({"import", Path("own.jsonl")});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.messages.find("own.jsonl:6: key 'device' is not a string"), std::string::npos) << refused.messages;
  EXPECT_EQ(CallJson({"stat"}).at(0)["choices"], 0);
  EXPECT_EQ(Call({"import", Path("absent.jsonl")}).exit_code, 4);
  std::ofstream(Path("text")) << "hello\n";
  EXPECT_EQ(Call({"import", Path("text")}).exit_code, 1);
}

TEST_F(Db, ALineWithoutEndIsRefused) {
  const auto refused = Call({"import", "/dev/zero"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.messages.find("/dev/zero:1: the line has more than 268435456 bytes"), std::string::npos)
      << refused.messages;
}

TEST_F(Db, RecordsThatMeanNothingHereStayOutside) {
  Fill("other", "walk=sideways");
  const Json merged = CallJson({"merge", Path("other")}).at(0);
  EXPECT_EQ(merged["added"], 1) << "the fact";
  EXPECT_EQ(merged["refused"], 2) << "the choice and the trial";
  EXPECT_NE(merged["first_refusal"].get<std::string>().find("walk"), std::string::npos) << merged;
  EXPECT_NE(Call({"merge", Path("other")}).output.find("2 refused, first: choice gemm"), std::string::npos);
}

TEST_F(Db, APipeOfTextIsRead) {
  Fill("other", "stages=2");
  ASSERT_EQ(Call({"export", Path("other.jsonl"), "--store", Path("other")}).exit_code, 0);
  const std::string fifo = Path("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  auto writing =
      std::async(std::launch::async, [&] { std::ofstream(fifo) << std::ifstream(Path("other.jsonl")).rdbuf(); });
  EXPECT_EQ(CallJson({"import", fifo}).at(0)["added"], 3);
  writing.get();
}

// A store is a database, so that what lies in its place is not read as text.
TEST_F(Db, AFifoInTheStoresPlaceIsNotWaitedFor) {
  std::filesystem::create_directory(Path("own"));
  ASSERT_EQ(mkfifo((Path("own") + "/laneshift.db").c_str(), 0600), 0);
  Fill("other", "stages=2");
  const std::vector<std::vector<std::string>> verbs = {{"list"},
                                                       {"show", "key of stages=2"},
                                                       {"export"},
                                                       {"verify"},
                                                       {"diff", Path("other")},
                                                       {"seal", Path("sealed.db")},
                                                       {"prune", "--damaged"},
                                                       {"diff", Path("own"), Path("other")},
                                                       {"merge", Path("own")},
                                                       {"import", Path("own")}};
  for (const std::vector<std::string>& verb : verbs) {
    const base::ProgramResult refused = Call(verb);
    EXPECT_GT(refused.exit_code, 0) << base::Join(verb, " ") << refused.output;
    EXPECT_NE(refused.messages.find("FIFO"), std::string::npos) << base::Join(verb, " ") << refused.messages;
  }
}

TEST_F(Db, VerifyFindsDamage) {
  Fill("own", "stages=2");
  EXPECT_EQ(CallJson({"verify"}).at(0)["records"], 4);
  {
    std::fstream file(Path("own/laneshift.db"), std::ios::in | std::ios::out | std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const size_t at = bytes.find(".version 8.6");
    ASSERT_NE(at, std::string::npos);
    file.clear();
    file.seekp(static_cast<std::streamoff>(at));
    file.put('X');
  }
  const Json found = CallJson({"verify"}, 1).at(0);
  ASSERT_EQ(found["findings"].size(), 1u);
  EXPECT_EQ(found["findings"][0], "kernel key of stages=2: the checksum is wrong");
  EXPECT_EQ(Call({"verify", Path("absent.db")}).exit_code, 4);
}

// `run` on the emulator, with the user's store.
std::vector<std::string> RunCommand(const std::string& store, const std::string& problem) {
  return {"/usr/bin/env",    "LANESHIFT_CACHE_DIR=" + store,
          LANESHIFT_PROGRAM, "run",
          problem,           "--device",
          "emulator",        "--target",
          "sm_90a",          "--json"};
}

TEST_F(Db, AProgramKilledAtAnyMomentLeavesASoundStore) {
  int killed = 0;
  for (int limit_ms = 5; limit_ms < 3000; limit_ms = limit_ms * 3 / 2) {
    const auto run = base::RunProgram({.argv = RunCommand(Path("own"), "gemm m=16 n=16 k=" + std::to_string(limit_ms)),
                                       .input = {},
                                       .timeout = std::chrono::milliseconds(limit_ms)});
    killed += !run;
    if (std::filesystem::exists(Path("own/laneshift.db"))) {
      EXPECT_EQ(Call({"verify"}).exit_code, 0) << Call({"verify"}).output << " after " << limit_ms << " ms";
    }
    if (run) break;
  }
  EXPECT_GT(killed, 3);
  const auto whole = base::RunProgram({.argv = RunCommand(Path("own"), "gemm m=16 n=16 k=16"), .input = {}});
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->exit_code, 0) << whole->messages;
  EXPECT_EQ(whole->messages.find("warning"), std::string::npos) << whole->messages;
}

TEST_F(Db, AProcessThatFindsAKernelBeingCompiledWaitsForIt) {
  const std::string problem = "gemm m=16 n=16 k=16";
  const auto first = base::RunProgram({.argv = RunCommand(Path("first"), problem), .input = {}});
  ASSERT_TRUE(first && first->exit_code == 0);
  const auto listed = CallJson({"list", "--only", "kernels", "--store", Path("first")});
  ASSERT_EQ(listed.size(), 1u);
  const std::string key = listed[0]["key"];

  store::Store first_store = store::Store::Open({.directory = Path("first")});
  store::Store own = store::Store::Open({.directory = Path("own")});
  std::optional<store::FlightLock> compiling = own.BeginFlight("compile " + key, 1000);
  ASSERT_TRUE(compiling->held());
  auto waiting = std::async(std::launch::async,
                            [&] { return base::RunProgram({.argv = RunCommand(Path("own"), problem), .input = {}}); });
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(700)), std::future_status::timeout);
  ASSERT_TRUE(own.PutKernel(**first_store.GetKernel(key)));
  compiling.reset();
  const auto second = waiting.get();
  ASSERT_TRUE(second);
  EXPECT_EQ(Json::parse(second->output)["cache"], "store") << second->messages;
}

TEST_F(Db, PruneAndSeal) {
  Fill("own", "stages=2");
  EXPECT_EQ(Call({"prune"}).exit_code, 2);
  EXPECT_EQ(Call({"prune", "--max-code", "12X"}).exit_code, 2);
  ASSERT_EQ(CallJson({"seal", Path("system.db")}).at(0)["digest"], CallJson({"stat"}).at(0)["digest"]);
  EXPECT_EQ(Call({"seal", Path("system.db")}).exit_code, 2) << "sealed files are not overwritten";
  const Json pruned = CallJson({"prune", "--other-generators"}).at(0);
  EXPECT_EQ(pruned["choices"], 1);
  EXPECT_EQ(pruned["trials"], 1);
  EXPECT_EQ(CallJson({"prune", "--max-code", "0K"}).at(0)["kernels"], 0);
  EXPECT_EQ(CallJson({"list"}).size(), 1u) << "the fact";
  EXPECT_EQ(CallJson({"verify", Path("system.db")}).at(0)["records"], 4);

  std::vector<std::string> with_system = {"/usr/bin/env",
                                          "LANESHIFT_CACHE_DIR=" + Path("own"),
                                          "LANESHIFT_SYSTEM_STORE=" + Path("system.db"),
                                          LANESHIFT_PROGRAM,
                                          "db",
                                          "stat",
                                          "--json"};
  const auto result = base::RunProgram({.argv = with_system, .input = {}, .timeout = std::chrono::seconds(60)});
  ASSERT_TRUE(result);
  EXPECT_EQ(Json::parse(result->output)["system_choices"], 1);
  EXPECT_EQ(Call({"merge", Path("own"), "--store", Path("system.db")}).exit_code, 3) << "a seal is not broken";
}

}  // namespace
}  // namespace laneshift::tools
