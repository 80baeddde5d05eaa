// The engine on the emulator: where kernels come from, many threads, graphs, and what is refused.
#include "laneshift/engine.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "compiler/compile.h"
#include "device/buffer.h"
#include "device/stream.h"
#include "laneshift/c.h"
#include "laneshift/host_run.h"
#include "runtime/engine_parts.h"
#include "store/temporary_directory.h"

namespace laneshift {
namespace {

EngineOptions OnEmulator(const std::string& store = ":memory:") {
  return {.device = "emulator", .target = "sm_90a", .store_directory = store};
}

Problem ParseOrFail(const std::string& text) {
  auto problem = ParseProblem(text);
  EXPECT_TRUE(problem.has_value()) << (problem ? "" : problem.error().message);
  return *problem;
}

Engine OpenOrDie(const EngineOptions& options) {
  auto engine = Engine::Open(options);
  if (!engine) ADD_FAILURE() << engine.error().message;
  return std::move(*engine);
}

// Device memory for m=n=k=32 with A = B = 1, so that every element of D is 32.
class Ones {
 public:
  static constexpr int kSize = 32;
  static constexpr const char* kProblem = "gemm m=32 n=32 k=32 a=bf16 d=f32";

  explicit Ones(const Engine& engine)
      : stream_(*device::Stream::Create(engine.parts().device.context())),
        a_(Allocate(engine, kSize * kSize * 2)),
        b_(Allocate(engine, kSize * kSize * 2)),
        d_(Allocate(engine, kSize * kSize * 4)) {
    const std::vector<uint16_t> ones(kSize * kSize, 0x3f80);
    EXPECT_TRUE(a_.CopyFromHost(stream_, ones.data(), a_.size()).has_value());
    EXPECT_TRUE(b_.CopyFromHost(stream_, ones.data(), b_.size()).has_value());
    Clear();
  }
  void Clear() {
    EXPECT_TRUE(d_.FillBytes(stream_, 0xff).has_value());
    EXPECT_TRUE(stream_.Synchronize().has_value());
  }
  const device::Stream& stream() const { return stream_; }
  GemmArguments arguments() const {
    return {.a = Pointer(a_), .b = Pointer(b_), .c = nullptr, .d = Pointer(d_), .bias = nullptr};
  }
  // How many elements of D have this value.
  int Right(float value = 32) const {
    std::vector<float> d(kSize * kSize);
    EXPECT_TRUE(d_.CopyToHost(stream_, d.data(), d_.size()).has_value());
    const Status finished = stream_.Synchronize();
    EXPECT_TRUE(finished.has_value()) << (finished ? "" : finished.error().message);
    return static_cast<int>(std::count(d.begin(), d.end(), value));
  }

 private:
  static device::DeviceBuffer Allocate(const Engine& engine, size_t bytes) {
    return *device::DeviceBuffer::Allocate(engine.parts().device.context(), bytes);
  }
  static void* Pointer(const device::DeviceBuffer& buffer) { return reinterpret_cast<void*>(buffer.pointer()); }

  device::Stream stream_;
  device::DeviceBuffer a_, b_, d_;
};

TEST(Engine, ComputesAndRemembers) {
  const Engine engine = OpenOrDie(OnEmulator());
  Ones ones(engine);
  const auto plan = engine.MakePlan(ParseOrFail(Ones::kProblem));
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_EQ(plan->report().cache, CacheState::kCompiled);
  EXPECT_GT(plan->report().ptx_ms, 0);
  ASSERT_TRUE(plan->Execute(ones.stream().handle(), ones.arguments()).has_value());
  EXPECT_EQ(ones.Right(), 32 * 32);

  // The same problem, and another one of the same class, need no compiler.
  EXPECT_EQ(engine.MakePlan(ParseOrFail(Ones::kProblem))->report().cache, CacheState::kMemory);
  ScheduleConstraint fixed = *ParseSchedule(plan->report().schedule);
  EXPECT_EQ(engine.MakePlan(ParseOrFail("gemm m=64 n=96 k=160 a=bf16 d=f32"), fixed)->report().cache,
            CacheState::kMemory);
}

TEST(Engine, BothTargetsOneAfterTheOther) {
  for (const char* target : {"sm_90a", "sm_100a"}) {
    const Engine engine = OpenOrDie({.device = "emulator", .target = target, .store_directory = ":memory:"});
    EXPECT_EQ(engine.target(), target);
    Ones ones(engine);
    ASSERT_TRUE(engine.Run(ParseOrFail(Ones::kProblem), ones.stream().handle(), ones.arguments()).has_value());
    EXPECT_EQ(ones.Right(), 32 * 32) << target;
  }
}

// Four K blocks in as many split-K slices: the counters are zero before and after, so that the workspace can be used
// again.
TEST(Engine, CtasThatShareTilesNeedAWorkspace) {
  const Engine engine = OpenOrDie(OnEmulator());
  Ones ones(engine);
  const auto plan =
      engine.MakePlan(ParseOrFail("gemm m=2 n=2 k=256 a=bf16 d=f32"), *ParseSchedule("tile=64x32x64 split_k=4"));
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_EQ(plan->report().grid, 4u);
  ASSERT_GE(plan->workspace_bytes(), 4u * 64 * 32 * 4);
  const Status without = plan->Execute(ones.stream().handle(), ones.arguments());
  ASSERT_FALSE(without.has_value());
  EXPECT_EQ(without.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(without.error().message.find("needs a workspace of"), std::string::npos) << without.error().message;
  const auto workspace = device::DeviceBuffer::Allocate(engine.parts().device.context(), plan->workspace_bytes());
  ASSERT_TRUE(workspace.has_value());
  ASSERT_TRUE(workspace->FillBytes(ones.stream(), 0).has_value());
  for (int i = 0; i < 2; ++i) {
    ones.Clear();
    ASSERT_TRUE(plan->Execute(ones.stream().handle(), ones.arguments(), reinterpret_cast<void*>(workspace->pointer()))
                    .has_value());
    EXPECT_EQ(ones.Right(256), 4) << "execution " << i;
  }
}

TEST(Engine, TheEmulatorIsOnePerProcess) {
  const Engine engine = OpenOrDie(OnEmulator());
  EXPECT_TRUE(Engine::Open(OnEmulator()).has_value());
  const auto other = Engine::Open({.device = "emulator", .target = "sm_100a", .store_directory = ":memory:"});
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(other.error().message.find("in use as sm_90a"), std::string::npos) << other.error().message;
}

TEST(Engine, ASecondEngineTakesTheKernelFromTheStore) {
  const store::TemporaryDirectory directory;
  {
    const Engine first = OpenOrDie(OnEmulator(directory.path()));
    EXPECT_EQ(first.MakePlan(ParseOrFail(Ones::kProblem))->report().cache, CacheState::kCompiled);
    EXPECT_TRUE(first.warnings().empty());
  }
  const Engine second = OpenOrDie(OnEmulator(directory.path()));
  const auto plan = second.MakePlan(ParseOrFail(Ones::kProblem));
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_EQ(plan->report().cache, CacheState::kStore);
  EXPECT_EQ(plan->report().ptx_ms, 0);
  Ones ones(second);
  ASSERT_TRUE(plan->Execute(ones.stream().handle(), ones.arguments()).has_value());
  EXPECT_EQ(ones.Right(), 32 * 32);
}

TEST(Engine, AStoredKernelThatDoesNotLoadIsCompiledAgain) {
  const store::TemporaryDirectory directory;
  const Problem problem = ParseOrFail(Ones::kProblem);
  std::string schedule;
  {
    const Engine engine = OpenOrDie(OnEmulator(directory.path()));
    schedule = engine.MakePlan(problem)->report().schedule;
  }
  {
    // A sound record with senseless code, as a defect of an older version might leave it.
    const auto target = target::FindTarget("sm_90a");
    const auto program = compiler::BuildProgram(problem, ParseSchedule(schedule)->value, **target);
    const std::string key = compiler::KernelKey(*program);
    store::Store store = store::Store::Open({.directory = directory.path()});
    auto record = store.GetKernel(key);
    ASSERT_TRUE(record && record->has_value());
    (*record)->ptx = ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry nonsense() { no.such; }";
    ASSERT_TRUE(store.PutKernel(**record).has_value());
  }
  const Engine engine = OpenOrDie(OnEmulator(directory.path()));
  const auto plan = engine.MakePlan(problem);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_EQ(plan->report().cache, CacheState::kCompiled);
}

TEST(Engine, AStoreThatCannotBeIsAWarning) {
  const Engine engine = OpenOrDie(OnEmulator("/proc/laneshift-cannot-be-made"));
  EXPECT_EQ(engine.warnings().size(), 1u);
  EXPECT_TRUE(engine.MakePlan(ParseOrFail(Ones::kProblem)).has_value());
}

TEST(Engine, ThreadsThatAskForOneKernelCompileItOnce) {
  const Engine engine = OpenOrDie(OnEmulator());
  std::atomic<int> compiled = 0, right = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        const auto plan = engine.MakePlan(ParseOrFail(Ones::kProblem));
        ASSERT_TRUE(plan.has_value()) << plan.error().message;
        compiled += plan->report().cache == CacheState::kCompiled;
        Ones ones(engine);
        ASSERT_TRUE(plan->Execute(ones.stream().handle(), ones.arguments()).has_value());
        right += ones.Right() == 32 * 32;
      });
    }
  }
  EXPECT_EQ(compiled, 1);
  EXPECT_EQ(right, 8);
}

TEST(Engine, ThreadsMayAskForDifferentKernels) {
  const Engine engine = OpenOrDie(OnEmulator());
  const char* const problems[] = {"gemm m=32 n=32 k=32 a=bf16 d=f32", "gemm m=32 n=32 k=32 a=f16 d=f32",
                                  "gemm m=32 n=32 k=32 a=bf16 d=bf16", "gemm m=31 n=33 k=35 a=f16"};
  std::atomic<int> compiled = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] {
        const auto plan = engine.MakePlan(ParseOrFail(problems[i % 4]));
        ASSERT_TRUE(plan.has_value()) << plan.error().message;
        compiled += plan->report().cache == CacheState::kCompiled;
      });
    }
  }
  EXPECT_EQ(compiled, 4);
}

TEST(Engine, APlanOutlivesItsEngine) {
  std::optional<Engine> engine = OpenOrDie(OnEmulator());
  auto plan = engine->MakePlan(ParseOrFail(Ones::kProblem));
  ASSERT_TRUE(plan.has_value());
  Ones ones(*engine);
  engine.reset();
  ASSERT_TRUE(plan->Execute(ones.stream().handle(), ones.arguments()).has_value());
  EXPECT_EQ(ones.Right(), 32 * 32);
}

TEST(Plan, IsCapturedIntoAGraph) {
  const Engine engine = OpenOrDie(OnEmulator());
  const device::DriverApi& api = engine.parts().api;
  Ones ones(engine);
  const auto plan = engine.MakePlan(ParseOrFail(Ones::kProblem));
  const auto active = engine.parts().device.Activate();
  ASSERT_EQ(api.StreamBeginCapture(ones.stream().handle(), device::kCuCaptureGlobal), device::kCuSuccess);
  const Status enqueued = plan->Execute(ones.stream().handle(), ones.arguments());
  EXPECT_TRUE(enqueued.has_value()) << (enqueued ? "" : enqueued.error().message);
  device::CuGraph graph = nullptr;
  ASSERT_EQ(api.StreamEndCapture(ones.stream().handle(), &graph), device::kCuSuccess);
  EXPECT_EQ(ones.Right(), 0);  // nothing ran yet
  device::CuGraphExec exec = nullptr;
  ASSERT_EQ(api.GraphInstantiate(&exec, graph, 0), device::kCuSuccess);
  for (int replay = 0; replay < 2; ++replay) {
    ones.Clear();
    ASSERT_EQ(api.GraphLaunch(exec, ones.stream().handle()), device::kCuSuccess);
    EXPECT_EQ(ones.Right(), 32 * 32);
  }
  api.GraphExecDestroy(exec);
  api.GraphDestroy(graph);
}

TEST(Plan, RefusesBadPointersByName) {
  const Engine engine = OpenOrDie(OnEmulator());
  Ones ones(engine);
  const auto plan = engine.MakePlan(ParseOrFail(Ones::kProblem));
  const auto refused = [&](GemmArguments arguments, const std::string& message) {
    const Status status = plan->Execute(ones.stream().handle(), arguments);
    ASSERT_FALSE(status.has_value()) << message;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(status.error().message.find(message), std::string::npos) << status.error().message;
  };
  GemmArguments arguments = ones.arguments();
  arguments.b = nullptr;
  refused(arguments, "pointer b is null");
  arguments = ones.arguments();
  arguments.a = static_cast<const char*>(arguments.a) + 2;
  refused(arguments, "aligned to 2 bytes, the plan needs 16; align it, or make the plan with align_a=2");
  const auto with_bias = engine.MakePlan(ParseOrFail("gemm m=32 n=32 k=32 a=bf16 d=f32 bias=n beta=1"));
  const Status status = with_bias->Execute(ones.stream().handle(), ones.arguments());
  ASSERT_FALSE(status.has_value());
  EXPECT_NE(status.error().message.find("pointer c is null"), std::string::npos) << status.error().message;
}

TEST(Engine, RunTakesTheAlignmentFromThePointers) {
  const Engine engine = OpenOrDie(OnEmulator());
  Ones ones(engine);
  // One column less, and A from its second column on: the pointer is aligned to only 2 bytes.
  GemmArguments arguments = ones.arguments();
  arguments.a = static_cast<const char*>(arguments.a) + 2;
  const Status status =
      engine.Run(ParseOrFail("gemm m=31 n=32 k=31 a=bf16 d=f32 lda=32 ldb=32"), ones.stream().handle(), arguments);
  ASSERT_TRUE(status.has_value()) << status.error().message;
  EXPECT_EQ(ones.Right(31), 31 * 32);  // sums of 31 ones, in 31 rows of 32
}

struct BadOptions {
  EngineOptions options;
  ErrorCode code;
  const char* message;
};

TEST(Engine, RefusesBadOptionsByName) {
  const BadOptions cases[] = {
      {{.device = "gpu"}, ErrorCode::kInvalidArgument, "'gpu' is not a device; use auto, cuda, cuda:N"},
      {{.device = "cuda:-1"}, ErrorCode::kInvalidArgument, "'cuda:-1' is not a device"},
      {{.device = "emulator", .target = "sm_80", .store_directory = ":memory:"},
       ErrorCode::kInvalidArgument,
       "sm_100a"},
      {{.device = "cuda:99"}, ErrorCode::kNotFound, "emulator"},
      {{.device = "emulator", .store_directory = ":memory:", .emulator_threads = 1025},
       ErrorCode::kInvalidArgument,
       "emulator_threads=1025 is out of range; use 0 to 1024"},
      {{.device = "emulator", .store_directory = ":memory:", .emulator_multiprocessors = -1},
       ErrorCode::kInvalidArgument,
       "emulator_multiprocessors=-1 is out of range; use 0 to 1024"},
  };
  for (const BadOptions& bad : cases) {
    const auto engine = Engine::Open(bad.options);
    ASSERT_FALSE(engine.has_value()) << bad.message;
    EXPECT_EQ(engine.error().code, bad.code) << engine.error().message;
    EXPECT_NE(engine.error().message.find(bad.message), std::string::npos) << engine.error().message;
  }
}

TEST(Engine, RefusesSchedulesThatDoNotFit) {
  const Engine engine = OpenOrDie(OnEmulator());
  const auto plan = engine.MakePlan(ParseOrFail("gemm m=512 n=512 k=512"), *ParseSchedule("tile=128x256x64 stages=12"));
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().code, ErrorCode::kResourceExhausted) << plan.error().message;
}

TEST(AsyncOrder, ParsesItsThreeForms) {
  EXPECT_EQ(ParseAsyncOrder("eager")->kind, AsyncOrder::kEager);
  EXPECT_EQ(ParseAsyncOrder("late")->kind, AsyncOrder::kLate);
  EXPECT_EQ(ParseAsyncOrder("random:42")->seed, 42u);
  for (const char* text : {"", "random", "random:", "random:-1", "soon"}) {
    EXPECT_FALSE(ParseAsyncOrder(text).has_value()) << text;
  }
}

TEST(Arithmetic, ParsesItsTwoForms) {
  EXPECT_EQ(*ParseArithmetic("hardware"), Arithmetic::kHardware);
  EXPECT_EQ(*ParseArithmetic("fast"), Arithmetic::kFast);
  for (const char* text : {"", "Fast", "exact"}) EXPECT_FALSE(ParseArithmetic(text).has_value()) << text;
}

// A sum whose small term the tensor core cuts and plain f32 keeps: 1 + 2^-26 - 1 in one instruction.
TEST(Arithmetic, FastSumsArePlainAndOnlyWhenAskedFor) {
  for (const char* target : {"sm_100a", "sm_90a"}) {
    for (const Arithmetic arithmetic : {Arithmetic::kHardware, Arithmetic::kFast}) {
      EngineOptions options = OnEmulator();
      options.target = target;
      options.arithmetic = arithmetic;
      const Engine engine = OpenOrDie(options);
      std::vector<uint16_t> a(16, 0), b(16, 0x3f80);
      a[0] = 0x3f80;           // 1
      a[1] = 0xbf80;           // -1
      a[2] = (127 - 26) << 7;  // 2^-26
      float d = -1;
      ASSERT_TRUE(RunFromHost(engine, ParseOrFail("gemm m=1 n=1 k=16 d=f32"), {.a = a.data(), .b = b.data(), .d = &d},
                              *ParseSchedule("reuse=none")));
      EXPECT_EQ(d, arithmetic == Arithmetic::kFast ? 0x1p-26f : 0.0f) << target;
    }
  }
}

TEST(Engine, KeepsKernelsWhereTheProgramDoes) {
  const store::TemporaryDirectory directory;
  const char* before = getenv("LANESHIFT_CACHE_DIR");
  const std::string saved = before == nullptr ? "" : before;
  setenv("LANESHIFT_CACHE_DIR", directory.path().c_str(), 1);
  for (const CacheState cache : {CacheState::kCompiled, CacheState::kStore}) {
    const Engine engine = OpenOrDie({.device = "emulator", .target = "sm_90a"});
    const auto plan = engine.MakePlan(ParseOrFail(Ones::kProblem));
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(plan->report().cache, cache);
  }
  before == nullptr ? unsetenv("LANESHIFT_CACHE_DIR") : setenv("LANESHIFT_CACHE_DIR", saved.c_str(), 1);
}

TEST(CApi, OpensPlansAndReports) {
  char error[128];
  laneshift_engine* engine = nullptr;
  EXPECT_EQ(laneshift_engine_open("nowhere", nullptr, nullptr, &engine, error, sizeof error),
            LANESHIFT_INVALID_ARGUMENT);
  EXPECT_EQ(engine, nullptr);
  EXPECT_NE(std::strstr(error, "'nowhere' is not a device"), nullptr) << error;
  ASSERT_EQ(laneshift_engine_open("emulator", "sm_90a", ":memory:", &engine, error, sizeof error), LANESHIFT_OK)
      << error;
  laneshift_plan* plan = nullptr;
  EXPECT_EQ(laneshift_plan_make(engine, "gemm m=0 n=1 k=1", nullptr, &plan, nullptr, 0), LANESHIFT_INVALID_ARGUMENT);
  ASSERT_EQ(laneshift_plan_make(engine, Ones::kProblem, "stages=2", &plan, error, sizeof error), LANESHIFT_OK) << error;
  EXPECT_NE(std::strstr(laneshift_plan_schedule(plan), "stages=2"), nullptr);
  EXPECT_STREQ(laneshift_plan_cache(plan), "compiled");
  EXPECT_EQ(laneshift_plan_execute(plan, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, error, 8),
            LANESHIFT_INVALID_ARGUMENT);
  EXPECT_STREQ(error, "pointer");  // cut to the caller's room
  void* const operands[9] = {};
  EXPECT_EQ(laneshift_plan_execute_fused(plan, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                         nullptr, operands, 9, nullptr, error, sizeof error),
            LANESHIFT_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(error, "there are at most 8"), nullptr) << error;
  laneshift_engine_close(engine);
  laneshift_plan_free(plan);
}

}  // namespace
}  // namespace laneshift
