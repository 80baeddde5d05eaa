#include "measure/problem_bench.h"

#include <utility>

#include "base/text.h"
#include "emulator/driver/driver.h"
#include "measure/operand_memory.h"
#include "measure/reference/function_evaluator.h"
#include "measure/reference/group_offsets.h"
#include "measure/reference/reduced_problem.h"
#include "runtime/engine_parts.h"

namespace laneshift::measure {
namespace {

using autotune::SampleTable;
using autotune::Trial;
using base::Cat;
using store::Verdict;

// The maximum number of products for which the host computes the whole reference.
constexpr double kMaxHostProducts = 6e10;
constexpr double kMaxGpuProducts = 2e9;  // of a trial on a GPU, whose deadline is a few seconds
constexpr int64_t kHostSamples = 8192;

Trial Failed(Verdict verdict, std::string detail) { return {.verdict = verdict, .detail = std::move(detail)}; }

// The emulator's findings, if they make a candidate unfit.
std::optional<Trial> EmulatorsVerdict() {
  const emulator::Report report = emulator::TakeReport();
  if (!report.faults.empty())
    return Failed(Verdict::kCrashed, Cat("the kernel stopped: ", report.faults.front().Print()));
  if (report.hazards.empty()) return std::nullopt;
  return Failed(Verdict::kWrong, Cat(report.hazards.size(), " hazards, first: ", report.hazards.front().Print()));
}

}  // namespace

Result<std::unique_ptr<ProblemBench>> ProblemBench::Open(const Engine& engine, const Problem& problem,
                                                         const BenchOptions& options) {
  const Engine::Parts& parts = engine.parts();
  LS_ASSIGN(device::Stream stream, device::Stream::Create(parts.device.context()));
  std::unique_ptr<ProblemBench> bench(new ProblemBench(engine, problem, options, std::move(stream)));
  if (parts.emulated) return bench;
  LS_TRY(CheckHostMemory(problem, HostCopies::kOnce));
  bench->host_ = HostOperands::Random(problem, options.seed);
  LS_TRY(DivideRows(problem, options.group_sizes, options.seed, bench->host_));
  LS_ASSIGN(bench->operands_,
            DeviceOperands::Upload(parts.device.context(), bench->stream_, problem, bench->host_, kRedZoneBytes));
  LS_TRY(bench->stream_.Synchronize());  // the copies read host_
  // If NVRTC is missing, or does not support the device, the host computes the reference.
  if (const auto nvrtc = Nvrtc::Open(options.library_directories)) {
    if (auto reference = DeviceReference::Compile(*nvrtc, parts.device, problem)) {
      bench->reference_ = std::move(*reference);
      bench->host_ = {};
    }
  }
  if (auto nvml = Nvml::Open(parts.device)) bench->nvml_ = std::move(*nvml);
  return bench;
}

Result<std::shared_ptr<const Runnable>> ProblemBench::Prepare(const Problem& problem, const Schedule& schedule) const {
  LS_ASSIGN(const ScheduleConstraint whole, ParseSchedule(PrintSchedule(schedule)));
  return Runnable::Make(engine_, stream_, problem, whole, engine_.parts().emulated ? 0 : kRedZoneBytes);
}

Result<std::optional<std::string>> ProblemBench::Compare(const Problem& problem, HostOperands& host,
                                                         const DeviceOperands& operands) {
  const StoredTensor output = Stored(problem, OperandRole::kD);
  HostTensor d{output, {}};
  if (!reference_ || output.Padded()) {
    d = HostTensor::Poisoned(output);
    LS_TRY(operands.Download(stream_, d, host));
    if (auto overwritten = FindOverwrittenPadding(d)) return overwritten;
    for (const HostTensor& operand : host.epilogue) {
      if (auto overwritten = FindOverwrittenPadding(operand)) return overwritten;
    }
  }
  Comparison comparison;
  if (reference_) {
    LS_ASSIGN(comparison, reference_->Compare(stream_, operands.arguments()));
  } else {
    LS_ASSIGN(const FunctionEvaluator functions, FunctionEvaluator::Make(engine_, problem, host.epilogue));
    const auto evaluate = [&](size_t index, const std::vector<float>& inputs, int64_t count) {
      return functions.Evaluate(index, inputs, count);
    };
    if (ProblemFlops(problem) / 2 <= (engine_.parts().emulated ? kMaxHostProducts : kMaxGpuProducts)) {
      LS_ASSIGN(comparison, CompareAll(problem, host, d, evaluate));
    } else {
      LS_ASSIGN(comparison, CompareSample(problem, host, d, kHostSamples, options_.seed, evaluate));
    }
  }
  return FailureOf(comparison, problem, engine_.parts().target);
}

Trial ProblemBench::CheckOn(const Problem& problem, HostOperands& host, const DeviceOperands& operands,
                            const Runnable& runnable) {
  const bool emulated = engine_.parts().emulated;
  if (emulated) (void)emulator::TakeReport();
  Status ran = operands.PoisonOutput(stream_);
  if (ran) ran = stream_.Synchronize();
  if (!ran) return Failed(Verdict::kCrashed, Cat("the device was lost earlier: ", ran.error().message));
  const Status launched = runnable.Execute(stream_, operands.arguments());
  const Status done = launched ? stream_.Synchronize() : launched;
  if (emulated) {
    if (auto verdict = EmulatorsVerdict()) return *verdict;
  }
  if (!launched && launched.error().code != ErrorCode::kDriver)
    return Failed(Verdict::kRefused, launched.error().message);
  if (!done) return Failed(Verdict::kCrashed, done.error().message);
  auto wrong = Compare(problem, host, operands);
  if (!wrong) return Failed(Verdict::kCrashed, wrong.error().message);
  if (*wrong) return Failed(Verdict::kWrong, **wrong);
  auto damage = operands.Damage(stream_);
  if (damage && !*damage) damage = runnable.Damage(stream_);
  if (!damage) return Failed(Verdict::kCrashed, damage.error().message);
  if (*damage) return Failed(Verdict::kWrong, Cat("the kernel wrote ", **damage));
  return {};
}

Trial ProblemBench::Check(const Schedule& schedule) {
  const Engine::Parts& parts = engine_.parts();
  const Problem problem = parts.emulated ? ReducedProblem(problem_, schedule, parts.target) : problem_;
  const auto runnable = Prepare(problem, schedule);
  if (!runnable) return Failed(Verdict::kRefused, runnable.error().message);
  if (!parts.emulated) return CheckOn(problem, host_, *operands_, **runnable);
  HostOperands host = HostOperands::Random(problem, options_.seed);
  const auto operands = DeviceOperands::Upload(parts.device.context(), stream_, problem, host);
  if (!operands) return Failed(Verdict::kCrashed, operands.error().message);
  return CheckOn(problem, host, *operands, **runnable);
}

Result<SampleTable> ProblemBench::Time(const std::vector<Schedule>& schedules, int rounds, store::TimingOrder order) {
  const Engine::Parts& parts = engine_.parts();
  if (parts.emulated) return MakeError(ErrorCode::kUnsupported, "an emulated device has no times");
  if (!rotating_) {
    LS_ASSIGN(rotating_, RotatingOperands::Make(parts.device, stream_, *operands_));
  }
  std::vector<Contender> contenders;
  for (const Schedule& schedule : schedules) {
    LS_ASSIGN(const auto runnable, Prepare(problem_, schedule));
    contenders.push_back([this, runnable](const Arguments& a) { return runnable->Execute(stream_, a); });
  }
  ReadConditions read;
  if (nvml_) read = [this] { return nvml_->Read(); };
  if (order == store::TimingOrder::kInSeries)
    return TimeInSeries(parts.device, stream_, *rotating_, contenders, rounds, read);
  return TimeInterleaved(parts.device, stream_, *rotating_, contenders, rounds, CallsOfSample(problem_), read);
}

}  // namespace laneshift::measure
