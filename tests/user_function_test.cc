// Users' epilogue functions in kernels: on the emulator, for both targets and under every completion order, or on the
// GPU that LANESHIFT_TEST_DEVICE names. What they compute is compared with the same source as the host compiles it.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>

#include "autotune/ranking.h"
#include "base/text.h"
#include "device/assembler.h"
#include "ir/epilogue_steps.h"
#include "ir/stored_tensor.h"
#include "laneshift/c.h"
#include "laneshift/engine.h"
#include "laneshift/function_operands.h"
#include "laneshift/host_run.h"
#include "measure/reference/host_reference.h"
#include "nvrtc/nvrtc.h"
#include "runtime/engine_parts.h"
#include "tests/test_device.h"
#include "tools/problem_run.h"

namespace laneshift {
namespace {

namespace twin {
using std::min;
#define __device__ [[maybe_unused]] static
#define __constant__ static
#define __noinline__
#include "tests/functions/activations.cu"
#undef __device__
#undef __constant__
#undef __noinline__
}  // namespace twin

using base::Cat;
using measure::HostOperands;
using measure::HostTensor;

constexpr const char* kFile = LANESHIFT_SOURCE_DIR "/tests/functions/activations.cu";

// The emulators of both targets, or the GPU.
std::vector<EngineOptions> Devices() {
  if (TestDevice() != nullptr) return {{.device = TestDevice(), .store_directory = ":memory:"}};
  std::vector<EngineOptions> devices;
  for (const char* target : {"sm_90a", "sm_100a"}) {
    devices.push_back({.device = "emulator", .target = target, .store_directory = ":memory:"});
    devices.back().async_order = {AsyncOrder::kLate};
  }
  return devices;
}

// "gemm … epilogue=FILE:Swish:1.5" for "gemm … epilogue=:Swish:1.5".
std::string WithFile(std::string text) {
  for (size_t at = 0; (at = text.find("=:", at)) != std::string::npos;) text.insert(++at, kFile);
  for (size_t at = 0; (at = text.find("+:", at)) != std::string::npos;) text.insert(++at, kFile);
  return text;
}

class UserFunction : public testing::Test {
 protected:
  void SetUp() override {
    const auto nvrtc = nvrtc::Nvrtc::Open({"/usr/local/cuda/lib64"});
    if (!nvrtc) GTEST_SKIP() << nvrtc.error().message;
  }
};

// One element computed by the host's version: the value, or those of a pair, the operands of its place, the table;
// outputs after the result.
struct Element {
  float value, up = 0;
  std::vector<float> operands;
  const float* table = nullptr;
};
using Twin = std::function<std::vector<float>(const Element&)>;

struct Case {
  const char* text;  // of a GEMM with an f32 D
  Twin twin;
};

std::vector<Case> Cases() {
  const auto one = [](float (*function)(float)) -> Twin {
    return [function](const Element& e) { return std::vector<float>{function(e.value)}; };
  };
  return {
      {"gemm m=200 n=136 k=96 d=f32 epilogue=:Polynomial", one(twin::Polynomial)},
      {"gemm m=64 n=72 k=64 batch=2 d=f32 epilogue=:Erf", one(twin::Erf)},
      {"gemm m=136 n=40 k=64 d=f32 epilogue=:Tanh", one(twin::Tanh)},
      {"gemm m=130 n=70 k=64 d=f32 epilogue=:Swish:1.5",
       [](const Element& e) { return std::vector<float>{twin::Swish(e.value, {e.operands[0]}, 1.5f)}; }},
      {"gemm m=96 n=128 k=64 d=f32 epilogue=:Root:20",
       [](const Element& e) { return std::vector<float>{twin::Root(e.value, 20)}; }},
      {"gemm m=96 n=128 k=64 d=f32 epilogue=:OwnTable", one(twin::OwnTable)},
      {"gemm m=96 n=128 k=64 d=f32 epilogue=:Lookup",
       [](const Element& e) { return std::vector<float>{twin::Lookup(e.value, {e.table})}; }},
      {"gemm m=96 n=128 k=64 d=f32 epilogue=:Sine", one(twin::Sine)},
      {"gemm m=140 n=72 k=64 d=f32 epilogue=:TwoOutputs",
       [](const Element& e) {
         Output<__half> scaled;
         Output<float> gate;
         const float result = twin::TwoOutputs(e.value, {e.operands[0]}, {e.operands[1]}, scaled, gate);
         return std::vector<float>{result, scaled.value, gate.value};
       }},
      {"gemm m=96 n=72 k=64 d=f32 epilogue=:SwigluGradient",
       [](const Element& e) {
         Output<float> up;
         const float gate = twin::SwigluGradient(e.value, {e.operands[0]}, {e.operands[1]}, up);
         return std::vector<float>{gate, up.value};
       }},
      {"gemm m=72 n=136 k=64 d=f32 epilogue=:ClampedSwiglu:1.7:7",
       [](const Element& e) {
         return std::vector<float>{twin::ClampedSwiglu({e.value, e.up}, 1.7f, 7)};
       }},
      {"gemm m=136 n=144 k=64 d=f32 epilogue=:SquaredGate:halves",
       [](const Element& e) {
         Output<float> gate;
         const float result = twin::SquaredGate({e.value, e.up}, {e.operands[0]}, {e.operands[1]}, gate);
         return std::vector<float>{result, gate.value};
       }},
  };
}

// The plain sums of the same schedule, bit for bit what the function gets.
HostTensor SumsOf(const Engine& engine, GemmProblem problem, const HostOperands& operands,
                  const ScheduleConstraint& whole) {
  problem.epilogue = {};
  problem.ldd = problem.stride_d = 0;  // of pairs D had half as many columns
  problem = std::get<GemmProblem>(*CompleteProblem(problem));
  HostTensor d = HostTensor::Poisoned(ir::Stored(problem, ir::OperandRole::kD));
  const Status ran = RunFromHost(
      engine, problem, GemmArguments{.a = operands.a.bytes.data(), .b = operands.b.bytes.data(), .d = d.bytes.data()},
      whole);
  EXPECT_TRUE(ran) << ran.error().message;
  return d;
}

void ExpectTwin(const Engine& engine, const Case& c) {
  const auto problem = engine.ReadProblem(WithFile(c.text));
  ASSERT_TRUE(problem) << problem.error().message;
  const auto& gemm = std::get<GemmProblem>(*problem);
  const auto plan = engine.MakePlan(*problem);
  ASSERT_TRUE(plan) << c.text << ": " << plan.error().message;
  const ScheduleConstraint whole = *ParseSchedule(plan->report().schedule);
  HostOperands operands = HostOperands::Random(*problem, 5);
  HostTensor d = HostTensor::Poisoned(ir::Stored(*problem, ir::OperandRole::kD));
  GemmArguments arguments{.a = operands.a.bytes.data(), .b = operands.b.bytes.data(), .d = d.bytes.data()};
  for (size_t i = 0; i < operands.epilogue.size(); ++i) arguments.epilogue[i] = operands.epilogue[i].bytes.data();
  const Status ran = RunFromHost(engine, *problem, arguments, whole);
  ASSERT_TRUE(ran) << c.text << ": " << ran.error().message;
  const HostTensor sums = SumsOf(engine, gemm, operands, whole);
  const std::vector<ir::EpilogueTensor> tensors = ir::EpilogueTensors(*problem);
  const int64_t joined = ir::IsGated(gemm.epilogue) ? 2 : 1, columns = gemm.n / joined;
  const auto sum = [&](int64_t row, int64_t index) {
    return static_cast<float>(sums.At(row, ir::ColumnOfB(gemm.epilogue, index, gemm.n)));
  };
  int wrong = 0;
  for (int64_t row = 0; row < gemm.batch * gemm.m; ++row) {
    for (int64_t column = 0; column < columns && wrong < 5; ++column) {
      Element element{.value = sum(row, joined * column), .operands = {}};
      if (joined > 1) element.up = sum(row, 2 * column + 1);
      std::vector<float> found = {static_cast<float>(d.At(row, column))};
      for (size_t i = 0; i < tensors.size(); ++i) {
        const HostTensor& operand = operands.epilogue[i];
        const bool matrix = operand.shape.Rows() > 1;
        const int64_t count = operand.shape.Inner();
        if (tensors[i].written) {
          found.push_back(operand.At(row, column));
        } else if (matrix) {
          element.operands.push_back(operand.At(row, column));
        } else if (count == gemm.m || count == columns) {
          element.operands.push_back(operand.At(0, count == columns ? column : row % gemm.m));
        } else {
          element.table = reinterpret_cast<const float*>(operand.bytes.data());
        }
      }
      const std::vector<float> expected = c.twin(element);
      ASSERT_EQ(expected.size(), found.size());
      for (size_t i = 0; i < found.size(); ++i) {
        // The second output of TwoOutputs is an f16.
        const float bound = (tensors.size() > 2 && i == 1 ? 1e-3f : 4e-6f) * std::max(1.0f, std::fabs(expected[i]));
        if (std::fabs(found[i] - expected[i]) <= bound) continue;
        ++wrong;
        ADD_FAILURE() << c.text << ", result " << i << " at " << row << ", " << column << " of " << element.value
                      << ": " << found[i] << ", the host has " << expected[i];
      }
    }
  }
}

TEST_F(UserFunction, ComputesWhatTheHostDoes) {
  for (const EngineOptions& options : Devices()) {
    const auto engine = Engine::Open(options);
    ASSERT_TRUE(engine) << engine.error().message;
    for (const Case& c : Cases()) ExpectTwin(*engine, c);
  }
}

struct Line {
  const char* problem;
  const char* schedule = "";
};

// Every type of D, every kind of schedule and problem, and steps around functions.
constexpr Line kLines[] = {
    {"gemm m=200 n=136 k=96 d=bf16 epilogue=bias_n+:Tanh+relu"},
    {"gemm m=200 n=136 k=96 d=f16 epilogue=:Swish:0.5+:TwoOutputs"},
    {"gemm m=9 n=200 k=128 d=bf16 epilogue=:TwoOutputs+:Root:20", "rows=n"},
    {"gemm m=72 n=136 k=512 d=f32 epilogue=:Swish:1", "split_k=2"},
    {"gemm m=64 n=64 k=128 a=e4m3 b=e5m2 d=e4m3 epilogue=:Swish:1"},
    {"gemm m=77 n=51 k=65 d=bf16 ldd=53 epilogue=:Lookup+:TwoOutputs"},
    {"gemm m=128 n=96 k=64 batch=2 d=bf16 beta=1 bias=n epilogue=:Sine"},
    {"gemm m=200 n=144 k=96 d=bf16 epilogue=bias_n+:ClampedSwiglu:1.7:7"},
    {"gemm m=200 n=144 k=96 d=f16 batch=2 epilogue=:Swish:1+:SquaredGate:halves+:Swish:2"},
    {"gemm m=9 n=272 k=128 d=bf16 epilogue=:Polynomial+:SquaredGate:halves+residual+amax_n", "rows=n"},
    {"gemm m=70 n=264 k=200 d=f32 epilogue=:SquaredGate+:Root:20", "rows=n"},
    {"gemm m=72 n=136 k=512 d=f32 epilogue=:Swish:1+geglu:halves+:TwoOutputs", "split_k=2"},
    {"gemm m=64 n=192 k=128 a=e4m3 b=e5m2 d=e4m3 epilogue=:ClampedSwiglu:1.7:7:halves"},
    {"conv n=1 h=9 w=7 c=16 k=96 r=3 s=3 pad=1 groups=2 epilogue=bias_k+:SquaredGate:halves+:Swish:1"},
    {"conv n=1 h=12 w=12 c=32 k=48 r=3 s=3 pad=1 epilogue=bias_k+:Swish:1.5"},
    {"conv n=2 h=9 w=7 c=16 k=32 r=3 s=3 pad=1 stride=2 y=f32 epilogue=:OwnTable"},
};

tools::RunSettings Settings(const Line& line) {
  tools::RunSettings settings;
  settings.check = true;
  settings.repeat = 1;
  if (*line.schedule != '\0') settings.constraint = *ParseSchedule(line.schedule);
  return settings;
}

TEST_F(UserFunction, VerifiesInEveryOrder) {
  for (const EngineOptions& options : Devices()) {
    const auto engine = Engine::Open(options);
    ASSERT_TRUE(engine) << engine.error().message;
    for (const Line& line : kLines) {
      const auto problem = engine->ReadProblem(WithFile(line.problem));
      ASSERT_TRUE(problem) << problem.error().message;
      tools::RunSettings settings = Settings(line);
      if (TestDevice() == nullptr) settings.async_orders = {"eager", "late", "random:3"};
      const auto outcome = tools::RunProblem(*engine, *problem, settings);
      ASSERT_TRUE(outcome) << engine->target() << " " << line.problem << ": " << outcome.error().message;
      EXPECT_TRUE(outcome->verified.value_or(false))
          << engine->target() << " " << line.problem << ": " << base::Join(outcome->failures, "; ");
    }
  }
}

// Functions without arrays in local memory leave a kernel as clean as it was.
TEST_F(UserFunction, NeitherSpillsNorTakesAStack) {
  const auto assembler = device::PtxAssembler::Find({});
  if (!assembler) GTEST_SKIP() << "no ptxas on this machine: " << assembler.error().message;
  for (const EngineOptions& options : Devices()) {
    const auto engine = Engine::Open(options);
    ASSERT_TRUE(engine) << engine.error().message;
    const target::Target& target = engine->parts().target;
    for (const Line& line : kLines) {
      if (std::string(line.problem).find("Sine") != std::string::npos) continue;
      const auto problem = engine->ReadProblem(WithFile(line.problem));
      const auto constraint = *line.schedule == '\0' ? ScheduleConstraint{} : *ParseSchedule(line.schedule);
      const auto schedule = autotune::ChooseSchedule(*problem, constraint, target, target.default_sm_count);
      ASSERT_TRUE(schedule) << line.problem << ": " << schedule.error().message;
      const auto program = compiler::BuildProgram(*problem, *schedule, target);
      ASSERT_TRUE(program) << line.problem << ": " << program.error().message;
      EXPECT_EQ(*ir::ParseProgram(ir::PrintProgram(*program)), *program) << line.problem;
      const auto texts = engine->parts().functions.TextsOf(*program);
      const auto module = compiler::EmitPtx(*program, target, {.functions = *texts});
      ASSERT_TRUE(module) << line.problem << ": " << module.error().message;
      const auto assembled = assembler->Assemble(module->ptx, target.name);
      ASSERT_TRUE(assembled) << line.problem << ": " << assembled.error().message;
      EXPECT_EQ(assembled->spill_store_bytes + assembled->spill_load_bytes + assembled->stack_bytes, 0)
          << target.name << " " << line.problem;
      EXPECT_TRUE(assembled->advisories.empty()) << target.name << " " << line.problem << "\n" << assembled->log;
    }
  }
}

std::string TemporaryStore() {
  const std::filesystem::path directory = std::filesystem::path(testing::TempDir()) / "laneshift-user-function";
  std::filesystem::remove_all(directory);
  return directory;
}

// Another engine finds what one engine compiled, by the file or only by the digest, and needs no NVRTC for it.
TEST_F(UserFunction, IsCompiledOnceForAllProcesses) {
  EngineOptions options = Devices().front();
  options.store_directory = TemporaryStore();
  const std::string text = WithFile("gemm m=64 n=64 k=64 epilogue=:Swish:1.5");
  std::string canonical;
  {
    const auto engine = Engine::Open(options);
    ASSERT_TRUE(engine) << engine.error().message;
    const auto problem = engine->ReadProblem(text);
    ASSERT_TRUE(problem) << problem.error().message;
    ASSERT_TRUE(engine->MakePlan(*problem));
    EXPECT_EQ(engine->parts().functions.compilations(), 1);
    canonical = PrintProblem(*problem);
    EXPECT_EQ(canonical.find(kFile), std::string::npos) << canonical;
    EXPECT_EQ(*ParseProblem(canonical), *problem);
  }
  options.nvrtc = "nowhere/libnvrtc.so";
  const auto engine = Engine::Open(options);
  for (const std::string& given : {text, canonical}) {
    const auto problem = engine->ReadProblem(given);
    ASSERT_TRUE(problem) << problem.error().message;
    const auto plan = engine->MakePlan(*problem);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_NE(plan->report().cache, CacheState::kCompiled);
  }
  EXPECT_EQ(engine->parts().functions.compilations(), 0);
  // Another schedule makes another kernel, of the same text.
  EXPECT_TRUE(engine->MakePlan(*engine->ReadProblem(canonical), *ParseSchedule("tile=128x32")));
  options.store_directory = ":memory:";
  const auto stranger = Engine::Open(options);
  const auto unknown = stranger->MakePlan(*ParseProblem(canonical));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
  EXPECT_NE(unknown.error().message.find("name its source again"), std::string::npos) << unknown.error().message;
  // Built-in steps need no NVRTC.
  EXPECT_TRUE(stranger->MakePlan(*ParseProblem("gemm m=64 n=64 k=64 epilogue=bias_n+relu")));
  const auto refused = stranger->ReadProblem(text);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
}

TEST_F(UserFunction, ComesAsTextToo) {
  const auto engine = Engine::Open(Devices().front());
  const auto step = engine->MakeStep({.text = "float Twice(float v, float by) { return v * by; }",
                                      .file = "twice.cu",
                                      .function = "Twice",
                                      .numbers = {2}});
  ASSERT_TRUE(step) << step.error().message;
  GemmProblem problem{.m = 64, .n = 64, .k = 64};
  problem.epilogue.push_back(*step);
  const auto outcome = tools::RunProblem(*engine, *CompleteProblem(problem), Settings({""}));
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(outcome->verified.value_or(false)) << base::Join(outcome->failures, "; ");
  EXPECT_FALSE(ParseProblem(WithFile("gemm m=64 n=64 k=64 epilogue=:Tanh")));
}

// A function that is called twice is in the program once; two of one name are under two names.
TEST_F(UserFunction, IsToldFromItsNamesakes) {
  const auto engine = Engine::Open(Devices().front());
  const auto twice = engine->MakeStep({.text = "float F(float v) { return 2 * v; }", .function = "F"});
  const auto less = engine->MakeStep({.text = "float F(float v) { return v - 1; }", .function = "F"});
  ASSERT_TRUE(twice && less);
  const Problem problem = *CompleteProblem(GemmProblem{.m = 64, .n = 64, .k = 64, .epilogue = {*twice, *less, *twice}});
  const target::Target& target = engine->parts().target;
  const auto program =
      compiler::BuildProgram(problem, *autotune::ChooseSchedule(problem, {}, target, target.default_sm_count), target);
  ASSERT_TRUE(program) << program.error().message;
  ASSERT_EQ(program->functions.size(), 2u);
  EXPECT_EQ(program->functions[0].name, "F");
  EXPECT_EQ(program->functions[1].name, "F_1");
  EXPECT_EQ(*ir::ParseProgram(ir::PrintProgram(*program)), *program);
  const auto outcome = tools::RunProblem(*engine, problem, Settings({""}));
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(outcome->verified.value_or(false)) << base::Join(outcome->failures, "; ");
}

TEST_F(UserFunction, ComesFromC) {
  const EngineOptions options = Devices().front();
  laneshift_engine* engine = nullptr;
  char error[2000];
  ASSERT_EQ(
      laneshift_engine_open(options.device.c_str(), options.target.c_str(), ":memory:", &engine, error, sizeof error),
      LANESHIFT_OK)
      << error;
  const char* source = "float Twice(float v, float by) { return v * by; }";
  const double by = 2;
  char step[200], small[8];
  EXPECT_EQ(laneshift_step_make(engine, source, nullptr, "Twice", &by, 1, small, sizeof small, error, sizeof error),
            LANESHIFT_INVALID_ARGUMENT);
  EXPECT_EQ(laneshift_step_make(engine, source, nullptr, "Thrice", &by, 1, step, sizeof step, error, sizeof error),
            LANESHIFT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error).find("function.cu has no __device__ function Thrice"), std::string::npos) << error;
  ASSERT_EQ(laneshift_step_make(engine, source, nullptr, "Twice", &by, 1, step, sizeof step, error, sizeof error),
            LANESHIFT_OK)
      << error;
  laneshift_plan* plan = nullptr;
  for (const std::string& epilogue : {std::string(step), Cat("relu+", kFile, ":Tanh")}) {
    const std::string problem = Cat("gemm m=64 n=64 k=64 epilogue=", epilogue);
    ASSERT_EQ(laneshift_plan_make(engine, problem.c_str(), nullptr, &plan, error, sizeof error), LANESHIFT_OK) << error;
    laneshift_plan_free(plan);
  }
  laneshift_engine_close(engine);
}

// The emulator says which function loops forever or accesses memory outside its operands.
TEST_F(UserFunction, FaultsNameTheFunction) {
  if (TestDevice() != nullptr) GTEST_SKIP() << "a GPU would hang";
  const std::pair<const char*, std::vector<const char*>> faults[] = {
      {"gemm m=32 n=32 k=64 epilogue=:Endless", {"livelock", "user0_Endless"}},
      {"gemm m=32 n=32 k=64 epilogue=:OutOfBounds", {"illegal address", "user0_OutOfBounds"}},
  };
  for (const EngineOptions& options : Devices()) {
    for (const auto& [text, parts] : faults) {
      const auto engine = Engine::Open(options);  // a fault takes the context with it
      const auto problem = engine->ReadProblem(WithFile(text));
      ASSERT_TRUE(problem) << problem.error().message;
      const auto outcome = tools::RunProblem(*engine, *problem, Settings({text}));
      ASSERT_FALSE(outcome);
      for (const char* part : parts) {
        EXPECT_NE(outcome.error().message.find(part), std::string::npos) << outcome.error().message;
      }
    }
  }
}

TEST_F(UserFunction, ArgumentsAreCheckedByName) {
  const auto engine = Engine::Open(Devices().front());
  const auto problem = engine->ReadProblem(WithFile("gemm m=64 n=64 k=64 epilogue=:Swish:1"));
  ASSERT_TRUE(problem) << problem.error().message;
  const auto plan = engine->MakePlan(*problem);
  ASSERT_TRUE(plan) << plan.error().message;
  auto* some = reinterpret_cast<void*>(4096);
  const Status ran = plan->Execute(nullptr, GemmArguments{.a = some, .b = some, .d = some});
  ASSERT_FALSE(ran);
  EXPECT_NE(ran.error().message.find("epilogue[0] (Swish) is null"), std::string::npos) << ran.error().message;
  const auto conv = engine->ReadProblem(WithFile("conv h=8 w=8 c=16 k=16 r=3 s=3 pad=1 epilogue=:TwoOutputs"));
  ASSERT_FALSE(conv);
  EXPECT_NE(conv.error().message.find("no vectors along rows"), std::string::npos) << conv.error().message;
}

}  // namespace
}  // namespace laneshift
