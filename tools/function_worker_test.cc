// Sources of epilogue functions that would take all memory, all time, or no end: each is an error that says why, and
// the process that asked goes on. Skipped where there is no NVRTC.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "nvrtc/compile_worker.h"
#include "nvrtc/function_library.h"
#include "store/temporary_directory.h"

namespace laneshift::nvrtc {
namespace {

class FunctionWorker : public testing::Test {
 protected:
  void SetUp() override {
    const auto nvrtc = Nvrtc::Open({"/usr/local/cuda/lib64"});
    if (!nvrtc) GTEST_SKIP() << nvrtc.error().message;
    alarm(300);
  }
  void TearDown() override { alarm(0); }

  FunctionLibrary Library(FunctionLimits limits) {
    return {store_, target::NamedTarget("sm_90a"), {.program = LANESHIFT_PROGRAM, .limits = limits}};
  }
  static Error ErrorOf(FunctionLibrary& library, const std::string& text) {
    const auto call = library.Find({.text = text, .file = "act.cu", .function = "F"});
    return call ? MakeError(ErrorCode::kInternal, "it was compiled") : call.error();
  }

  store::Store store_ = store::Store::Open({});
  store::TemporaryDirectory directory_;
};

constexpr const char* kMacros =
    "#define A(x) x+x\n#define B(x) A(A(A(A(x))))\n#define C(x) B(B(B(B(x))))\n#define D(x) C(C(x))\n"
    "__device__ float F(float v) { return D(v); }\n";
constexpr const char* kTemplates =
    "template <int N, int M> struct R { static __device__ float f(float v) {\n"
    "  return R<N - 1, M * 2>::f(v) + R<N - 1, M * 2 + 1>::f(v); } };\n"
    "template <int M> struct R<0, M> { static __device__ float f(float v) { return v * M; } };\n"
    "__device__ float F(float v) { return R<18, 1>::f(v); }\n";

TEST_F(FunctionWorker, CompilesAsInTheProcess) {
  FunctionLibrary library = Library({});
  const FunctionSource source{.text = "__device__ float F(float v, float x) { return v * x; }\n",
                              .file = "act.cu",
                              .function = "F",
                              .numbers = {2}};
  const auto call = library.Find(source);
  ASSERT_TRUE(call) << call.error().message;
  EXPECT_EQ(library.compilations(), 1);
  store::Store other = store::Store::Open({});
  FunctionLibrary here(other, target::NamedTarget("sm_90a"), {.in_process = true});
  EXPECT_EQ(*library.TextOf("F", call->digest), *here.TextOf("F", here.Find(source)->digest));
  const Error wrong = ErrorOf(library, "float F(float v) {\n  return w;\n}");
  EXPECT_EQ(wrong.code, ErrorCode::kInvalidArgument);
  EXPECT_NE(wrong.message.find("act.cu(2): error"), std::string::npos) << wrong.message;
}

TEST_F(FunctionWorker, WhatExpandsWithoutEndPassesALimit) {
  const struct {
    const char* source;
    FunctionLimits limits;
    const char* part;
  } cases[] = {{kMacros, {.cpu_seconds = 2}, "cpu_seconds"},
               {kTemplates, {.cpu_seconds = 2}, "cpu_seconds"},
               {kMacros, {.wall_seconds = 1}, "wall_seconds"},
               {kMacros, {.memory_bytes = int64_t{400} << 20, .cpu_seconds = 100}, "memory_bytes"}};
  for (const auto& [source, limits, part] : cases) {
    FunctionLibrary library = Library(limits);
    const auto began = std::chrono::steady_clock::now();
    const Error error = ErrorOf(library, source);
    EXPECT_EQ(error.code, ErrorCode::kResourceExhausted) << error.message;
    EXPECT_NE(error.message.find("the function F of act.cu: NVRTC"), std::string::npos) << error.message;
    EXPECT_NE(error.message.find(part), std::string::npos) << error.message;
    EXPECT_NE(error.message.find("macros, templates or includes"), std::string::npos) << error.message;
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(60));
  }
}

TEST_F(FunctionWorker, WithoutAProgramItIsCompiledHereOnlyWhereThatIsAllowed) {
  FunctionLibrary library(store_, target::NamedTarget("sm_90a"), {});
  const Error error = ErrorOf(library, "__device__ float F(float v) { return v; }");
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_NE(error.message.find("functions_in_process"), std::string::npos) << error.message;
  // As a user of the library meets it: with a path that leads nowhere.
  EngineOptions options{.device = "emulator", .target = "sm_90a", .store_directory = ":memory:"};
  options.tuner = "/no/such/laneshift";
  const FunctionSource source{.text = "__device__ float F(float v) { return v; }", .file = "act.cu", .function = "F"};
  const auto refused = Engine::Open(options)->MakeStep(source);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kNotFound) << refused.error().message;
  options.functions_in_process = true;
  const auto made = Engine::Open(options)->MakeStep(source);
  EXPECT_TRUE(made) << made.error().message;
}

TEST_F(FunctionWorker, AProgramThatServesNobodyIsAnErrorByName) {
  for (const char* program : {"/bin/true", "/no/such/laneshift"}) {
    FunctionLibrary library(store_, target::NamedTarget("sm_90a"), {.program = program});
    const Error error = ErrorOf(library, "float F(float v) { return v; }");
    EXPECT_NE(error.code, ErrorCode::kInternal) << error.message;
    EXPECT_NE(error.message.find(std::string(program) == "/bin/true" ? "without an answer" : program),
              std::string::npos)
        << error.message;
  }
}

TEST_F(FunctionWorker, SourcesAndIncludesAreRegularFilesOfSomeSize) {
  const std::string fifo = directory_.path() + "/fifo.cu", large = directory_.path() + "/large.cu",
                    link = directory_.path() + "/zero.cu";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  std::ofstream(large) << "";
  std::filesystem::resize_file(large, (8 << 20) + 1);
  std::filesystem::create_symlink("/dev/zero", link);
  FunctionLibrary library(store_, target::NamedTarget("sm_90a"), {.program = LANESHIFT_PROGRAM});
  const std::pair<std::string, const char*> files[] = {{fifo, "is a FIFO; only regular files"},
                                                       {link, "is a character device; only"},
                                                       {"/dev/zero.cu", "No such file"},
                                                       {directory_.path() + "/a.cu", "No such file"},
                                                       {large, "more than 8388608 bytes"}};
  for (const auto& [file, part] : files) {
    const auto problem = library.ReadProblem("gemm m=16 n=16 k=16 epilogue=" + file + ":F");
    ASSERT_FALSE(problem) << file;
    EXPECT_EQ(problem.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(problem.error().message.find(file), std::string::npos) << problem.error().message;
    EXPECT_NE(problem.error().message.find(part), std::string::npos) << problem.error().message;
    if (std::string(part).starts_with("No such")) continue;
    const Error included = ErrorOf(library, "#include \"" + file + "\"\nfloat F(float v) { return v; }");
    EXPECT_NE(included.message.find(part), std::string::npos) << included.message;
    const Error by_macro =
        ErrorOf(library, "#define NAME \"" + file + "\"\n#include NAME\nfloat F(float v) { return v; }");
    EXPECT_NE(by_macro.message.find(part), std::string::npos) << by_macro.message;
  }
  std::filesystem::create_directory(directory_.path() + "/d.cu");
  const auto problem = library.ReadProblem("gemm m=16 n=16 k=16 epilogue=" + directory_.path() + "/d.cu:F");
  EXPECT_NE(problem.error().message.find("is a directory"), std::string::npos) << problem.error().message;
}

}  // namespace
}  // namespace laneshift::nvrtc
