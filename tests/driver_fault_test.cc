// Fails the n-th call of the driver, once or from then on, from opening an engine to the result of its kernel, or to
// the times of a schedule: an error by name or the right numbers, no kernel called wrong, nothing left allocated, and
// an engine that works once the driver does.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "device/buffer.h"
#include "device/stream.h"
#include "emulator/driver/driver.h"
#include "laneshift/engine.h"
#include "measure/device_operands.h"
#include "measure/problem_bench.h"
#include "measure/reference/host_reference.h"
#include "runtime/engine_parts.h"
#include "runtime/open_device.h"

namespace laneshift {
namespace {

using base::Cat;

// Driver functions are plain functions, so what they know is static.
struct FaultyCalls {
  device::DriverApi real;
  int countdown = 0;                   // the call that fails; 0: none
  bool for_good = false;               // and every one after it
  std::string failed;                  // the first that did
  std::map<std::string, int> balance;  // of what is made and given back

  static FaultyCalls& Instance() {
    static FaultyCalls calls;
    return calls;
  }
  bool Fails(const char* symbol) {
    // What is given back is given back.
    const std::string_view name(symbol);
    for (const char* word : {"Free", "Destroy", "Unload", "Release", "GetError"}) {
      if (name.find(word) != std::string_view::npos) return false;
    }
    if (for_good && !failed.empty()) return true;
    if (countdown == 0 || --countdown != 0) return false;
    failed = symbol;
    return true;
  }
  void Weigh(const char* symbol) {
    static const std::map<std::string_view, std::pair<const char*, int>> weights = {
        {"cuMemAlloc_v2", {"memory", 1}},
        {"cuMemFree_v2", {"memory", -1}},
        {"cuModuleLoadDataEx", {"modules", 1}},
        {"cuModuleUnload", {"modules", -1}},
        {"cuStreamCreate", {"streams", 1}},
        {"cuStreamDestroy_v2", {"streams", -1}},
        {"cuEventCreate", {"events", 1}},
        {"cuEventDestroy_v2", {"events", -1}},
        {"cuDevicePrimaryCtxRetain", {"contexts", 1}},
        {"cuDevicePrimaryCtxRelease_v2", {"contexts", -1}}};
    const auto weight = weights.find(symbol);
    if (weight != weights.end()) balance[weight->second.first] += weight->second.second;
  }
};

// One row of the table: the real function, unless this call is to fail.
template <auto Member, const char* Symbol, typename Function>
struct Wrapped;
template <auto Member, const char* Symbol, typename... Parameters>
struct Wrapped<Member, Symbol, device::CuResult (*)(Parameters...)> {
  static device::CuResult Call(Parameters... parameters) {
    FaultyCalls& calls = FaultyCalls::Instance();
    if (calls.Fails(Symbol)) return device::kCuErrorUnknown;
    const device::CuResult result = (calls.real.*Member)(parameters...);
    if (result == device::kCuSuccess) calls.Weigh(Symbol);
    return result;
  }
};

#define CU(member, symbol, parameters) constexpr char kName##member[] = #symbol;
#include "device/driver_api.def"

device::DriverApi FaultyTable() {
  FaultyCalls::Instance().real = emulator::Driver();
  device::DriverApi api = FaultyCalls::Instance().real;
#define CU(member, symbol, parameters)                                                                          \
  if (api.member != nullptr) {                                                                                  \
    api.member = Wrapped<&device::DriverApi::member, kName##member, decltype(device::DriverApi::member)>::Call; \
  }
#include "device/driver_api.def"
  return api;
}

// Nothing, or an error. Without an error the numbers are checked.
std::optional<Error> ComputeOnce(const Engine& engine, const Problem& problem) {
  const auto run = [&]() -> Status {
    const Engine::Parts& parts = engine.parts();
    LS_ASSIGN(device::Stream stream, device::Stream::Create(parts.device.context()));
    measure::HostOperands host = measure::HostOperands::Random(problem, 3);
    LS_ASSIGN(const measure::DeviceOperands operands,
              measure::DeviceOperands::Upload(parts.device.context(), stream, problem, host));
    LS_ASSIGN(const Plan plan, engine.MakePlan(problem));
    LS_ASSIGN(device::DeviceBuffer workspace,
              device::DeviceBuffer::Allocate(parts.device.context(), plan.workspace_bytes() + 16));
    LS_TRY(workspace.FillBytes(stream, 0));
    LS_TRY(plan.Execute(stream.handle(), operands.arguments(), reinterpret_cast<void*>(workspace.pointer())));
    LS_TRY(stream.Synchronize());
    measure::HostTensor d = measure::HostTensor::Poisoned(Stored(problem, ir::OperandRole::kD));
    LS_TRY(operands.Download(stream, d, host));
    const auto wrong = measure::FailureOf(measure::CompareAll(problem, host, d), problem, parts.target);
    EXPECT_EQ(wrong, std::nullopt) << "a call failed, nobody said so, and the numbers are wrong: "
                                   << FaultyCalls::Instance().failed;
    return Ok();
  };
  const Status done = run();
  return done ? std::nullopt : std::optional(done.error());
}

// What a worker of the tuner does: checks a schedule, then times it.
std::optional<Error> MeasureOnce(const Engine& engine, const Problem& problem) {
  constexpr int kRounds = 2;
  const auto run = [&]() -> Status {
    LS_ASSIGN(const auto bench, measure::ProblemBench::Open(engine, problem, {}));
    LS_ASSIGN(const Plan plan, engine.MakePlan(problem));
    LS_ASSIGN(const ScheduleConstraint schedule, ParseSchedule(plan.report().schedule));
    const autotune::Trial trial = bench->Check(schedule.value);
    EXPECT_NE(trial.verdict, store::Verdict::kWrong)
        << FaultyCalls::Instance().failed << " failed, and the kernel was blamed: " << trial.detail;
    if (trial.verdict != store::Verdict::kPassed) return MakeError(ErrorCode::kDriver, trial.detail);
    LS_ASSIGN(const autotune::SampleTable samples,
              bench->Time({schedule.value}, kRounds, store::TimingOrder::kInterleaved));
    EXPECT_EQ(samples.at(0).size(), static_cast<size_t>(kRounds));
    for (const store::Sample& sample : samples.at(0)) EXPECT_TRUE(std::isfinite(sample.time_us) && sample.time_us >= 0);
    return Ok();
  };
  const Status done = run();
  return done ? std::nullopt : std::optional(done.error());
}

struct Work {
  const char* name;
  const char* problem;
  std::optional<Error> (*once)(const Engine&, const Problem&);
  int every;                       // call up to this one fails in turn; later ones at growing distances
  std::vector<const char*> calls;  // among those that failed
};
void PrintTo(const Work& work, std::ostream* out) { *out << work.name; }
const Work kWork[] = {
    {"Compute", "gemm m=24 n=16 k=32", ComputeOnce, 2000, {"cuLaunchKernelEx", "cuModuleLoadDataEx", "cuMemAlloc_v2"}},
    // With rint the reference is the host's.
    {"Measure", "gemm m=24 n=16 k=32 epilogue=rint", MeasureOnce, 160, {"cuLaunchKernelEx", "cuEventCreate"}},
};

class DriverFault : public testing::TestWithParam<std::tuple<Work, bool>> {
 protected:
  void SetUp() override { base::SetLogLevel(base::LogLevel::kOff); }
  void TearDown() override { base::SetLogLevel(base::LogLevel::kWarn); }

  static Result<Engine> Open() {
    emulator::Options emulated;
    emulated.profile = emulator::Profile::kH200;
    emulated.host_threads = 1;
    emulator::Configure(emulated);
    auto api = std::make_unique<const device::DriverApi>(FaultyTable());
    LS_ASSIGN(device::Device device, device::OpenDevice(*api, 0));
    LS_ASSIGN(const target::Target* target, target::FindTarget("sm_90a"));
    EngineOptions options{.device = "cuda"};
    options.assembler = Assembler::kDriver;
    return Engine::Parts::OpenOn(options, {nullptr, std::move(api), std::move(device), target, {}});
  }
};

TEST_P(DriverFault, EveryCallMayFail) {
  const auto& [work, for_good] = GetParam();
  const Problem problem = *CompleteProblem(*ParseProblem(work.problem));
  FaultyCalls& calls = FaultyCalls::Instance();
  std::map<std::string, int> met;
  int n = 1;
  for (bool failed = true; failed; n += n < work.every ? 1 : n / 12) {
    ASSERT_LT(n, 10000) << "the calls never run out";
    calls = {};
    calls.countdown = n;
    calls.for_good = for_good;
    {
      const auto engine = Open();
      const auto error = engine ? work.once(*engine, problem) : std::optional(engine.error());
      failed = !calls.failed.empty();
      const std::string when = Cat("call ", n, ", ", calls.failed);
      if (failed) ++met[calls.failed];
      if (error) {
        EXPECT_TRUE(failed) << when << ": " << error->message;
        EXPECT_FALSE(error->message.empty()) << when;
      }
      // The driver is well again, and so is the engine.
      calls.countdown = 0;
      calls.for_good = false;
      if (engine && failed) {
        const auto again = work.once(*engine, problem);
        EXPECT_EQ(again, std::nullopt) << when << ": " << again->message;
      }
    }
    // What cannot be released because the driver fails stays until the context ends.
    const bool locked_out = calls.failed.starts_with("cuCtx");
    for (const auto& [what, count] : calls.balance) {
      EXPECT_TRUE(count == 0 || locked_out)
          << "call " << n << ", " << calls.failed << ", leaves " << count << " " << what;
    }
  }
  EXPECT_GT(met.size(), 12u) << "hardly any function was called";
  for (const char* call : work.calls) EXPECT_TRUE(met.contains(call)) << call;
}

INSTANTIATE_TEST_SUITE_P(Kinds, DriverFault, testing::Combine(testing::ValuesIn(kWork), testing::Bool()),
                         [](const auto& one) {
                           return Cat(std::get<0>(one.param).name, std::get<1>(one.param) ? "_from_then_on" : "_once");
                         });

}  // namespace
}  // namespace laneshift
