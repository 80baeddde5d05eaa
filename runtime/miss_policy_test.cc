// What the engine does about problems that were never measured, and about streams that are being captured.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include "autotune/machine.h"
#include "autotune/ranking.h"
#include "base/log.h"
#include "base/thread_famine.h"
#include "compiler/compile.h"
#include "device/buffer.h"
#include "device/stream.h"
#include "laneshift/c.h"
#include "laneshift/host_run.h"
#include "runtime/engine_parts.h"
#include "runtime/open_device.h"
#include "runtime/schedule_choice.h"

namespace laneshift {
namespace {

constexpr const char* kProblem = "gemm m=32 n=32 k=32 a=bf16 d=f32";
constexpr const char* kWinner = "tile=64x16x64 stages=2 acc=1 math=1 raster=3";

Problem Parsed(const std::string& text) {
  auto problem = ParseProblem(text);
  EXPECT_TRUE(problem) << text;
  return *problem;
}

std::string WholeSchedule(const std::string& text) { return PrintSchedule(ParseSchedule(text)->value); }

// As the tuner leaves it.
void StoreChoice(const Engine& engine, const std::string& schedule,
                 store::ChoiceSource source = store::ChoiceSource::kMeasured, const std::string& driver = {},
                 const std::string& generator = {}) {
  const Engine::Parts& parts = engine.parts();
  const store::ChoiceRecord choice{.problem = PrintProblem(Parsed(kProblem)),
                                   .target = std::string(parts.target.name),
                                   .device = parts.device_key,
                                   .schedule = WholeSchedule(schedule),
                                   .source = source,
                                   .time_us = 1.0,
                                   .generator = generator.empty() ? compiler::Generator() : generator,
                                   .driver = driver.empty() ? parts.device.facts().Driver() : driver};
  EXPECT_TRUE(parts.store.PutChoice(choice));
}

Engine Open(MissPolicy policy) {
  auto engine =
      Engine::Open({.device = "emulator", .target = "sm_90a", .store_directory = ":memory:", .on_miss = policy});
  if (!engine) ADD_FAILURE() << engine.error().message;
  return std::move(*engine);
}

// Counts the calls and stores the winner.
void TuneWith(const Engine& engine, std::atomic<int>& calls, const std::string& winner = kWinner) {
  engine.parts().tune = [&engine, &calls, winner](const Problem&, const std::function<bool()>&) {
    ++calls;
    StoreChoice(engine, winner);
    return Ok();
  };
}

TEST(MissPolicy, HeuristicTakesTheModelsBestAndMeasuresNothing) {
  const Engine engine = Open(MissPolicy::kHeuristic);
  std::atomic<int> calls = 0;
  TuneWith(engine, calls);
  const auto plan = engine.MakePlan(Parsed(kProblem));
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->report().choice, ChoiceOrigin::kRule);
  EXPECT_EQ(calls, 0);
}

// As the model leaves it, on what the engine's device is known to be now.
store::ChoiceRecord ModelChoice(const Engine& engine, const char* schedule) {
  const Engine::Parts& parts = engine.parts();
  const autotune::Machine machine =
      autotune::MachineOf(parts.target, parts.device.facts().sm_count, parts.device_key, parts.store);
  return {.problem = PrintProblem(Parsed(kProblem)),
          .target = std::string(parts.target.name),
          .device = parts.device_key,
          .schedule = WholeSchedule(schedule),
          .source = store::ChoiceSource::kRule,
          .generator = compiler::Generator(),
          .driver = parts.device.facts().Driver(),
          .basis = autotune::ChoiceBasis(parts.target, machine)};
}
std::optional<store::ChoiceRecord> StoredChoice(const Engine& engine) {
  const Engine::Parts& parts = engine.parts();
  const auto choices =
      parts.store.GetChoices(PrintProblem(Parsed(kProblem)), std::string(parts.target.name), parts.device_key);
  return choices && !choices->empty() ? std::optional(choices->front()) : std::nullopt;
}

TEST(MissPolicy, TheModelsChoiceIsRememberedOnWhatItWentBy) {
  const Engine engine = Open(MissPolicy::kHeuristic);
  const auto plan = engine.MakePlan(Parsed(kProblem));
  ASSERT_TRUE(plan) << plan.error().message;
  const auto stored = StoredChoice(engine);
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->schedule, plan->report().schedule);
  EXPECT_EQ(stored->source, store::ChoiceSource::kRule);
  EXPECT_EQ(stored->basis, ModelChoice(engine, kWinner).basis);
}

TEST(MissPolicy, ARememberedChoiceIsTakenWithoutRankingAndIsStillTheModels) {
  const Engine engine = Open(MissPolicy::kHeuristic);
  ASSERT_TRUE(engine.parts().store.PutChoice(ModelChoice(engine, kWinner)));
  const auto plan = engine.MakePlan(Parsed(kProblem));
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->report().schedule, WholeSchedule(kWinner)) << "no ranking begins with it";
  EXPECT_EQ(plan->report().choice, ChoiceOrigin::kRule);
}

TEST(MissPolicy, ARememberedChoiceOfAnotherBasisIsMadeAnew) {
  const Engine engine = Open(MissPolicy::kHeuristic);
  const store::ChoiceRecord before = ModelChoice(engine, kWinner);
  ASSERT_TRUE(engine.parts().store.PutChoice(before));
  ASSERT_TRUE(engine.parts().store.PutFact(
      {.device = engine.parts().device_key, .name = autotune::StoredName("launch_us"), .answer = "4.2"}));
  const auto plan = engine.MakePlan(Parsed(kProblem));
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_NE(plan->report().schedule, WholeSchedule(kWinner));
  EXPECT_NE(StoredChoice(engine)->basis, before.basis);
}

TEST(MissPolicy, ARememberedChoiceThatNoLongerBuildsIsMadeAnew) {
  const Engine engine = Open(MissPolicy::kHeuristic);
  store::ChoiceRecord broken = ModelChoice(engine, kWinner);
  broken.schedule = WholeSchedule("tile=128x256x64 stages=16 acc=1 math=2");
  ASSERT_TRUE(engine.parts().store.PutChoice(broken));
  const auto plan = engine.MakePlan(Parsed(kProblem));
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(StoredChoice(engine)->schedule, plan->report().schedule);
}

TEST(MissPolicy, ARememberedChoiceIsStillAMiss) {
  const Engine tuning = Open(MissPolicy::kTune);
  ASSERT_TRUE(tuning.parts().store.PutChoice(ModelChoice(tuning, "tile=64x32x64 stages=2 acc=1 math=1")));
  std::atomic<int> calls = 0;
  TuneWith(tuning, calls);
  EXPECT_EQ(tuning.MakePlan(Parsed(kProblem))->report().choice, ChoiceOrigin::kMeasured);
  EXPECT_EQ(calls, 1);
  const Engine refusing = Open(MissPolicy::kError);
  ASSERT_TRUE(refusing.parts().store.PutChoice(ModelChoice(refusing, kWinner)));
  EXPECT_FALSE(refusing.MakePlan(Parsed(kProblem)));
}

TEST(MissPolicy, ErrorRefusesWithTheRemedyUntilSomethingWasMeasured) {
  const Engine engine = Open(MissPolicy::kError);
  const auto refused = engine.MakePlan(Parsed(kProblem));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kNotFound);
  EXPECT_NE(refused.error().message.find("run: laneshift tune \"gemm m=32"), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(engine.MakePlan(Parsed(kProblem), *ParseSchedule(kWinner))) << "a given schedule needs no measurement";
  StoreChoice(engine, kWinner);
  const auto plan = engine.MakePlan(Parsed(kProblem));
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->report().choice, ChoiceOrigin::kMeasured);
  EXPECT_EQ(plan->report().schedule, WholeSchedule(kWinner));
}

TEST(MissPolicy, TuneMeasuresOnceAndUsesTheWinner) {
  const Engine engine = Open(MissPolicy::kTune);
  std::atomic<int> calls = 0;
  TuneWith(engine, calls);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const auto plan = engine.MakePlan(Parsed(kProblem));
      ASSERT_TRUE(plan) << plan.error().message;
      EXPECT_EQ(plan->report().schedule, WholeSchedule(kWinner));
      EXPECT_EQ(plan->report().choice, ChoiceOrigin::kMeasured);
    });
  }
  threads.clear();
  EXPECT_EQ(calls, 1);
}

TEST(MissPolicy, WhatCannotBeMeasuredIsAnErrorOfTune) {
  const Engine engine = Open(MissPolicy::kTune);
  engine.parts().tune = [](const Problem&, const std::function<bool()>&) -> Status {
    return MakeError(ErrorCode::kDriver, "the device is gone");
  };
  const auto plan = engine.MakePlan(Parsed(kProblem));
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message.find("the device is gone"), std::string::npos);
}

TEST(MissPolicy, WithoutAProgramToMeasureWithTuneSaysSo) {
  auto engine = Engine::Open({.device = "emulator",
                              .target = "sm_90a",
                              .store_directory = ":memory:",
                              .on_miss = MissPolicy::kTune,
                              .tuner = "/nonexistent/laneshift"});
  ASSERT_TRUE(engine);
  const auto plan = engine->MakePlan(Parsed(kProblem));
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message.find("/nonexistent/laneshift"), std::string::npos) << plan.error().message;
}

TEST(MissPolicy, BackgroundRunsAtOnceAndSwitchesPlansThatAreHeld) {
  const Engine engine = Open(MissPolicy::kBackground);
  std::mutex mutex;
  std::condition_variable changed;
  bool go = false;
  engine.parts().tune = [&](const Problem&, const std::function<bool()>&) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return go; });
    StoreChoice(engine, kWinner);
    return Ok();
  };
  const auto plan = engine.MakePlan(Parsed(kProblem));
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->report().choice, ChoiceOrigin::kRule);
  const std::string first = plan->report().schedule;
  EXPECT_NE(first, WholeSchedule(kWinner));
  {
    const std::lock_guard lock(mutex);
    go = true;
  }
  changed.notify_all();
  engine.FinishTuning();
  EXPECT_EQ(plan->report().schedule, WholeSchedule(kWinner));
  EXPECT_EQ(plan->report().choice, ChoiceOrigin::kMeasured);
  EXPECT_EQ(engine.MakePlan(Parsed(kProblem))->report().schedule, WholeSchedule(kWinner));

  std::vector<uint16_t> ones(32 * 32, 0x3f80);
  std::vector<float> d(32 * 32);
  ASSERT_TRUE(RunFromHost(engine, Parsed(kProblem), {.a = ones.data(), .b = ones.data(), .d = d.data()}));
  EXPECT_EQ(std::count(d.begin(), d.end(), 32.0f), 32 * 32);
}

TEST(MissPolicy, AFailureInTheBackgroundLeavesThePlan) {
  base::SetLogLevel(base::LogLevel::kOff);
  const Engine engine = Open(MissPolicy::kBackground);
  engine.parts().tune = [](const Problem&, const std::function<bool()>&) -> Status {
    return MakeError(ErrorCode::kDriver, "the worker is gone");
  };
  const auto plan = engine.MakePlan(Parsed(kProblem));
  ASSERT_TRUE(plan);
  engine.FinishTuning();
  EXPECT_EQ(plan->report().choice, ChoiceOrigin::kRule);
  base::SetLogLevel(base::LogLevel::kWarn);
}

TEST(MissPolicy, WithoutAThreadForTheBackgroundThePlanStays) {
  const Engine engine = Open(MissPolicy::kBackground);
  std::atomic<int> calls = 0;
  TuneWith(engine, calls);
  const base::ThreadFamine famine;
  const auto plan = engine.MakePlan(Parsed(kProblem));
  ASSERT_TRUE(plan) << plan.error().message;
  engine.FinishTuning();
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(plan->report().choice, ChoiceOrigin::kRule);
}

TEST(MissPolicy, ClosingTheEngineStopsTheMeasurement) {
  std::atomic<bool> began = false, stopped = false;
  {
    const Engine engine = Open(MissPolicy::kBackground);
    engine.parts().tune = [&](const Problem&, const std::function<bool()>& stop) -> Status {
      began = true;
      while (!stop()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      stopped = true;
      return MakeError(ErrorCode::kTimeout, "stopped");
    };
    ASSERT_TRUE(engine.MakePlan(Parsed(kProblem)));
    while (!began) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(stopped);
}

TEST(MissPolicy, AnotherDriversChoiceIsServedAndMeasuredAgainInTheBackground) {
  for (const MissPolicy policy : {MissPolicy::kError, MissPolicy::kTune, MissPolicy::kBackground}) {
    const Engine engine = Open(policy);
    StoreChoice(engine, "tile=64x32x64 stages=3 acc=1 math=1", store::ChoiceSource::kMeasured, "11.8");
    std::atomic<int> calls = 0;
    TuneWith(engine, calls);
    const auto plan = engine.MakePlan(Parsed(kProblem));
    ASSERT_TRUE(plan) << plan.error().message;
    engine.FinishTuning();
    const bool again = policy == MissPolicy::kBackground;
    EXPECT_EQ(calls, again ? 1 : 0) << MissPolicyName(policy);
    EXPECT_EQ(plan->report().choice, again ? ChoiceOrigin::kMeasured : ChoiceOrigin::kStale);
  }
}

TEST(MissPolicy, AnotherGeneratorsChoiceIsAGuessAndNoMeasurement) {
  const Engine engine = Open(MissPolicy::kHeuristic);
  StoreChoice(engine, kWinner, store::ChoiceSource::kMeasured, {}, "1");
  const auto plan = engine.MakePlan(Parsed(kProblem));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->report().choice, ChoiceOrigin::kPrior);
  EXPECT_EQ(plan->report().schedule, WholeSchedule(kWinner));
  const Engine strict = Open(MissPolicy::kError);
  StoreChoice(strict, kWinner, store::ChoiceSource::kMeasured, {}, "1");
  EXPECT_EQ(strict.MakePlan(Parsed(kProblem)).error().code, ErrorCode::kNotFound);
}

// An engine that takes the emulator for a GPU.
Engine OpenAsGpu() {
  const EngineOptions options{.device = "emulator", .target = "sm_90a", .store_directory = ":memory:"};
  auto opened = runtime::OpenSelectedDevice(options);
  EXPECT_TRUE(opened);
  opened->emulator.reset();
  return Engine::Parts::OpenOn(options, std::move(*opened));
}

TEST(MissPolicy, WhatWasPredictedElsewhereServesAGpuUntilItIsMeasuredThere) {
  const Engine engine = OpenAsGpu();
  store::Store& store = engine.parts().store;
  store::ChoiceRecord predicted{.problem = PrintProblem(Parsed(kProblem)),
                                .target = "sm_90a",
                                .device = "laneshift emulator, elsewhere",
                                .schedule = WholeSchedule(kWinner),
                                .source = store::ChoiceSource::kPredicted,
                                .generator = compiler::Generator(),
                                .driver = "0.0"};
  ASSERT_TRUE(store.PutChoice(predicted));
  // Nor is that a choice of another target.
  predicted.problem = PrintProblem(Parsed("gemm m=64 n=32 k=32 a=bf16 d=f32"));
  predicted.target = "sm_100a";
  ASSERT_TRUE(store.PutChoice(predicted));
  EXPECT_EQ(engine.MakePlan(Parsed("gemm m=64 n=32 k=32 a=bf16 d=f32"))->report().choice, ChoiceOrigin::kRule);
  const auto chosen = runtime::ChooseFor(engine.parts(), Parsed(kProblem), {});
  ASSERT_TRUE(chosen) << chosen.error().message;
  EXPECT_EQ(chosen->origin, ChoiceOrigin::kPredicted);
  EXPECT_EQ(PrintSchedule(chosen->schedule), WholeSchedule(kWinner));
  EXPECT_FALSE(runtime::IsSettled(chosen->origin, /*emulated=*/false));
  StoreChoice(engine, "tile=64x32x64 stages=2 acc=1 math=1");
  EXPECT_EQ(runtime::ChooseFor(engine.parts(), Parsed(kProblem), {})->origin, ChoiceOrigin::kMeasured);
}

TEST(MissPolicy, AStoredChoiceThatDoesNotFitIsNotServed) {
  const Engine engine = Open(MissPolicy::kHeuristic);
  StoreChoice(engine, "tile=128x256x128 stages=16 acc=1 math=2");
  const auto plan = engine.MakePlan(Parsed(kProblem));
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->report().choice, ChoiceOrigin::kRule);
}

// A stream in capture, and the graph thrown away.
class Capture {
 public:
  explicit Capture(const Engine& engine)
      : api_(engine.parts().api), stream_(*device::Stream::Create(engine.parts().device.context())) {
    EXPECT_EQ(api_.StreamBeginCapture(stream_.handle(), device::kCuCaptureGlobal), device::kCuSuccess);
  }
  ~Capture() {
    device::CuGraph graph = nullptr;
    EXPECT_EQ(api_.StreamEndCapture(stream_.handle(), &graph), device::kCuSuccess) << "the capture was broken";
    if (graph != nullptr) api_.GraphDestroy(graph);
  }
  CUstream_st* stream() const { return stream_.handle(); }

 private:
  const device::DriverApi& api_;
  device::Stream stream_;
};

TEST(Capture, WhatIsNotPreparedIsRefusedAndWhatIsPreparedIsCaptured) {
  const Engine engine = Open(MissPolicy::kTune);
  std::atomic<int> calls = 0;
  TuneWith(engine, calls);
  const auto active = engine.parts().device.Activate();
  const auto memory = *device::DeviceBuffer::Allocate(engine.parts().device.context(), 3 * 4096);
  const auto at = [&](size_t offset) { return reinterpret_cast<void*>(memory.pointer() + offset); };
  const GemmArguments arguments{.a = at(0), .b = at(4096), .d = at(8192)};
  {
    const Capture capture(engine);
    const Status refused = engine.Run(Parsed(kProblem), capture.stream(), arguments);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(refused.error().message.find("call Prepare()"), std::string::npos) << refused.error().message;
    EXPECT_EQ(calls, 0) << "nothing is measured during a capture";
  }
  const Problem problems[] = {Parsed(kProblem), Parsed("gemm m=16 n=32 k=64 a=f16")};
  const Status prepared = engine.Prepare(problems);
  ASSERT_TRUE(prepared) << prepared.error().message;
  EXPECT_EQ(calls, 2);
  const Capture capture(engine);
  const Status captured = engine.Run(Parsed(kProblem), capture.stream(), arguments);
  EXPECT_TRUE(captured) << captured.error().message;
  EXPECT_TRUE(engine.MakePlan(problems[1]));
}

TEST(Prepare, NamesTheProblemThatFails) {
  const Engine engine = Open(MissPolicy::kError);
  const Problem problems[] = {Parsed(kProblem)};
  const Status failed = engine.Prepare(problems);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message.find("preparing gemm m=32"), 0u) << failed.error().message;
}

TEST(MissPolicy, ParsesItsNames) {
  for (const MissPolicy policy :
       {MissPolicy::kHeuristic, MissPolicy::kTune, MissPolicy::kBackground, MissPolicy::kError}) {
    EXPECT_EQ(*ParseMissPolicy(MissPolicyName(policy)), policy);
  }
  EXPECT_FALSE(ParseMissPolicy("sometimes"));
}

TEST(CApi, TakesPoliciesAndPrepares) {
  char error[256];
  laneshift_options options = {};
  options.struct_bytes = sizeof options;
  options.device = "emulator";
  options.target = "sm_90a";
  options.store_directory = ":memory:";
  options.on_miss = "sometimes";
  laneshift_engine* engine = nullptr;
  EXPECT_EQ(laneshift_engine_open_with(&options, &engine, error, sizeof error), LANESHIFT_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(error, "'sometimes' is not a miss policy"), nullptr) << error;
  options.on_miss = "error";
  ASSERT_EQ(laneshift_engine_open_with(&options, &engine, error, sizeof error), LANESHIFT_OK) << error;
  const char* const problems[] = {kProblem};
  EXPECT_EQ(laneshift_engine_prepare(engine, problems, 1, error, sizeof error), LANESHIFT_NOT_FOUND);
  EXPECT_NE(std::strstr(error, "laneshift tune"), nullptr) << error;
  laneshift_engine_close(engine);
  options.on_miss = nullptr;
  ASSERT_EQ(laneshift_engine_open_with(&options, &engine, error, sizeof error), LANESHIFT_OK) << error;
  ASSERT_EQ(laneshift_engine_prepare(engine, problems, 1, error, sizeof error), LANESHIFT_OK) << error;
  laneshift_plan* plan = nullptr;
  ASSERT_EQ(laneshift_plan_make(engine, kProblem, nullptr, &plan, error, sizeof error), LANESHIFT_OK) << error;
  EXPECT_STREQ(laneshift_plan_cache(plan), "memory");
  EXPECT_STREQ(laneshift_plan_choice(plan), "rule");
  laneshift_plan_free(plan);
  laneshift_engine_close(engine);
  options.struct_bytes = 3;
  EXPECT_EQ(laneshift_engine_open_with(&options, &engine, error, sizeof error), LANESHIFT_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace laneshift
