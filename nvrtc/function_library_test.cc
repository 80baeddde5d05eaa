// Users' functions from source to PTX: what a signature is read as, what is compiled once, and what is said of sources
// that cannot be served. Skipped where there is no NVRTC.
#include "nvrtc/function_library.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/fingerprint.h"
#include "compiler/functions/function_module.h"
#include "ir/function_call.h"
#include "nvrtc/include_closure.h"
#include "nvrtc/signature.h"
#include "store/temporary_directory.h"

namespace laneshift::nvrtc {
namespace {

constexpr const char* kSwish =
    "__device__ float Swish(float v, laneshift::PerColumn<float> b, laneshift::Output<__half>& saved, float beta) {\n"
    "  const float x = v + b;\n"
    "  saved = x;\n"
    "  return x / (1 + expf(-beta * x));\n"
    "}\n";

const LibraryOptions kInProcess = {.in_process = true};

class FunctionLibraryTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto nvrtc = Nvrtc::Open({"/usr/local/cuda/lib64"});
    if (!nvrtc) GTEST_SKIP() << nvrtc.error().message;
  }

  static const target::Target& target(const char* name = "sm_90a") { return target::NamedTarget(name); }
  FunctionLibrary Library(const char* target_name = "sm_90a") { return {store_, target(target_name), kInProcess}; }

  static std::string MessageOf(FunctionLibrary& library, const std::string& text, const std::string& function) {
    const auto call = library.Find({.text = text, .file = "act.cu", .function = function});
    return call ? "found" : call.error().message;
  }

  store::Store store_ = store::Store::Open({});
};

TEST_F(FunctionLibraryTest, ReadsSignatures) {
  for (const char* name : {"sm_90a", "sm_100a"}) {
    FunctionLibrary library(store_, target(name), kInProcess);
    const auto call = library.Find({.text = kSwish, .file = "act.cu", .function = "Swish", .numbers = {1.5}});
    ASSERT_TRUE(call) << call.error().message;
    EXPECT_EQ(ir::PrintFunctionCall(*call), "Swish@" + call->digest + "/column.f32,output.f16,number:1.5");
    EXPECT_EQ(*ir::ParseFunctionCall(ir::PrintFunctionCall(*call)), *call);
  }
}

TEST_F(FunctionLibraryTest, ReadsEveryFormOfParameter) {
  FunctionLibrary library = Library();
  const auto call = library.Find({.text = "namespace ns {\n"
                                          "template <int kTurns>\n"
                                          "static float F(const float v, const laneshift::PerRow<>& r,\n"
                                          "              const laneshift::PerElement<__nv_fp8_e4m3> e,\n"
                                          "              laneshift::Table<__nv_bfloat16, 7> t, int i, bool b,\n"
                                          "              laneshift::Output<>& o) noexcept {\n"
                                          "  o = e;\n"
                                          "  return b ? v * r : i + kTurns;\n"
                                          "}\n"
                                          "}\n",
                                  .function = "ns::F<3>",
                                  .numbers = {4, 1}});
  ASSERT_TRUE(call) << call.error().message;
  EXPECT_EQ(ir::PrintFunctionCall(*call),
            "ns::F<3>@" + call->digest + "/row,element.e4m3,table7.bf16,number,number,output:4:1");
  EXPECT_EQ(*ir::ParseFunctionCall(ir::PrintFunctionCall(*call)), *call);
}

TEST_F(FunctionLibraryTest, LengthsAreKnownByDigestToo) {
  FunctionLibrary library = Library();
  const char* text =
      "float Short(float v) { return v * 2; }\n"
      "float Long(float v) { for (int i = 0; i < 4; ++i) v = v * v + 0.5f; return v; }\n"
      "__noinline__ float Inner(float v) { return __expf(v) * v; }\n"
      "float Outer(float v) { return Inner(v) + __expf(-v); }\n";
  const auto length = [&](const char* name) { return library.Find({.text = text, .function = name})->length; };
  EXPECT_EQ(length("Short").operations, 1);
  EXPECT_EQ(length("Short").special, 0);
  EXPECT_GE(length("Long").operations, 4);
  EXPECT_EQ(length("Outer").special, 2) << "one itself, one in what it calls";
  FunctionLibrary other = Library();
  const auto call = library.Find({.text = text, .function = "Outer"});
  const auto problem = other.ReadProblem("gemm m=64 n=64 k=64 epilogue=" + ir::PrintFunctionCall(*call));
  ASSERT_TRUE(problem) << problem.error().message;
  EXPECT_EQ(std::get<GemmProblem>(*problem).epilogue[0].function->length.special, 2);
  EXPECT_EQ(*problem, *ParseProblem(PrintProblem(*problem))) << "no part of the problem";
}

TEST_F(FunctionLibraryTest, FunctionsMayGatePairs) {
  FunctionLibrary library = Library();
  const char* text =
      "float Gate(laneshift::Pair v, laneshift::PerColumn<float> s, float x) { return v.gate * v.up * s + x; }\n"
      "float Kept(const laneshift::Pair& v, laneshift::Output<>& g) noexcept { return v.up * (g = v.gate).value; }\n";
  const auto gate = library.Find({.text = text, .function = "Gate", .numbers = {2}});
  ASSERT_TRUE(gate) << gate.error().message;
  EXPECT_TRUE(gate->is_gated);
  EXPECT_EQ(ir::PrintFunctionCall(*gate), "Gate@" + gate->digest + "/pair,column.f32,number:2");
  EXPECT_EQ(*ir::ParseFunctionCall(ir::PrintFunctionCall(*gate)), *gate);
  const auto kept = library.Find({.text = text, .function = "Kept"});
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(ir::PrintFunctionCall(*kept), "Kept@" + kept->digest + "/pair,output");
  const std::string message = MessageOf(library, "float F(float v, laneshift::Pair p) { return v * p.up; }\n", "F");
  EXPECT_NE(message.find("its parameter 2"), std::string::npos) << message;
}

TEST_F(FunctionLibraryTest, CompilesOnceForEachSourceFunctionAndTarget) {
  FunctionLibrary first = Library();
  const FunctionSource source{.text = kSwish, .file = "act.cu", .function = "Swish", .numbers = {1}};
  const auto call = first.Find(source);
  ASSERT_TRUE(call) << call.error().message;
  ASSERT_TRUE(first.Find({.text = kSwish, .file = "elsewhere/other.cu", .function = "Swish", .numbers = {2}}));
  EXPECT_EQ(first.compilations(), 1) << "neither the file nor the numbers are part of the function";
  FunctionLibrary second = Library();
  EXPECT_EQ(*second.Find(source), *call);
  EXPECT_EQ(second.compilations(), 0) << "the store has it";
  FunctionLibrary other = Library("sm_100a");
  EXPECT_EQ(other.Find(source)->digest, call->digest);
  EXPECT_EQ(other.compilations(), 1);
  const auto changed =
      second.Find({.text = std::string(kSwish) + "// and more\n", .function = "Swish", .numbers = {1}});
  ASSERT_TRUE(changed);
  EXPECT_NE(changed->digest, call->digest);
}

TEST_F(FunctionLibraryTest, TextsAreFoundByDigest) {
  FunctionLibrary first = Library();
  const auto call = first.Find({.text = kSwish, .function = "Swish", .numbers = {1}});
  ASSERT_TRUE(call) << call.error().message;
  ir::Program program;
  program.functions.push_back({.name = "Swish",
                               .digest = call->digest,
                               .inputs = {{FunctionOperand::kPerColumn, DataType::kF32},
                                          {FunctionOperand::kOutput, DataType::kF16},
                                          {FunctionOperand::kNumber, DataType::kF32}}});
  FunctionLibrary second = Library();
  const auto texts = second.TextsOf(program);
  ASSERT_TRUE(texts) << texts.error().message;
  EXPECT_TRUE(compiler::FunctionModule::Parse(texts->at(call->digest)));
  program.functions[0].inputs.pop_back();
  EXPECT_NE(second.TextsOf(program).error().message.find("has other parameters"), std::string::npos);
  program.functions[0].digest[0] ^= 1;
  EXPECT_EQ(second.TextsOf(program).error().code, ErrorCode::kNotFound);
}

TEST_F(FunctionLibraryTest, SaysWhatIsWrong) {
  FunctionLibrary library = Library();
  struct Case {
    const char *text, *function;
    std::vector<const char*> parts;
  };
  const Case cases[] = {
      {"float F(float v) { return v; }\nfloat G(float v, float w) { return w; }",
       "H",
       {"act.cu has no __device__ function H", "it has F(float); G(float, float)"}},
      {"int none;", "F", {"act.cu has no __device__ function F; it has none"}},
      {"float F(float v) { return v; }\nfloat F(float v, float w) { return w; }",
       "F",
       {"F is overloaded: F(float); F(float, float); give"}},
      {"float F(float v) {\n  return w;\n}",
       "F",
       {"act.cu does not compile", "act.cu(2): error", "\"w\" is undefined"}},
      {"#include \"nowhere.h\"\nfloat F(float v) { return v; }", "F", {"act.cu(1)", "nowhere.h"}},
      {"float F(float v, float* p) { return *p; }",
       "F",
       {"act.cu: F(float, float*): its parameter 2", "Table<T, COUNT>"}},
      {"float F(float v, laneshift::Output<> o) { return v; }", "F", {"its parameter 2"}},
      {"void F(float v) {}", "F", {"has to return a float"}},
      {"float F() { return 1; }", "F", {"takes no value"}},
      {"float F(const char* v) { return 1; }", "F", {"first parameter", "or a laneshift::Pair"}},
      {"float F;", "F", {"takes no value"}},
      {"float F(float v) { return __shfl_xor_sync(~0u, v, 1); }", "F", {"it uses shfl", "sees only one element"}},
      {"float F(float v) { __syncthreads(); return v; }", "F", {"communicates with other threads"}},
      {"float F(float v) { asm volatile(\"exit;\"); return v; }", "F", {"ends the thread"}},
      {"float F(float v) { __shared__ float s[4]; s[threadIdx.x & 3] = v; return s[0]; }", "F", {"shared memory"}},
      {"extern __device__ float G(float);\nfloat F(float v) { return G(v); }", "F", {"not defined"}},
      {"float F(float v, float beta) { return v; }", "F", {"F takes 1 number, given are 0"}},
      {"float F(float v) { return v; }", "", {"which function"}},
  };
  for (const Case& c : cases) {
    const std::string message = MessageOf(library, c.text, c.function);
    for (const char* part : c.parts) EXPECT_NE(message.find(part), std::string::npos) << c.text << "\n" << message;
    EXPECT_EQ(message.find("laneshift-binding"), std::string::npos) << message;
  }
}

TEST_F(FunctionLibraryTest, FindsIncludesAndSeesThemChange) {
  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() / ("laneshift-include-" + std::to_string(getpid()));
  std::filesystem::create_directories(directory / "more");
  const auto write = [&](const char* name, const char* text) { std::ofstream(directory / name) << text; };
  write("scale.h", "#include \"more/inner.h\"\n");
  write("more/inner.h", "constexpr float kScale = 2;\n");
  const FunctionSource source{.text =
                                  "#include <cuda_fp16.h>\n#include <scale.h>\n"
                                  "float F(float v) { return __half2float(__float2half(v)) * kScale; }\n",
                              .function = "F"};
  FunctionLibrary library(store_, target(), {.include_directories = {directory}, .in_process = true});
  const auto first = library.Find(source), again = library.Find(source);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->digest, again->digest);
  EXPECT_EQ(library.compilations(), 1);
  write("more/inner.h", "constexpr float kScale = 3;\n");
  const auto changed = library.Find(source);
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_NE(first->digest, changed->digest);
  EXPECT_EQ(library.compilations(), 2);
  std::filesystem::remove_all(directory);
}

TEST(IncludeClosure, ReadsDirectives) {
  const Directives found = DirectivesOf(
      "#include <a.h>\n  #  include \"b/c.h\" // d\n// #include <e.h>\n#define MACRO <f.h>\n#define LESS(a) a < 1\n");
  ASSERT_EQ(found.includes.size(), 2u);
  EXPECT_EQ(found.includes[0].name, "a.h");
  EXPECT_FALSE(found.includes[0].quoted);
  EXPECT_EQ(found.includes[1].name, "b/c.h");
  EXPECT_TRUE(found.includes[1].quoted);
  EXPECT_FALSE(found.by_macro);
  ASSERT_EQ(found.defined.size(), 1u);
  EXPECT_EQ(found.defined[0].name, "f.h");
  EXPECT_TRUE(DirectivesOf("#include MACRO\n").by_macro);
}

// Its contents are part of the digest, so that a change is compiled again.
TEST(IncludeClosure, CoversFilesThatMacrosName) {
  const store::TemporaryDirectory directory;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(directory.path() + "/" + name) << text;
  };
  const auto digest = [&](std::string_view source) {
    base::Fingerprinter fingerprint;
    const Status added = AddIncludes(fingerprint, source, {directory.path(), {}, {}});
    EXPECT_TRUE(added.has_value()) << (added ? "" : added.error().message);
    return fingerprint.Finish().Hex();
  };
  write("names.h", "#define TABLE \"table.h\"\n");
  write("table.h", "#include \"row.h\"\n");
  write("row.h", "1");
  const char* const source = "#include \"names.h\"\n#include TABLE\n";
  const char* const unused = "#include \"names.h\"\n";
  const std::string first = digest(source), without = digest(unused);
  write("row.h", "2");
  EXPECT_NE(digest(source), first);
  EXPECT_EQ(digest(unused), without) << "nothing includes the table";
}

TEST(FunctionLibrary, WithoutNvrtcSaysSo) {
  store::Store store = store::Store::Open({});
  FunctionLibrary library(store, target::NamedTarget("sm_90a"), {.nvrtc = "nowhere/libnvrtc.so"});
  const auto call = library.Find({.text = kSwish, .file = "act.cu", .function = "Swish", .numbers = {1}});
  ASSERT_FALSE(call);
  EXPECT_EQ(call.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(
      call.error().message.find("the function Swish of act.cu needs NVRTC: no NVRTC: none of nowhere/libnvrtc.so"),
      std::string::npos)
      << call.error().message;
}

}  // namespace
}  // namespace laneshift::nvrtc
