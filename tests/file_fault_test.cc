// Fails the n-th operation on files of the program, n = 1, 2, …, once or from then on: files that it reads and writes,
// its standard output, the store with its locks, and what it makes for ptxas and for its workers. Each run has to say
// by name what failed, or its output has to be that of a run that nothing disturbed. Some operations, evenly spread;
// each one with LANESHIFT_TEST_EXHAUSTIVE=1.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "base/read_file.h"
#include "base/text.h"
#include "store/temporary_directory.h"
#include "tests/failing_files.h"

namespace laneshift::tests {
namespace {

using base::Cat;
namespace fs = std::filesystem;

constexpr int64_t kMost = 6;  // operations that fail in a test of one verb, unless all do

struct Verb {
  const char* name;
  const char* command;               // what stands after `laneshift`
  std::vector<std::string> outputs;  // files that have to be whole where the exit code is 0; "stdout" is one
  const char* needle = "";           // in standard output, where its times differ from run to run
  const char* afterwards = "";       // a command whose output has to be the same, where the exit code is 0
};

void PrintTo(const Verb& verb, std::ostream* stream) { *stream << verb.command; }

// clang-format off
const Verb kVerbs[] = {
    {"Compile",       "compile gemm m=16 n=16 k=32 --target sm_90a -o k.ptx", {"k.ptx", "stdout"}},
    {"CompileToPipe", "compile gemm m=16 n=16 k=32 --target sm_90a", {"stdout"}},
    {"Assemble",      "compile gemm m=16 n=16 k=32 --target sm_90a --emit cubin --ptxas ./ptxas -o k.cubin", {"k.cubin"}},
    {"Inspect",       "inspect gemm m=16 n=16 k=32 --target sm_90a --dump-after build --no-ptx --ptxas ./none", {"stdout"}},
    {"Emulate",       "emulate twice.ptx --launch launch.json --suppressions none.txt", {"x.npy", "x.bin"}, "as expected"},
    {"Man",           "man --directory pages", {"pages/laneshift.1", "pages/laneshift-run.1"}},
    {"Run",           "run --file problems.txt --device emulator --target sm_90a --check --json", {}, "\"verified\":true"},
    {"RunNpy",        "run gemm m=8 n=8 k=8 a=f16 b=f16 d=f16 --device emulator --target sm_90a --a a.npy --out d.npy",
                      {"d.npy"}},
    {"Tune",          "tune gemm m=16 n=16 k=32 --device emulator --target sm_90a --json", {}, "\"verified\":true"},
    {"Export",        "db export out.jsonl", {"out.jsonl"}},
    {"ExportToPipe",  "db export", {"stdout"}},
    {"Import",        "db import more.jsonl", {}, "1 added", "db export"},
    {"Prune",         "db prune --max-code 1", {}, "kernels", "db export"},
    {"Seal",          "db seal sealed.db", {}, "sealed", "db export --store sealed.db"},
    {"List",          "db list", {"stdout"}},
};
// clang-format on

constexpr char kTwice[] = R"(.version 9.0
.target sm_90
.address_size 64
.visible .entry twice(.param .u64 p) {
  .reg .b64 %rd<4>; .reg .b32 %r<4>;
  ld.param.u64 %rd1, [p]; mov.u32 %r2, %tid.x; mul.wide.u32 %rd2, %r2, 4; add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r3, [%rd3]; add.u32 %r3, %r3, %r3; st.global.u32 [%rd3], %r3; ret;
}
)";
constexpr char kLaunch[] = R"({
  "buffers": {"x": {"type": "u32", "shape": [32], "fill": {"raw": "ones.bin"}}},
  "launches": [{"grid": [1], "block": [32], "arguments": [{"buffer": "x"}]}],
  "outputs": [{"buffer": "x", "npy": "x.npy"}, {"buffer": "x", "raw": "x.bin"}],
  "expect": [{"buffer": "x", "fill": {"npy": "wanted.npy"}}]})";
constexpr char kPtxas[] = R"(#!/bin/sh
if [ "$1" = --version ]; then echo 'release 13.0, V13.0.88'; exit 0; fi
while [ "$1" != -o ]; do shift; done
echo 'ptxas info : Used 8 registers' && echo cubin > "$2"
)";

std::string Npy(std::string_view descr, std::string_view shape, std::string_view bytes) {
  std::string header = Cat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (", shape, "), }");
  header.resize(117, ' ');
  return Cat(std::string_view("\x93NUMPY\x01\x00\x76\x00", 10), header, "\n", bytes);
}

std::string Words(uint32_t word, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes.append(reinterpret_cast<const char*>(&word), sizeof word);
  return bytes;
}

class FileFaultTest : public testing::TestWithParam<Verb> {
 protected:
  void SetUp() override {
    root_ = fs::canonical(directory_.path());
    const fs::path work = root_ / "fresh";
    for (const char* name : {"pages", "tmp"}) fs::create_directories(work / name);
    const auto put = [&](const char* name, const std::string& text) {
      ASSERT_TRUE(base::WriteFile(work / name, text)) << name;
    };
    put("twice.ptx", kTwice);
    put("launch.json", kLaunch);
    put("none.txt", "# nothing is suppressed\n");
    put("ones.bin", Words(1, 32));
    put("wanted.npy", Npy("<u4", "32,", Words(2, 32)));
    put("a.npy", Npy("<f2", "8, 8", Words(0x3c003c00, 32)));
    put("problems.txt", "gemm m=16 n=16 k=32\n");
    put("ptxas", kPtxas);
    fs::permissions(work / "ptxas", fs::perms::owner_all);
    // A choice in the store, and another one in a file.
    Renew();
    MustRun("tune gemm m=16 n=48 k=32 --device emulator --target sm_90a");
    fs::copy(root_ / "work/store", work / "store", fs::copy_options::recursive);
    MustRun("tune gemm m=16 n=64 k=32 --device emulator --target sm_90a");
    MustRun("db export all.jsonl --only choices");
    std::string kept;
    for (const std::string_view line : base::Split(Text("all.jsonl"), '\n')) {
      if (!line.empty() && line.find("n=48") == std::string_view::npos) kept += Cat(line, "\n");
    }
    put("more.jsonl", kept);
  }

  std::string Text(const std::string& name) const {
    auto text = base::ReadFile(root_ / "work" / name);
    return text ? *text : Cat("no file: ", text.error().message);
  }
  std::string Messages() const { return *base::ReadFile(root_ / "messages"); }

  void Renew() const {
    fs::remove_all(root_ / "work");
    fs::copy(root_ / "fresh", root_ / "work", fs::copy_options::recursive);
  }

  Result<FaultyRun> Run(const std::string& command, const std::string& output = "stdout", FileFault fault = {}) const {
    fault.directory = root_ / "work";
    std::vector<std::string> argv = {"/usr/bin/env", Cat("LANESHIFT_CACHE_DIR=", fault.directory, "/store"),
                                     Cat("TMPDIR=", fault.directory, "/tmp"), LANESHIFT_PROGRAM};
    for (const std::string_view word : base::Words(command)) argv.emplace_back(word);
    return RunWithFileFault(argv, root_ / "work" / output, root_ / "messages", fault, std::chrono::seconds(120));
  }
  void MustRun(const std::string& command) const {
    const auto ran = Run(command);
    ASSERT_TRUE(ran) << ran.error().message;
    ASSERT_EQ(ran->exit_code, 0) << command << ": " << Messages();
  }

  // What a run has left, of all that has to be the same wherever it says that all is well.
  std::map<std::string, std::string> Outputs(const Verb& verb) const {
    std::map<std::string, std::string> all;
    for (const std::string& name : verb.outputs) all[name] = Text(name);
    all["needle"] =
        Text("stdout").find(verb.needle) == std::string::npos ? Cat("missing in ", Text("stdout")) : "there";
    if (*verb.afterwards != 0) {
      const auto after = Run(verb.afterwards, "after");
      all["afterwards"] = after ? Text("after") : after.error().message;
    }
    return all;
  }

  // One run of which an operation fails; whether there was one to fail.
  bool Try(const Verb& verb, const FileFault& fault, const std::map<std::string, std::string>& wanted) const {
    Renew();
    const auto run = Run(verb.command, "stdout", fault);
    const std::string when =
        Cat("laneshift ", verb.command, ", operation ", fault.operation, fault.and_all_after ? " and all after it" : "",
            ": ", run ? run->failed : run.error().message);
    if (!run) {
      ADD_FAILURE() << when;
      return false;
    }
    EXPECT_EQ(run->signal, 0) << when << "\n" << Messages();
    EXPECT_GE(run->exit_code, 0) << when;
    EXPECT_LE(run->exit_code, 4) << when << "\n" << Messages();
    if (run->exit_code != 0) {
      EXPECT_FALSE(run->failed.empty()) << when << "\n" << Messages();
      EXPECT_NE(Messages().find("error"), std::string::npos)
          << when << "\nexit code " << run->exit_code << ", but: " << Messages() << Text("stdout");
    } else {
      EXPECT_EQ(Outputs(verb), wanted) << when << "\n" << Messages();
    }
    if (!fault.and_all_after && !run->removes) {
      EXPECT_TRUE(fs::is_empty(root_ / "work/tmp")) << when << ": left in the directory for temporary files";
    }
    return !run->failed.empty();
  }

  store::TemporaryDirectory directory_;
  fs::path root_;
};

TEST_P(FileFaultTest, IsAnErrorByNameOrNoMatter) {
  const Verb& verb = GetParam();
  Renew();
  const auto whole = Run(verb.command);
  if (!whole && whole.error().code == ErrorCode::kUnsupported) GTEST_SKIP() << whole.error().message;
  ASSERT_TRUE(whole) << whole.error().message;
  ASSERT_EQ(whole->exit_code, 0) << Messages();
  ASSERT_GT(whole->operations, 0) << "nothing of it can fail";
  const auto wanted = Outputs(verb);
  ASSERT_EQ(wanted.at("needle"), "there") << Text("stdout");
  const bool each = std::getenv("LANESHIFT_TEST_EXHAUSTIVE") != nullptr;
  const int64_t stride = each ? 1 : std::max<int64_t>(1, whole->operations / kMost);
  int failures = 0;
  for (const bool and_all_after : {false, true}) {
    for (int64_t n = 1; n <= whole->operations; n += stride) {
      failures += Try(verb, {.directory = {}, .operation = n, .and_all_after = and_all_after}, wanted);
    }
  }
  EXPECT_GT(failures, 0);
  std::printf("%s: %lld operations, %d of them failed\n", verb.name, static_cast<long long>(whole->operations),
              failures);
}

INSTANTIATE_TEST_SUITE_P(Verbs, FileFaultTest, testing::ValuesIn(kVerbs),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace laneshift::tests
