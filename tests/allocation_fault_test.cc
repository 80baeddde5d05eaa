// Fails the n-th allocation by operator new, n = 1, 2, …, once or from then on, from the text of a problem to what its
// kernel computed: an error by name or the right numbers, nothing that is left on the device, and an engine that works
// once there is memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "emulator/driver/driver.h"
#include "laneshift/c.h"
#include "laneshift/device_memory.h"
#include "laneshift/engine.h"
#include "laneshift/host_run.h"
#include "measure/reference/host_reference.h"
#include "runtime/engine_parts.h"
#include "store/temporary_directory.h"
#include "tests/failing_new.h"

// What LLVM held when it was left is leaked on purpose. Only AddressSanitizer calls this.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

namespace laneshift {
namespace {

using base::Cat;

constexpr char kProblem[] = "gemm m=24 n=16 k=32";
constexpr char kSchedule[] = "tile=64x16x64 stages=2";

// What `step` says where its n-th allocation fails, and whether there was an n-th.
struct Tried {
  Status status;
  bool failed;
};
Tried TryWith(int64_t n, bool from_then_on, const std::function<Status()>& step) {
  tests::FailAllocation(n, from_then_on);
  Status status = step();
  return {std::move(status), tests::StopFailingAllocations()};
}

// A part of the way, and what has to be right after it failed.
struct Part {
  std::function<Status()> step;
  std::function<void(const std::string& when)> afterwards = [](const std::string&) {};
};

// How often operator new is asked in a step that nothing disturbs.
int64_t AllocationsOf(const std::function<Status()>& step) {
  const int64_t before = tests::AllocationCount();
  const Status status = step();
  const int64_t count = tests::AllocationCount() - before;
  EXPECT_TRUE(status) << status.error().message;
  return count;
}

// Makes about `most` allocations of the step fail, evenly spread; `make` recreates what each needs.
void FailEach(const char* name, int most, const std::function<Part()>& make) {
  const int64_t count = AllocationsOf(make().step);
  const int64_t stride = std::max<int64_t>(1, count / most);
  int failures = 0;
  for (const bool from_then_on : {false, true}) {
    bool failed = true;
    for (int64_t n = 1; failed && n < 2 * count + 2; n += stride) {
      const Part part = make();
      Tried tried = TryWith(n, from_then_on, part.step);
      failed = tried.failed;
      failures += failed;
      const std::string when = Cat(name, ", allocation ", n, " of ", count, from_then_on ? " and all after it" : "");
      if (!tried.status) {
        EXPECT_TRUE(failed) << when << ": " << tried.status.error().message;
        EXPECT_EQ(tried.status.error().code, ErrorCode::kResourceExhausted)
            << when << ": " << tried.status.error().message;
        EXPECT_FALSE(tried.status.error().message.empty()) << when;
      }
      part.afterwards(when);
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_FALSE(failed) << name << ": the allocations never run out";
  }
  EXPECT_GT(failures, 0) << name << " asks for no memory";
  std::printf("%s: %lld allocations, %d of them failed\n", name, static_cast<long long>(count), failures);
}

Problem TheProblem() { return *ParseProblem(kProblem); }
ScheduleConstraint TheSchedule() { return *ParseSchedule(kSchedule); }

EngineOptions OnEmulator(const std::string& store = {}) {
  EngineOptions options{.device = "emulator", .target = "sm_90a", .store_directory = store};
  options.emulator_threads = 1;
  options.emulator_multiprocessors = 2;
  return options;
}

size_t FreeBytes(const Engine& engine) {
  const auto active = engine.parts().device.Activate();
  size_t free_bytes = 0, total_bytes = 0;
  EXPECT_EQ(engine.parts().api.MemGetInfo(&free_bytes, &total_bytes), device::kCuSuccess);
  return free_bytes;
}

// Operands on the device, and what D has to be.
class Operands {
 public:
  explicit Operands(const Engine& engine) : problem_(TheProblem()), host_(measure::HostOperands::Random(problem_, 3)) {
    const auto put = [&](const measure::HostTensor& tensor) {
      DeviceMemory memory = *DeviceMemory::Allocate(engine, tensor.bytes.size());
      EXPECT_TRUE(memory.CopyFromHost(tensor.bytes.data(), tensor.bytes.size()));
      return memory;
    };
    a_.emplace(put(host_.a));
    b_.emplace(put(host_.b));
    d_.emplace(put(measure::HostTensor::Poisoned(Stored(problem_, ir::OperandRole::kD))));
  }
  GemmArguments arguments() const { return {.a = a_->data(), .b = b_->data(), .d = d_->data()}; }
  void ExpectProduct(const Engine& engine, const std::string& when) const {
    measure::HostTensor d = measure::HostTensor::Poisoned(Stored(problem_, ir::OperandRole::kD));
    ASSERT_TRUE(d_->CopyToHost(d.bytes.data(), d.bytes.size())) << when;
    EXPECT_EQ(measure::FailureOf(measure::CompareAll(problem_, host_, d), problem_, engine.parts().target),
              std::nullopt)
        << when;
  }

 private:
  Problem problem_;
  measure::HostOperands host_;
  std::optional<DeviceMemory> a_, b_, d_;
};

// The engine plans and computes.
void ExpectWorks(const Engine& engine, const std::string& when) {
  const Operands operands(engine);
  const auto plan = engine.MakePlan(TheProblem(), TheSchedule());
  ASSERT_TRUE(plan) << when << ": " << plan.error().message;
  const Status executed = plan->Execute(nullptr, operands.arguments());
  ASSERT_TRUE(executed) << when << ": " << executed.error().message;
  operands.ExpectProduct(engine, when);
}

class AllocationFault : public testing::Test {
 protected:
  void SetUp() override { base::SetLogLevel(base::LogLevel::kOff); }
  void TearDown() override { base::SetLogLevel(base::LogLevel::kWarn); }
};

template <typename T>
Status Whether(const Result<T>& result) {
  return result ? Ok() : Status(result.error());
}

TEST_F(AllocationFault, Parsers) {
  const auto part = [](const std::function<Status()>& step) { return [step] { return Part{step}; }; };
  FailEach("ParseProblem", 500, part([] { return Whether(ParseProblem(kProblem)); }));
  FailEach("ParseSchedule", 500, part([] { return Whether(ParseSchedule(kSchedule)); }));
  // Where the text of an error takes memory.
  const auto refusal = [](ErrorCode code) {
    return code == ErrorCode::kInvalidArgument ? Ok() : Status(MakeError(code, "another one"));
  };
  FailEach("CompleteProblem", 500, part([&] { return refusal(CompleteProblem(GemmProblem{.m = -8}).error().code); }));
  FailEach("ParseMissPolicy", 500, part([&] { return refusal(ParseMissPolicy("no such policy").error().code); }));
  FailEach("ParseAsyncOrder", 500, part([&] { return refusal(ParseAsyncOrder("no such order").error().code); }));
  FailEach("ParseArithmetic", 500, part([&] { return refusal(ParseArithmetic("no such kind").error().code); }));
}

TEST_F(AllocationFault, Open) {
  FailEach("Open", 60, [] {
    auto engine = std::make_shared<std::optional<Engine>>();
    return Part{[engine]() -> Status {
                  auto opened = Engine::Open(OnEmulator());
                  if (!opened) return std::move(opened).error();
                  engine->emplace(std::move(*opened));
                  return Ok();
                },
                [engine](const std::string& when) {
                  if (*engine) return ExpectWorks(**engine, when);
                  ASSERT_TRUE(Engine::Open(OnEmulator())) << when;
                }};
  });
}

TEST_F(AllocationFault, PlanWithASchedule) {
  FailEach("MakePlan by a schedule", 80, [] {
    auto engine = std::make_shared<Engine>(*Engine::Open(OnEmulator()));
    const size_t free_bytes = FreeBytes(*engine);
    return Part{[engine, problem = TheProblem(), schedule = TheSchedule()] {
                  return Whether(engine->MakePlan(problem, schedule));
                },
                [engine, free_bytes](const std::string& when) {
                  ExpectWorks(*engine, when);
                  EXPECT_EQ(FreeBytes(*engine), free_bytes) << when;
                }};
  });
}

// An engine with a plan and its operands.
struct Bench {
  explicit Bench(Engine opened)
      : engine(std::move(opened)), plan(*engine.MakePlan(TheProblem(), TheSchedule())), operands(engine) {}
  Engine engine;
  Plan plan;
  Operands operands;
};

// A launch that ran out of memory under way is a fault of the emulated device, as on a GPU: then a new engine works.
void FailEachOn(const char* name, const std::function<Status(const Bench&)>& compute) {
  FailEach(name, 40, [&] {
    auto bench = std::make_shared<std::optional<Bench>>(std::in_place, *Engine::Open(OnEmulator()));
    return Part{[&compute, bench] { return compute(**bench); },
                [&compute, bench](const std::string& when) {
                  if (compute(**bench)) return (*bench)->operands.ExpectProduct((*bench)->engine, when);
                  bench->reset();
                  ExpectWorks(*Engine::Open(OnEmulator()), when);
                }};
  });
}

TEST_F(AllocationFault, Execute) {
  FailEachOn("Execute", [](const Bench& bench) { return bench.plan.Execute(nullptr, bench.operands.arguments()); });
}

TEST_F(AllocationFault, Run) {
  FailEachOn("Run", [](const Bench& bench) {
    return bench.engine.Run(GemmProblem{.m = 24, .n = 16, .k = 32}, nullptr, bench.operands.arguments());
  });
}

// Reads the store, chooses by the timing model and loads what was stored.
TEST_F(AllocationFault, PlanFromAStore) {
  const store::TemporaryDirectory directory;
  ASSERT_TRUE(Engine::Open(OnEmulator(directory.path()))->MakePlan(TheProblem()));
  EXPECT_EQ(Engine::Open(OnEmulator(directory.path()))->MakePlan(TheProblem())->report().cache, CacheState::kStore);
  FailEach("MakePlan from a store", 40, [&] {
    auto engine = std::make_shared<Engine>(*Engine::Open(OnEmulator(directory.path())));
    return Part{[engine, problem = TheProblem()] { return Whether(engine->MakePlan(problem)); },
                [engine](const std::string& when) {
                  const auto plan = engine->MakePlan(TheProblem());
                  ASSERT_TRUE(plan) << when << ": " << plan.error().message;
                }};
  });
}

TEST_F(AllocationFault, RunFromHost) {
  const measure::HostOperands host = measure::HostOperands::Random(TheProblem(), 3);
  measure::HostTensor d = measure::HostTensor::Poisoned(Stored(TheProblem(), ir::OperandRole::kD));
  const Arguments arguments = GemmArguments{.a = host.a.bytes.data(), .b = host.b.bytes.data(), .d = d.bytes.data()};
  FailEach("RunFromHost", 40, [&] {
    auto engine = std::make_shared<std::optional<Engine>>(*Engine::Open(OnEmulator()));
    const auto run = [&, engine, problem = TheProblem(), schedule = TheSchedule()] {
      return RunFromHost(**engine, problem, arguments, schedule);
    };
    return Part{run, [&, engine, run, free_bytes = FreeBytes(**engine)](const std::string& when) {
                  if (!run()) {
                    engine->reset();
                    engine->emplace(*Engine::Open(OnEmulator()));
                  }
                  const Status again = run();
                  ASSERT_TRUE(again) << when << ": " << again.error().message;
                  EXPECT_EQ(measure::FailureOf(measure::CompareAll(TheProblem(), host, d), TheProblem(),
                                               (*engine)->parts().target),
                            std::nullopt)
                      << when;
                  EXPECT_EQ(FreeBytes(**engine), free_bytes) << when;
                }};
  });
}

TEST_F(AllocationFault, DeviceMemoryIsGivenBack) {
  const Engine engine = *Engine::Open(OnEmulator());
  const size_t free_bytes = FreeBytes(engine);
  FailEach("DeviceMemory", 60, [&] {
    return Part{[&]() -> Status {
                  LS_ASSIGN(const DeviceMemory memory, DeviceMemory::Allocate(engine, 4096));
                  char bytes[64] = {};
                  LS_TRY(memory.CopyFromHost(bytes, sizeof bytes));
                  return memory.CopyToHost(bytes, sizeof bytes);
                },
                [&](const std::string& when) { EXPECT_EQ(FreeBytes(engine), free_bytes) << when; }};
  });
}

// The same codes and texts reach C.
struct CFailure {
  laneshift_status status = LANESHIFT_OK;
  char text[256] = "";
};
Status OfC(const CFailure& failure) {
  if (failure.status == LANESHIFT_OK) return Ok();
  const bool by_name = failure.status == LANESHIFT_RESOURCE_EXHAUSTED && failure.text[0] != '\0';
  // Short, since operator new may still fail.
  return MakeError(by_name ? ErrorCode::kResourceExhausted : ErrorCode::kInternal, "in C");
}

TEST_F(AllocationFault, TheCInterface) {
  FailEach("laneshift_engine_open and laneshift_plan_make", 60, [] {
    return Part{[] {
                  CFailure failure;
                  laneshift_engine* engine = nullptr;
                  failure.status =
                      laneshift_engine_open("emulator", "sm_90a", nullptr, &engine, failure.text, sizeof failure.text);
                  laneshift_plan* plan = nullptr;
                  if (engine != nullptr) {
                    failure.status =
                        laneshift_plan_make(engine, kProblem, kSchedule, &plan, failure.text, sizeof failure.text);
                  }
                  EXPECT_EQ(failure.status == LANESHIFT_OK, plan != nullptr);
                  laneshift_plan_free(plan);
                  laneshift_engine_close(engine);
                  return OfC(failure);
                },
                [](const std::string& when) { ExpectWorks(*Engine::Open(OnEmulator()), when); }};
  });
}

}  // namespace
}  // namespace laneshift
