// The program as its users meet it: its output, its JSON and its exit codes. Runs the binary.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/subprocess.h"
#include "base/text.h"
#include "tools/called_program.h"

namespace laneshift::tools {
namespace {

using Json = nlohmann::json;

constexpr const char* kTiny = "gemm m=32 n=32 k=64 a=bf16 b=bf16 d=bf16";

class Program : public CalledProgram {
 protected:
  void ExpectRefused(const std::vector<std::string>& arguments, int exit_code, const std::string& message) const {
    const base::ProgramResult result = Call(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << base::Join(arguments, " ") << "\n" << result.messages;
    EXPECT_NE(result.messages.find(message), std::string::npos) << base::Join(arguments, " ") << "\n"
                                                                << result.messages;
    EXPECT_TRUE(result.output.empty()) << result.output;
    // One line of cause and remedy.
    EXPECT_EQ(std::count(result.messages.begin(), result.messages.end(), '\n'), 1) << result.messages;
  }
};

std::vector<std::string> RunOnEmulator(std::vector<std::string> more) {
  more.insert(more.begin(), {"run", "--device", "emulator"});
  return more;
}

TEST_F(Program, HelpIsCompleteAndHasExamples) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{{"--help"},
                                                                                         {"run", "--help"},
                                                                                         {"compile", "--help"},
                                                                                         {"inspect", "--help"},
                                                                                         {"doctor", "--help"},
                                                                                         {"db", "--help"},
                                                                                         {"db", "stat", "--help"}}) {
    const base::ProgramResult result = Call(arguments);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_NE(result.output.find("laneshift " + (arguments[0] == "--help" ? std::string("run") : arguments[0])),
              std::string::npos)
        << result.output;
  }
}

TEST_F(Program, RunPrintsTheContractKeys) {
  for (const char* target : {"sm_100a", "sm_90a"}) {
    const auto objects = CallJson(RunOnEmulator({"gemm", "m=32", "n=32", "k=64", "--target", target, "--check"}));
    ASSERT_EQ(objects.size(), 1u);
    const Json& run = objects[0];
    for (const char* key : {"problem", "target", "device", "schedule", "verified", "max_rel_err", "hazards", "policies",
                            "cache", "ptx_ms", "assemble_ms", "plan_ms", "time_us", "tflops"}) {
      EXPECT_TRUE(run.contains(key)) << key;
    }
    EXPECT_EQ(run["problem"], kTiny);
    EXPECT_EQ(run["target"], target);
    EXPECT_EQ(run["verified"], true);
    EXPECT_LT(run["max_rel_err"].get<double>(), 2e-3);
    EXPECT_GT(run["max_rel_err"].get<double>(), 0);
    EXPECT_TRUE(run["hazards"].empty());
    EXPECT_EQ(run["cache"], "compiled");
    EXPECT_TRUE(run["time_us"].is_null());
    EXPECT_TRUE(run["tflops"].is_null());
  }
}

// One function chooses for all of them.
TEST_F(Program, TheStoredChoiceIsEveryVerbs) {
  const auto tuned = CallJson({"tune", kTiny, "--device", "emulator", "--target", "sm_90a", "--budget", "2trials"});
  ASSERT_EQ(tuned.size(), 1u);
  const auto ran = CallJson({"run", kTiny, "--device", "emulator", "--target", "sm_90a"}).at(0);
  EXPECT_EQ(ran["choice"], "predicted");
  for (const char* verb : {"inspect", "compile"}) {
    const auto looked = CallJson({verb, kTiny, "--target", "sm_90a"}).at(0);
    EXPECT_EQ(looked["choice"], "predicted") << verb;
    EXPECT_EQ(looked["schedule"], ran["schedule"]) << verb;
  }
  int taken = 0;
  for (const Json& candidate : CallJson({"explain", kTiny, "--target", "sm_90a"})) {
    if (candidate["choice"].is_null()) continue;
    ++taken;
    EXPECT_EQ(candidate["choice"], "predicted");
    EXPECT_EQ(candidate["schedule"], ran["schedule"]);
  }
  EXPECT_EQ(taken, 1);
  // The store says the same word.
  const base::ProgramResult exported = Call({"db", "export", "--only", "choices"});
  EXPECT_NE(exported.output.find("\"source\":\"predicted\""), std::string::npos) << exported.output;
}

TEST_F(Program, ASecondProcessCompilesNothing) {
  EXPECT_EQ(CallJson(RunOnEmulator({kTiny, "--check"})).at(0)["cache"], "compiled");
  const auto again = CallJson(RunOnEmulator({kTiny, "--check"})).at(0);
  EXPECT_EQ(again["cache"], "store");
  EXPECT_EQ(again["ptx_ms"], 0);
  EXPECT_EQ(again["verified"], true);
  EXPECT_EQ(CallJson({"db", "stat"}).at(0)["kernels"], 1);
}

TEST_F(Program, EveryCompletionOrderVerifies) {
  for (const char* order : {"eager", "late", "random:7"}) {
    const auto run = CallJson(RunOnEmulator({"gemm m=40 n=24 k=136 d=f32 batch=2", "--check", "--async", order})).at(0);
    EXPECT_EQ(run["verified"], true) << order;
    EXPECT_LT(run["max_rel_err"].get<double>(), 1e-5);
  }
}

TEST_F(Program, LaunchesMayOverlap) {
  const auto run = CallJson(RunOnEmulator({kTiny, "--check", "--launch-overlap", "programmatic"})).at(0);
  EXPECT_EQ(run["verified"], true);
  EXPECT_TRUE(run["hazards"].empty());
}

TEST_F(Program, FastArithmeticIsAskedForAndTold) {
  EXPECT_EQ(CallJson(RunOnEmulator({kTiny, "--check"})).at(0)["arithmetic"], "hardware");
  const auto run = CallJson(RunOnEmulator({kTiny, "--check", "--arithmetic", "fast"})).at(0);
  EXPECT_EQ(run["arithmetic"], "fast");
  EXPECT_EQ(run["verified"], true) << run.dump();
  EXPECT_NE(run["notes"].dump().find("arithmetic: fast"), std::string::npos) << run.dump();
}

TEST_F(Program, SeveralProblemsAreSeveralLines) {
  std::ofstream(File("problems.txt")) << "# two\ngemm m=16 n=16 k=16\ngemm m=7 n=9 k=11 d=f32 bias=m beta=1\n";
  const auto objects = CallJson(RunOnEmulator({"gemm m=1 n=1 k=1 a=f16", "--file", File("problems.txt"), "--check"}));
  ASSERT_EQ(objects.size(), 3u);
  for (const Json& run : objects) EXPECT_EQ(run["verified"], true) << run.dump();
}

TEST_F(Program, TheTableIsOnStdoutAndNewsOnStderr) {
  const base::ProgramResult result = Call(RunOnEmulator({kTiny, "--check"}));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.output.find(kTiny), std::string::npos);
  EXPECT_NE(result.output.find("yes"), std::string::npos);
  EXPECT_EQ(result.output.find('\033'), std::string::npos);
  EXPECT_NE(result.messages.find("laneshift emulator"), std::string::npos);
}

TEST_F(Program, DataFromNpyFilesAndBack) {
  const std::string problem = "gemm m=16 n=8 k=32 a=f16 d=f32";
  // D of one run is the C of the next: d2 = a b + d, so d2 = 2 d.
  EXPECT_EQ(CallJson(RunOnEmulator({problem, "--out", File("d.npy")})).size(), 1u);
  EXPECT_EQ(CallJson(RunOnEmulator({problem + " beta=1", "--c", File("d.npy"), "--check"})).at(0)["verified"], true);
  const auto refused = CallJson(RunOnEmulator({problem, "--a", File("d.npy")}), 2).at(0);
  EXPECT_NE(refused["error"]["message"].get<std::string>().find("type '<f4', but a is f16"), std::string::npos);
}

TEST_F(Program, ASeedFixesTheResult) {
  const auto error = [&](const char* seed) {
    return CallJson(RunOnEmulator({kTiny, "--check", "--seed", seed})).at(0)["max_rel_err"].get<double>();
  };
  EXPECT_EQ(error("1"), error("1"));
  EXPECT_NE(error("1"), error("2"));
}

TEST_F(Program, VsAPeerOnTheEmulatorIsNullWithANote) {
  for (const std::string peer : {"cublas", "cudnn"}) {
    const auto run = CallJson(RunOnEmulator({kTiny, "--vs", peer})).at(0);
    EXPECT_TRUE(run[peer + "_us"].is_null());
    EXPECT_TRUE(run["vs_" + peer].is_null());
    EXPECT_NE(run["notes"].dump().find("--vs " + peer + " compares times on a GPU"), std::string::npos);
  }
}

TEST_F(Program, CompileEmitsEveryForm) {
  EXPECT_NE(Call({"compile", kTiny, "--target", "sm_90a"}).output.find(".target sm_90a"), std::string::npos);
  EXPECT_NE(Call({"compile", kTiny, "--emit", "tile"}).output.find("program gemm target=sm_100a"), std::string::npos);
  EXPECT_NE(Call({"compile", kTiny, "--emit", "llvm"}).output.find("define"), std::string::npos);
  EXPECT_EQ(Call({"compile", kTiny, "-o", File("x.ptx")}).exit_code, 0);
  EXPECT_GT(std::filesystem::file_size(File("x.ptx")), 1000u);
  EXPECT_EQ(CallJson({"compile", kTiny}).at(0)["target"], "sm_100a");
}

TEST_F(Program, CompileAndInspectShowThePackToo) {
  EXPECT_TRUE(CallJson({"compile", kTiny}).at(0)["pack"].is_null());
  const std::vector<std::string> packed = {"compile", "gemm m=33 n=33 k=33", "--schedule", "a_load=pack b_load=pack"};
  std::vector<std::string> call = packed;
  const Json json = CallJson(call).at(0);
  EXPECT_NE(json["pack"]["text"].get<std::string>().find(".visible .entry laneshift_pack"), std::string::npos);
  EXPECT_NE(json["pack"]["key"], json["key"]);
  call.insert(call.end(), {"-o", File("y.ptx")});
  EXPECT_EQ(Call(call).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(File("y.ptx.pack")));
  call = packed;
  call[0] = "inspect";
  EXPECT_NE(Call(call).output.find("first, a kernel packs operands: 256 threads"), std::string::npos);
  EXPECT_EQ(CallJson(call).at(0)["pack"]["resources"].value("spill_store_bytes", 0), 0);
}

TEST_F(Program, CompileAndInspectShowTheReductionKernels) {
  EXPECT_TRUE(CallJson({"compile", kTiny}).at(0)["totals"].empty());
  const std::vector<std::string> ordered = {"compile", "gemm m=40000 n=40 k=8 numerics=deterministic epilogue=sum_n",
                                            "--schedule", "tile=64x32x64"};
  std::vector<std::string> call = ordered;
  const Json json = CallJson(call).at(0)["totals"];
  ASSERT_EQ(json.size(), 2u) << "2500 partial rows are first added in groups";
  EXPECT_NE(json[0]["text"].get<std::string>().find(".visible .entry laneshift_fold_reductions"), std::string::npos);
  EXPECT_NE(json[1]["text"].get<std::string>().find(".visible .entry laneshift_reductions"), std::string::npos);
  call.insert(call.end(), {"-o", File("z.ptx")});
  EXPECT_EQ(Call(call).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(File("z.ptx.fold_reductions")));
  EXPECT_TRUE(std::filesystem::exists(File("z.ptx.reductions")));
  call = ordered;
  call[0] = "inspect";
  EXPECT_NE(Call(call).output.find("afterwards, a kernel adds the partial rows of reductions ("), std::string::npos);
  const Json inspected = CallJson(call).at(0);
  EXPECT_EQ(inspected["totals"].at(1)["resources"].value("spill_store_bytes", 0), 0);
  // Partial rows of 40 f32, and ten groups of them.
  EXPECT_EQ(inspected["totals_bytes"], (2500 + 10) * 40 * 4);
}

TEST_F(Program, InspectShowsEverything) {
  const std::string pages = Call({"inspect", kTiny, "--all-passes"}).output;
  for (const char* part :
       {"schedule  tile=", "roles", "shared memory", "Tensor Memory", "registers", "tile program after build",
        "tile program after lower_channels", "instruction census", "tcgen05.mma", ".visible .entry"}) {
    EXPECT_NE(pages.find(part), std::string::npos) << part;
  }
  const Json json = CallJson({"inspect", kTiny, "--target", "sm_90a"}).at(0);
  EXPECT_FALSE(json["smem_map"].empty());
  EXPECT_TRUE(json["tmem_map"].empty());
  EXPECT_FALSE(json["census"].empty());
  EXPECT_FALSE(json.contains("modes"));
}

TEST_F(Program, InspectComparesTheModesOfAConvolution) {
  constexpr const char* kConv = "conv n=1 h=8 w=30 c=64 k=64 r=3 s=3 pad=1 x=bf16 w=bf16 y=bf16";
  const std::vector<std::string> call = {"inspect", kConv, "--schedule", "reuse=lane_shift", "--no-ptx"};
  EXPECT_NE(Call(call).output.find("lane_shift *"), std::string::npos);
  const Json modes = CallJson(call).at(0)["modes"];
  ASSERT_EQ(modes.size(), 7u);
  for (const Json& mode : modes) {
    EXPECT_EQ(mode["chosen"], mode["reuse"] == "lane_shift");
    EXPECT_TRUE(mode["refused"].is_null()) << mode.dump();
    EXPECT_GT(mode["global_to_shared_bytes"], 0);
  }
}

TEST_F(Program, DoctorNamesStateAndRemedy) {
  const Json json = CallJson({"doctor"}).at(0);
  EXPECT_EQ(json["ok"], true) << json.dump();
  std::string parts;
  for (const Json& part : json["parts"]) {
    parts += part["part"].get<std::string>() + " ";
    EXPECT_TRUE(part["state"] == "ok" || !part["remedy"].get<std::string>().empty()) << part.dump();
  }
  for (const char* part : {"CUDA driver", "ptxas", "NVRTC", "cuBLAS", "cuDNN", "store", "emulator sm_100a",
                           "emulator sm_90a", "emulator sm_100a probe"}) {
    EXPECT_NE(parts.find(part), std::string::npos) << parts;
  }
}

TEST_F(Program, DoctorShowsWhatTheProbeMeasured) {
  const Json facts = CallJson({"doctor"}).at(0)["tensor_facts"];
  const Json other = CallJson({"doctor", "--policy", "shift_scope=addressed", "--policy", "cp_4x256b_lane=ignored",
                               "--policy", "ashift_time=before"})
                         .at(0)["tensor_facts"];
  const auto of = [](const Json& rows) {
    for (const Json& row : rows) {
      if (row["device"] == "emulator sm_100a") return row;
    }
    return Json();
  };
  EXPECT_EQ(of(facts), (Json{{"device", "emulator sm_100a"},
                             {"shift_scope", "groups"},
                             {"cp_4x256b_lane", "offset"},
                             {"ashift_time", "after"}}));
  EXPECT_EQ(of(other), (Json{{"device", "emulator sm_100a"},
                             {"shift_scope", "addressed"},
                             {"cp_4x256b_lane", "ignored"},
                             {"ashift_time", "before"}}));
}

TEST_F(Program, BadInputIsOneLineWithTheDocumentedExitCode) {
  std::filesystem::create_directory(File("directory.cu"));
  std::ofstream(File("text.npy")) << "hello";
  struct Case {
    std::vector<std::string> arguments;
    int exit_code;
    const char* message;
  };
  const Case cases[] = {
      // The command line.
      {{}, 2, "a verb is missing"},
      {{"rum"}, 2, "did you mean 'run'?"},
      {{"run", "--bogus"}, 2, "--bogus"},
      {{"run"}, 2, "no problem; write for example"},
      {{"run", kTiny, "--vs", "cutlass"}, 2, "use --vs cublas (gemm) or --vs cudnn (conv)"},
      {{"run", kTiny, "--async", "soon"}, 2, "use eager, late or random:SEED"},
      {{"run", kTiny, "--arithmetic", "exact"}, 2, "use hardware (the tensor core's own sums) or fast"},
      {{"run", kTiny, "--device", "emulator", "--policy", "shift_scope=half"}, 2, "is one of groups, addressed, cta"},
      {{"doctor", "--policy", "shift"}, 2, "no policy is called 'shift'"},
      {{"run", kTiny, "--assembler", "gas"}, 2, "use auto, ptxas or driver"},
      {{"run", kTiny, "--emulator-threads", "-1"}, 2, "-1 is not a whole number from 0 to 1024"},
      {{"run", kTiny, "--emulator-multiprocessors", "-1"}, 2, "-1 is not a whole number"},
      {{"run", kTiny, "--repeat", "0"}, 2, "--repeat 0"},
      {{"run", kTiny, "--row", "0"}, 2, "--row 0"},
      {{"run", kTiny, "--launch-overlap", "sideways"}, 2, "use none or programmatic"},
      {{"run", kTiny, kTiny, "--a", "x.npy"}, 2, "belong to one problem"},
      {{"compile", kTiny, "--emit", "asm"}, 2, "use ptx, tile, llvm, cubin or sass"},
      {{"inspect", kTiny, "--dump-after", "nothing"}, 2, "is no pass; passes: build"},
      // Problems.
      {{"run", "gemm", "m=0", "n=1", "k=1"}, 2, "m=0 is out of range; use 1 to"},
      {{"run", "gemm", "m=1", "n=-4", "k=1"}, 2, "n=-4 is out of range"},
      {{"run", "gemm", "m=1", "n=1", "k=1", "q=2"}, 2, "unknown key 'q'"},
      {{"run", "gemm", "m=1", "n=1", "k=1", "a=int4"}, 2, "known types: f16, bf16, f32"},
      {{"run", "gemm", "m=4", "n=4", "k=9", "lda=8"}, 2, "lda=8 is below the row of 9 elements; use at least 9"},
      {{"run", "--file", File("absent.txt")}, 2, "cannot be opened"},
      {{"run", "--file", testing::TempDir()}, 2, ": is a directory"},
      {{"run", "gemm", "m=4", "n=4", "k=4", "epilogue=" + File("directory.cu") + ":F"},
       2,
       "is a directory; only regular files are read"},
      {{"emulate", testing::TempDir(), "--launch", testing::TempDir()}, 2, "is a directory; only regular files"},
      {{"run", "gemm", "m=1", "n=1", "k=1", "batch=16777217", "stride_a=549755813888"}, 2, "more than 2^46 elements"},
      // Schedules.
      {{"run", kTiny, "--schedule", "tiles=1"}, 2, "tile"},
      {{"inspect", "conv", "n=1", "w=8", "c=32", "k=32", "s=2", "--schedule", "b_load=pack"},
       3,
       "use b_load=tma or copy"},
      // Devices.
      {{"run", kTiny, "--device", "tpu"}, 2, "use auto, cuda, cuda:N"},
      {{"run", kTiny, "--device", "cuda:99"}, 4, "emulator"},
      {{"run", kTiny, "--device", "emulator", "--target", "sm_80"}, 2, "sm_100a"},
  };
  for (const Case& bad : cases) ExpectRefused(bad.arguments, bad.exit_code, bad.message);
}

// What cannot be written is a failure, whoever wrote it.
TEST_F(Program, OutputThatCannotBeWrittenIsAFailure) {
  for (const char* command :
       {"run --device emulator gemm m=16 n=16 k=16", "run --device emulator gemm m=16 n=16 k=16 --json",
        "inspect gemm m=16 n=16 k=16", "compile gemm m=16 n=16 k=16", "--help", "help gemm", "db stat", "man",
        "completion bash"}) {
    const std::string line =
        base::Cat("LANESHIFT_CACHE_DIR=", File("store"), " exec ", LANESHIFT_PROGRAM, " ", command, " > /dev/full");
    const auto result =
        base::RunProgram({.argv = {"/bin/sh", "-c", line}, .input = {}, .timeout = std::chrono::seconds(60)});
    ASSERT_TRUE(result.has_value());
    EXPECT_EQ(result->exit_code, 1) << command;
    EXPECT_NE(result->messages.find("laneshift: error: standard output c"), std::string::npos) << command << "\n"
                                                                                               << result->messages;
  }
}

// Beyond the limit on file sizes the system would end the program by SIGXFSZ.
TEST_F(Program, OutputBeyondTheLimitOnFileSizesIsAFailure) {
  const std::string line = base::Cat("ulimit -f 1; LANESHIFT_CACHE_DIR=", File("store"), " exec ", LANESHIFT_PROGRAM,
                                     " compile gemm m=16 n=16 k=16 > ", File("out.ptx"));
  const auto result =
      base::RunProgram({.argv = {"/bin/sh", "-c", line}, .input = {}, .timeout = std::chrono::seconds(60)});
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->signal, 0);
  EXPECT_EQ(result->exit_code, 1);
  EXPECT_NE(result->messages.find("laneshift: error: standard output c"), std::string::npos) << result->messages;
}

// Every verb and every verb of db: its help fits 80 columns, it has --json, and a manual page and completions name it.
TEST_F(Program, EveryVerbIsExplainedEverywhere) {
  const Json program = CallJson({"help"}).at(0);
  const std::string bash = Call({"completion", "bash"}).output, zsh = Call({"completion", "zsh"}).output,
                    fish = Call({"completion", "fish"}).output;
  std::vector<std::vector<std::string>> verbs;
  for (const Json& verb : program["verbs"]) verbs.push_back({verb["name"]});
  EXPECT_GE(verbs.size(), 13u);
  for (const Json& verb : CallJson({"help", "db"}).at(0)["verbs"]) verbs.push_back({"db", verb["name"]});
  for (std::vector<std::string> verb : verbs) {
    const std::string name = verb.back();
    for (const std::string* script : {&bash, &zsh, &fish}) EXPECT_NE(script->find(name), std::string::npos) << name;
    const base::ProgramResult man = Call({"man", verb.front()});
    EXPECT_EQ(man.exit_code, 0) << name;
    EXPECT_NE(man.output.find(".SH OPTIONS"), std::string::npos) << name;
    verb.push_back("--help");
    const std::string help = Call(verb).output;
    // `db` itself does nothing.
    EXPECT_EQ(help.find("--json") != std::string::npos, name != "db") << name << "\n" << help;
    for (const std::string_view line : base::Split(help, '\n')) EXPECT_LE(line.size(), 82u) << name << ": " << line;
  }
}

TEST_F(Program, HelpExplainsKeysAndTopics) {
  EXPECT_NE(Call({"help", "gemm"}).output.find("lda="), std::string::npos);
  EXPECT_NE(Call({"help", "stages"}).output.find("shared-memory ring"), std::string::npos);
  EXPECT_NE(Call({"help", "db", "prune"}).output.find("--dry-run"), std::string::npos);
  EXPECT_EQ(Call({"help", "db", "prune"}).output, Call({"db", "prune", "--help"}).output);
  EXPECT_EQ(Call({"help", "run"}).output, Call({"run", "--help"}).output);
  for (const char* topic : {"gemm", "conv", "grouped_gemm", "schedule", "epilogue", "numerics", "types", "targets",
                            "policies", "store", "exit-codes"}) {
    const Json page = CallJson({"help", topic}).at(0);
    EXPECT_FALSE(page["rows"].empty()) << topic;
  }
}

TEST_F(Program, PruningCanBeTriedFirst) {
  CallJson(RunOnEmulator({kTiny}));
  const Json tried = CallJson({"db", "prune", "--max-code", "0", "--dry-run"}).at(0);
  EXPECT_EQ(tried["kernels"], 1);
  EXPECT_EQ(tried["dry_run"], true);
  EXPECT_EQ(CallJson({"db", "stat"}).at(0)["kernels"], 1);
  EXPECT_EQ(CallJson({"db", "prune", "--max-code", "0"}).at(0)["kernels"], 1);
  EXPECT_EQ(CallJson({"db", "stat"}).at(0)["kernels"], 0);
}

// Bash offers values of an option, options of a verb and keys of a problem.
TEST_F(Program, BashCompletes) {
  const auto offered = [&](const std::string& words, int last) {
    const std::string script =
        base::Cat("source <(", LANESHIFT_PROGRAM, " completion bash); compopt() { :; }; COMP_WORDS=(", words,
                  "); COMP_CWORD=", last, "; _laneshift; echo \"${COMPREPLY[@]}\"");
    const auto result =
        base::RunProgram({.argv = {"/bin/bash", "-c", script}, .input = {}, .timeout = std::chrono::seconds(60)});
    return result ? std::string(base::Trim(result->output)) : result.error().message;
  };
  EXPECT_EQ(offered("laneshift ru", 1), "run");
  EXPECT_EQ(offered("laneshift run --device e", 3), "emulator");
  EXPECT_EQ(offered("laneshift run --che", 2), "--check");
  EXPECT_EQ(offered("laneshift run gemm stride_a", 3), "stride_a=");
  EXPECT_EQ(offered("laneshift db pru", 2), "prune");
  EXPECT_EQ(offered("laneshift db prune --dry", 3), "--dry-run");
}

TEST_F(Program, AProblemThatFailsIsToldInItsLine) {
  struct Case {
    std::vector<std::string> arguments;
    int exit_code;
    const char* code;
    const char* message;
  };
  std::ofstream(File("text.npy")) << "hello";
  const Case cases[] = {
      {{kTiny, "--schedule", "tile=128x256x64 stages=12"}, 3, "resource exhausted", "shared memory"},
      {{kTiny, "--schedule", "tile=100x32"}, 3, "unsupported", "tile"},
      {{kTiny, "--a", File("text.npy")}, 2, "invalid argument", "is not an .npy file; write one with numpy.save"},
      {{kTiny, "--b", File("absent.npy")}, 2, "invalid argument", "cannot be opened"},
      {{kTiny, "--a", testing::TempDir()}, 2, "invalid argument", "cannot be read: Is a directory"},
      {{kTiny, "--a", File("not_utf8_\xff.npy")}, 2, "invalid argument", "not_utf8_\xEF\xBF\xBD.npy: cannot be opened"},
      {{kTiny, "--c", File("text.npy")}, 2, "invalid argument", "reads no c; give it a beta"},
      {{kTiny, "--bias", File("text.npy")}, 2, "invalid argument", "reads no bias; give it a bias, such as bias=n"},
  };
  for (const Case& bad : cases) {
    const auto objects = CallJson(RunOnEmulator(bad.arguments), bad.exit_code);
    ASSERT_EQ(objects.size(), 1u) << bad.message;
    EXPECT_EQ(objects[0]["problem"], kTiny);
    EXPECT_EQ(objects[0]["error"]["code"], bad.code) << objects[0].dump();
    const std::string message = objects[0]["error"]["message"];
    EXPECT_NE(message.find(bad.message), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_TRUE(objects[0]["verified"].is_null());
  }
}

TEST_F(Program, AStoreThatCannotBeUsedFailsNothing) {
  std::ofstream(File("store")) << "a file in the place of the directory";
  const auto run = CallJson(RunOnEmulator({kTiny, "--check"})).at(0);
  EXPECT_EQ(run["verified"], true);
  EXPECT_EQ(run["cache"], "compiled");
}

}  // namespace
}  // namespace laneshift::tools
