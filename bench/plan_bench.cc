// The cost that laneshift adds to a launch, and the time to find a plan: build/plan_bench [--benchmark_filter=REGEX].
//
// The driver is the emulator's table except for the launch itself and the query for the current context, which return
// at once, as a GPU's driver does for a launch that it only enqueues: the rest is laneshift's own time.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "autotune/ranking.h"
#include "base/text.h"
#include "compiler/compile.h"
#include "emulator/driver/driver.h"
#include "laneshift/engine.h"
#include "runtime/engine_parts.h"
#include "runtime/open_device.h"

namespace laneshift {
namespace {

device::CuContext the_context = nullptr;

// A table whose launches return at once.
Result<Engine> OpenOverNothing(const std::string& store_directory) {
  const EngineOptions options{.device = "emulator", .target = "sm_90a", .store_directory = store_directory};
  LS_ASSIGN(runtime::OpenedDevice opened, runtime::OpenSelectedDevice(options));
  the_context = opened.device.context().handle;
  auto api = std::make_unique<device::DriverApi>(*opened.api);
  api->CtxGetCurrent = [](device::CuContext* context) -> device::CuResult {
    benchmark::DoNotOptimize(context);
    *context = the_context;
    return device::kCuSuccess;
  };
  api->LaunchKernelEx = [](const device::CuLaunchConfig* config, device::CuFunction kernel, void** parameters,
                           void** extra) -> device::CuResult {
    benchmark::DoNotOptimize(config);
    benchmark::DoNotOptimize(kernel);
    benchmark::DoNotOptimize(parameters);
    benchmark::DoNotOptimize(extra);
    return device::kCuSuccess;
  };
  // For good, as the question is answered above.
  (void)api->CtxSetCurrent(the_context);
  const auto original = std::move(opened.api);  // as long as the first device
  {
    LS_ASSIGN(device::Device device, device::OpenDevice(*api, 0));
    opened.device = std::move(device);
  }
  opened.api = std::move(api);
  return Engine::Parts::OpenOn(options, std::move(opened));
}

// One engine with a tuned choice in its store, for all benchmarks.
class Bench {
 public:
  static Bench& Instance() {
    static Bench bench;
    return bench;
  }
  const Engine& engine() const { return *engine_; }
  const Problem& gemm() const { return gemm_; }
  const Problem& conv() const { return conv_; }
  // The store holds only the model's choice for it.
  const Problem& untuned() const { return untuned_; }
  // On the same store.
  Result<Engine> Open() const { return OpenOverNothing(directory_); }
  // Of distinct problems of the same class.
  Problem Other(int i) const {
    GemmProblem other = std::get<GemmProblem>(gemm_);
    other.m += 8 * (i + 1);
    return *CompleteProblem(Problem(other));
  }

 private:
  Bench() {
    std::string pattern = std::filesystem::temp_directory_path() / "laneshift-plan-bench-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) std::exit(1);
    directory_ = pattern;
    auto engine = OpenOverNothing(directory_);
    if (!engine) {
      std::fprintf(stderr, "plan_bench: %s\n", engine.error().message.c_str());
      std::exit(1);
    }
    engine_ = std::make_unique<Engine>(std::move(*engine));
    for (const Problem& problem : {gemm_, conv_}) {
      const Engine::Parts& parts = engine_->parts();
      const std::string schedule = engine_->MakePlan(problem)->report().schedule;
      (void)parts.store.PutChoice({.problem = PrintProblem(problem),
                                   .target = std::string(parts.target.name),
                                   .device = parts.device_key,
                                   .schedule = schedule,
                                   .source = store::ChoiceSource::kMeasured,
                                   .time_us = 100.0,
                                   .generator = compiler::Generator(),
                                   .driver = parts.device.facts().Driver()});
    }
    (void)engine_->MakePlan(untuned_);
    // A fresh engine, so that the plans are the stored ones.
    engine_.reset();
    engine_ = std::make_unique<Engine>(*OpenOverNothing(directory_));
  }
  ~Bench() {
    engine_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  const Problem gemm_ = *ParseProblem("gemm m=4096 n=4096 k=4096 a=bf16 b=bf16 d=bf16");
  const Problem conv_ = *ParseProblem("conv n=32 h=56 w=56 c=64 k=64 r=3 s=3 pad=1 x=bf16 y=bf16");
  const Problem untuned_ = *ParseProblem("gemm m=2048 n=4096 k=4096 a=bf16 b=bf16 d=bf16");
  std::string directory_;
  std::unique_ptr<Engine> engine_;
};

void* At(uintptr_t address) { return reinterpret_cast<void*>(address); }

GemmArguments GemmAt(uintptr_t set) {
  const uintptr_t base = 0x700000000000 + set * 0x10000000;
  return {.a = At(base), .b = At(base + 0x3000000), .d = At(base + 0x6000000)};
}

void RawLaunch(benchmark::State& state) {
  const Engine& engine = Bench::Instance().engine();
  const device::DriverApi& api = engine.parts().api;
  device::CuLaunchConfig config = {};
  for (auto _ : state) benchmark::DoNotOptimize(api.LaunchKernelEx(&config, nullptr, nullptr, nullptr));
}

void Require(benchmark::State& state, const Status& status) {
  if (!status) state.SkipWithError(status.error().message.c_str());
}

void ExecuteGemm(benchmark::State& state) {
  const Bench& bench = Bench::Instance();
  const auto plan = bench.engine().MakePlan(bench.gemm());
  if (!plan || plan->report().choice != ChoiceOrigin::kMeasured) return state.SkipWithError("no tuned plan");
  const auto sets = static_cast<uintptr_t>(state.range(0));
  uintptr_t set = 0;
  for (auto _ : state) {
    Require(state, plan->Execute(nullptr, GemmAt(set)));
    if (++set == sets) set = 0;
  }
}

void ExecuteConv(benchmark::State& state) {
  const Bench& bench = Bench::Instance();
  const auto plan = bench.engine().MakePlan(bench.conv());
  if (!plan || plan->report().choice != ChoiceOrigin::kMeasured) return state.SkipWithError("no tuned plan");
  const auto sets = static_cast<uintptr_t>(state.range(0));
  uintptr_t set = 0;
  for (auto _ : state) {
    const GemmArguments at = GemmAt(set);
    Require(state, plan->Execute(nullptr, {.x = at.a, .w = at.b, .y = at.d}));
    if (++set == sets) set = 0;
  }
}

void FindGemm(benchmark::State& state) {
  const Bench& bench = Bench::Instance();
  for (int i = 0; i < state.range(0); ++i) (void)bench.engine().MakePlan(bench.Other(i));
  for (auto _ : state) benchmark::DoNotOptimize(bench.engine().MakePlan(bench.gemm()));
}

void FindConv(benchmark::State& state) {
  const Bench& bench = Bench::Instance();
  for (auto _ : state) benchmark::DoNotOptimize(bench.engine().MakePlan(bench.conv()));
}

void RunGemm(benchmark::State& state) {
  const Bench& bench = Bench::Instance();
  for (auto _ : state) Require(state, bench.engine().Run(bench.gemm(), nullptr, GemmAt(0)));
}

// The cost per problem and process: reading the choice from the file.
void ReadChoices(benchmark::State& state) {
  const Bench& bench = Bench::Instance();
  const Engine::Parts& parts = bench.engine().parts();
  const std::string problem = PrintProblem(bench.gemm()), target(parts.target.name);
  for (auto _ : state) benchmark::DoNotOptimize(parts.store.GetChoices(problem, target, parts.device_key));
}

// The first plan of a process whose store holds choice and kernel: a new engine each time.
void PlanFromStore(benchmark::State& state) {
  const Bench& bench = Bench::Instance();
  for (auto _ : state) {
    state.PauseTiming();
    auto engine = std::make_unique<Engine>(*bench.Open());
    state.ResumeTiming();
    const auto plan = engine->MakePlan(state.range(0) == 0 ? bench.untuned() : bench.gemm());
    if (!plan || plan->report().cache != CacheState::kStore) state.SkipWithError("the kernel is not in the store");
    state.PauseTiming();
    engine.reset();
    state.ResumeTiming();
  }
}

constexpr const char* kRanked[] = {"gemm m=4096 n=4096 k=4096", "gemm m=1 n=8192 k=28672",
                                   "conv n=32 h=56 w=56 c=64 k=64 r=3 s=3 pad=1"};

const target::Target& TargetOf(const benchmark::State& state) {
  return target::NamedTarget(state.range(1) == 0 ? "sm_90a" : "sm_100a");
}

// The model's best: the cost of a new problem's plan before it compiles.
void ChooseByModel(benchmark::State& state) {
  const Problem problem = *ParseProblem(kRanked[state.range(0)]);
  const target::Target& target = TargetOf(state);
  const autotune::Machine machine = autotune::PublishedMachine(target);
  for (auto _ : state) benchmark::DoNotOptimize(autotune::ChooseSchedule(problem, {}, target, machine));
  state.SetLabel(base::Cat(target.name, " ", kRanked[state.range(0)]));
}

// Every candidate predicted, as `laneshift explain` and the tuner do.
void RankByModel(benchmark::State& state) {
  const Problem problem = *ParseProblem(kRanked[state.range(0)]);
  const target::Target& target = TargetOf(state);
  const autotune::Machine machine = autotune::PublishedMachine(target);
  size_t candidates = 0;
  for (auto _ : state) candidates = autotune::RankSchedules(problem, {}, target, machine).schedules.size();
  state.counters["candidates"] = static_cast<double>(candidates);
  state.counters["each"] = benchmark::Counter(static_cast<double>(candidates) * static_cast<double>(state.iterations()),
                                              benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.SetLabel(base::Cat(target.name, " ", kRanked[state.range(0)]));
}

BENCHMARK(RawLaunch);
BENCHMARK(ExecuteGemm)->Arg(1)->Arg(64);
BENCHMARK(ExecuteConv)->Arg(1)->Arg(64);
BENCHMARK(FindGemm)->Arg(1)->Arg(1000);
BENCHMARK(FindConv);
BENCHMARK(RunGemm);
BENCHMARK(ReadChoices);
BENCHMARK(PlanFromStore)->ArgName("tuned")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);
BENCHMARK(ChooseByModel)->ArgsProduct({{0, 1, 2}, {0, 1}})->Unit(benchmark::kMillisecond);
BENCHMARK(RankByModel)->ArgsProduct({{0, 1, 2}, {0, 1}})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace laneshift

BENCHMARK_MAIN();
