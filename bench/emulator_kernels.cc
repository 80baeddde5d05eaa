// Our own kernels on one core of the emulator, hazards on: thread instructions and tensor-core FLOP a second of CPU
// time, from the launch to the last store.
#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <vector>

#include "base/small_float.h"
#include "bench/emulator_bench.h"
#include "device/buffer.h"
#include "device/stream.h"
#include "emulator/driver/driver.h"
#include "laneshift/engine.h"
#include "runtime/engine_parts.h"

namespace laneshift::emulator {
namespace {

struct KernelCase {
  const char* name;
  const char* problem;
  const char* schedule = "";  // empty: the rule's
};

// `count` numbers, uniform in [-1, 1): sums of few bits, like those of ones, are less work for the adder.
Result<device::DeviceBuffer> Numbers(const device::Stream& stream, int64_t count) {
  std::mt19937 random(1);
  std::vector<uint16_t> numbers(static_cast<size_t>(count));
  for (uint16_t& number : numbers) {
    const float value = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-31f;
    number = static_cast<uint16_t>(base::FromFloat(base::FloatFormat::kBf16, value, base::Rounding::kTowardZero));
  }
  LS_ASSIGN(device::DeviceBuffer buffer, device::DeviceBuffer::Allocate(stream.context(), numbers.size() * 2));
  LS_TRY(buffer.CopyFromHost(stream, numbers.data(), numbers.size() * 2));
  LS_TRY(stream.Synchronize());
  return buffer;
}

Status Measure(benchmark::State& state, const KernelCase& kernel, const EngineOptions& options) {
  LS_ASSIGN(const Engine engine, Engine::Open(options));
  LS_ASSIGN(const Problem problem, ParseProblem(kernel.problem));
  LS_ASSIGN(const ScheduleConstraint constraint, ParseSchedule(kernel.schedule));
  const GemmProblem& p = std::get<GemmProblem>(problem);
  LS_ASSIGN(const Plan plan, engine.MakePlan(problem, constraint));
  LS_ASSIGN(const device::Stream stream, device::Stream::Create(engine.parts().device.context()));
  LS_ASSIGN(const device::DeviceBuffer a, Numbers(stream, p.m * p.k));
  LS_ASSIGN(const device::DeviceBuffer b, Numbers(stream, p.n * p.k));
  LS_ASSIGN(const device::DeviceBuffer d, Numbers(stream, p.m * p.n * 2));
  const auto pointer = [](const device::DeviceBuffer& buffer) { return reinterpret_cast<void*>(buffer.pointer()); };
  (void)TakeReport();
  for (auto _ : state) {
    LS_TRY(plan.Execute(stream.handle(), {.a = pointer(a), .b = pointer(b), .d = pointer(d)}));
    LS_TRY(stream.Synchronize());
  }
  const Report report = TakeReport();
  if (!report.Clean()) return MakeError(ErrorCode::kWrongResult, report.Print());
  state.SetLabel(plan.report().schedule);
  using benchmark::Counter;
  state.counters["instructions/s"] =
      Counter(static_cast<double>(report.counters.thread_instructions), Counter::kIsRate);
  // What was asked for: a kernel's padding is its own loss.
  state.counters["FLOP/s"] = Counter(ProblemFlops(problem) * static_cast<double>(state.iterations()), Counter::kIsRate);
  return Ok();
}

}  // namespace

void RegisterKernels() {
  constexpr KernelCase kCases[] = {
      {"wide", "gemm m=512 n=512 k=1024 a=bf16 b=bf16 d=bf16", "tile=128x256x64"},
      {"cube", "gemm m=512 n=512 k=512 a=bf16 b=bf16 d=f32", "split_k=1"},
      {"deep", "gemm m=256 n=256 k=4096 a=bf16 b=bf16 d=bf16", "split_k=1"},
      {"flat", "gemm m=1024 n=1024 k=64 a=bf16 b=bf16 d=bf16", "split_k=1"},
      {"unaligned", "gemm m=255 n=255 k=255 a=bf16 b=bf16 d=bf16", "split_k=1 a_load=copy b_load=copy"},
  };
  for (const char* target : {"sm_100a", "sm_90a"}) {
    for (const SumArithmetic arithmetic : {SumArithmetic::kHardware, SumArithmetic::kFast}) {
      EngineOptions options;
      options.store_directory = ":memory:";
      options.device = "emulator";
      options.target = target;
      options.emulator_threads = 1;
      const bool fast = arithmetic == SumArithmetic::kFast;
      options.arithmetic = fast ? laneshift::Arithmetic::kFast : laneshift::Arithmetic::kHardware;
      for (const KernelCase& kernel : kCases) {
        const std::string name = std::string("kernel/") + target + "/" + kernel.name + (fast ? "/fast" : "/hardware");
        benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
          if (const Status measured = Measure(state, kernel, options); !measured) {
            state.SkipWithError(measured.error().message.c_str());
          }
        });
      }
    }
  }
}

}  // namespace laneshift::emulator
