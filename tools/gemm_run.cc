#include "tools/gemm_run.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/text.h"
#include "emulator/driver.h"
#include "runtime/engine_parts.h"
#include "tools/cublas.h"
#include "tools/device_operands.h"
#include "tools/device_reference.h"
#include "tools/gpu_timing.h"
#include "tools/npy.h"
#include "tools/table.h"

namespace laneshift::tools {
namespace {

using base::Cat;

// Products that the host checks in whole: half a minute on two slow cores.
constexpr double kMaxHostProducts = 6e10;
constexpr int64_t kSamples = 8192;

Result<HostMatrix> Operand(const std::string& path, const GemmProblem& problem, Matrix matrix, uint64_t seed) {
  const MatrixShape shape = ShapeOf(problem, matrix);
  if (path.empty()) return HostMatrix::Random(shape, matrix, seed);
  return ReadNpy(path, shape, matrix);
}

Status RefuseUnread(const std::string& path, std::string_view option, std::string_view why) {
  if (path.empty()) return Ok();
  return MakeError(ErrorCode::kInvalidArgument, Cat(option, " ", path, ": ", why));
}

Result<HostOperands> PrepareOperands(const GemmProblem& problem, const RunSettings& settings) {
  HostOperands operands;
  LS_ASSIGN(operands.a, Operand(settings.a, problem, Matrix::kA, settings.seed));
  LS_ASSIGN(operands.b, Operand(settings.b, problem, Matrix::kB, settings.seed));
  if (problem.beta != 0) {
    LS_ASSIGN(operands.c, Operand(settings.c, problem, Matrix::kC, settings.seed));
  } else {
    LS_TRY(RefuseUnread(settings.c, "--c", "the problem reads no C; give it a beta, such as beta=1"));
  }
  if (problem.bias != BiasAxis::kNone) {
    LS_ASSIGN(operands.bias, Operand(settings.bias, problem, Matrix::kBias, settings.seed));
  } else {
    LS_TRY(RefuseUnread(settings.bias, "--bias", "the problem has no bias; say bias=m or bias=n"));
  }
  return operands;
}

// One problem on one device, step by step.
class GemmRun {
 public:
  GemmRun(const Engine& engine, const Problem& problem, const RunSettings& settings, device::Stream stream)
      : engine_(engine),
        parts_(engine.parts()),
        problem_(std::get<GemmProblem>(problem)),
        settings_(settings),
        stream_(std::move(stream)) {}

  Result<RunOutcome> Run() {
    LS_ASSIGN(const HostOperands operands, PrepareOperands(problem_, settings_));
    LS_ASSIGN(const Plan plan, engine_.MakePlan(problem_, settings_.constraint));
    outcome_.plan = plan.report();
    LS_ASSIGN(const DeviceOperands uploaded,
              DeviceOperands::Upload(parts_.device.context(), stream_, problem_, operands));
    LS_TRY(Execute(plan, uploaded));
    HostMatrix d{ShapeOf(problem_, Matrix::kD), {}};
    if (NeedsDownload()) {
      d = HostMatrix::Poisoned(d.shape);
      LS_TRY(uploaded.Download(stream_, d));
    }
    if (settings_.check) LS_TRY(Check(operands, uploaded, d));
    if (!settings_.out.empty()) LS_TRY(WriteNpy(settings_.out, d, Matrix::kD));
    if (problem_.d == DataType::kBf16 && !settings_.out.empty()) {
      outcome_.notes.push_back(Cat(settings_.out, " holds the bits of bf16 as uint16, a type that NumPy lacks"));
    }
    if (!parts_.emulated) {
      LS_TRY(Time(plan, uploaded));
    } else if (settings_.vs_cublas) {
      outcome_.notes.push_back("--vs cublas compares times on a GPU; the emulator has none, so cublas_us is null");
    }
    Judge();
    return std::move(outcome_);
  }

 private:
  bool ChecksOnHost() const { return settings_.check && (parts_.emulated || !nvrtc_); }
  bool NeedsDownload() {
    if (settings_.check && !parts_.emulated) {
      auto nvrtc = Nvrtc::Open(settings_.library_directories);
      if (nvrtc) {
        nvrtc_ = std::move(*nvrtc);
      } else {
        outcome_.notes.push_back(Cat(nvrtc.error().message, "; checked on the host instead"));
      }
    }
    return ChecksOnHost() || !settings_.out.empty() || (settings_.check && ShapeOf(problem_, Matrix::kD).Padded());
  }

  Status Execute(const Plan& plan, const DeviceOperands& operands) {
    LS_TRY(stream_.Synchronize());
    if (parts_.emulated) (void)emulator::TakeReport();
    const auto start = std::chrono::steady_clock::now();
    Status launched = plan.Execute(stream_.handle(), operands.arguments());
    if (launched) launched = stream_.Synchronize();
    if (!parts_.emulated) return launched;
    outcome_.emulate_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    emulator::Report report = emulator::TakeReport();
    if (!launched && report.faults.empty()) return launched;
    if (!report.faults.empty()) {
      return MakeError(ErrorCode::kWrongResult, Cat("the kernel stopped: ", report.faults.front().Print()));
    }
    const bool fast = report.arithmetic == emulator::Arithmetic::kFast;
    outcome_.arithmetic = ArithmeticName(fast ? Arithmetic::kFast : Arithmetic::kHardware);
    if (fast) outcome_.notes.push_back("arithmetic: fast: the emulator's sums are plain f32, not the tensor core's");
    outcome_.hazards.emplace();
    for (const emulator::Hazard& hazard : report.hazards) outcome_.hazards->push_back(hazard.Print());
    return Ok();
  }

  Status Check(const HostOperands& operands, const DeviceOperands& uploaded, const HostMatrix& d) {
    if (!ChecksOnHost()) {
      LS_ASSIGN(outcome_.comparison, CompareOnDevice(*nvrtc_, parts_.device, stream_, problem_, uploaded.arguments()));
    } else if (ProblemFlops(problem_) / 2 <= kMaxHostProducts) {
      outcome_.comparison = CompareAll(problem_, operands, d);
    } else {
      outcome_.comparison = CompareSample(problem_, operands, d, kSamples, settings_.seed);
      outcome_.notes.push_back(
          Cat("too big to check in whole on the host: ", kSamples, " random elements were checked"));
    }
    if (d.bytes.empty()) return Ok();
    if (auto overwritten = FindOverwrittenPadding(d)) outcome_.failures.push_back(std::move(*overwritten));
    return Ok();
  }

  Status Time(const Plan& plan, const DeviceOperands& operands) {
    std::vector<Contender> contenders = {
        [&](const GemmArguments& arguments) { return plan.Execute(stream_.handle(), arguments); }};
    std::optional<Cublas> cublas;
    if (settings_.vs_cublas) {
      auto opened = Cublas::Open(settings_.library_directories, parts_.device, stream_);
      if (!opened) {
        outcome_.notes.push_back(opened.error().message);
      } else {
        cublas = std::move(*opened);
        contenders.push_back([&](const GemmArguments& arguments) { return cublas->Multiply(problem_, arguments); });
        if (problem_.bias != BiasAxis::kNone) outcome_.notes.push_back("cuBLAS runs without the bias");
      }
    }
    LS_ASSIGN(const std::vector<double> medians,
              MedianMicroseconds(parts_.device, stream_, operands, contenders, settings_.repeat));
    outcome_.time_us = medians[0];
    if (medians.size() > 1) outcome_.cublas_us = medians[1];
    return Ok();
  }

  void Judge() {
    if (outcome_.hazards && !outcome_.hazards->empty()) {
      outcome_.failures.push_back(Cat(outcome_.hazards->size(), " hazards, first: ", outcome_.hazards->front()));
    }
    if (!settings_.check) return;
    const Comparison& comparison = *outcome_.comparison;
    const double bound = ErrorBound(problem_.d);
    if (comparison.not_finite > 0) {
      const int64_t first = comparison.first_not_finite;
      outcome_.failures.push_back(Cat(comparison.not_finite, " of ", comparison.compared,
                                      " elements are not finite or were never written, first: batch ",
                                      first / problem_.n / problem_.m, " row ", first / problem_.n % problem_.m,
                                      " column ", first % problem_.n));
    } else {
      outcome_.max_rel_err = comparison.RelativeError();
      if (!comparison.Accepted(bound)) {
        outcome_.failures.push_back(Cat("relative error ", *outcome_.max_rel_err, " is not below ", bound, " for ",
                                        DataTypeName(problem_.d), " output"));
      }
    }
    outcome_.verified = outcome_.failures.empty();
  }

  const Engine& engine_;
  Engine::Parts& parts_;
  const GemmProblem problem_;
  const RunSettings& settings_;
  device::Stream stream_;
  std::optional<Nvrtc> nvrtc_;
  RunOutcome outcome_;
};

}  // namespace

std::optional<double> RunOutcome::Tflops(const Problem& problem) const {
  if (!time_us || *time_us <= 0) return std::nullopt;
  return ProblemFlops(problem) / *time_us * 1e-6;
}

Result<RunOutcome> RunGemm(const Engine& engine, const Problem& problem, const RunSettings& settings) {
  if (!std::holds_alternative<GemmProblem>(problem)) {
    return MakeError(ErrorCode::kUnsupported,
                     Cat("problems of kind '", ProblemKind(problem), "' do not run yet; use gemm"));
  }
  LS_ASSIGN(device::Stream stream, device::Stream::Create(engine.parts().device.context()));
  return GemmRun(engine, problem, settings, std::move(stream)).Run();
}

}  // namespace laneshift::tools
