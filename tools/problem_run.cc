#include "tools/problem_run.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "base/text.h"
#include "emulator/driver/driver.h"
#include "ir/element_type.h"
#include "ir/epilogue_steps.h"
#include "measure/device_operands.h"
#include "measure/gpu_timing.h"
#include "measure/operand_memory.h"
#include "measure/reference/comparison.h"
#include "measure/reference/device_reference.h"
#include "measure/reference/device_sums.h"
#include "measure/reference/function_evaluator.h"
#include "measure/reference/group_offsets.h"
#include "runtime/engine_parts.h"
#include "runtime/open_device.h"
#include "tools/npy.h"
#include "tools/table.h"

namespace laneshift::tools {
namespace {

using measure::CompareAll;
using measure::CompareOnDevice;
using measure::CompareSample;
using measure::Contender;
using measure::DeviceOperands;
using measure::FindOverwrittenPadding;
using measure::HostOperands;
using measure::MedianMicroseconds;
using measure::Nvrtc;

using base::Cat;

// The number of products that the host checks completely: half a minute on two slow cores.
constexpr double kMaxHostProducts = 6e10;
constexpr int64_t kSamples = 8192;

// An operand from its file, or from the seed. A file for an operand that the problem does not read is refused.
Result<HostTensor> Operand(const Problem& problem, OperandRole role, const std::string& path, uint64_t seed) {
  const std::string_view name = ir::NameOf(problem, role);
  if (ir::Uses(problem, role)) {
    if (ir::IsWritten(role)) return HostTensor::Poisoned(Stored(problem, role));
    if (path.empty()) return measure::RandomOperand(problem, role, seed);
    return ReadNpy(path, Stored(problem, role), name);
  }
  if (path.empty()) return HostTensor{};
  const bool of_tensors = role == OperandRole::kTensorScaleA || role == OperandRole::kTensorScaleB;
  const std::string_view remedy = role == OperandRole::kC                        ? "a beta, such as beta=1"
                                  : role == OperandRole::kMetadataA              ? "a sparse A, sparse=a"
                                  : of_tensors                                   ? "scale=nv"
                                  : ir::IsWritten(role)                          ? "d_scale=mx or d_scale=nv"
                                  : ir::IsScale(role)                            ? "scale factors, such as scale=tensor"
                                  : std::holds_alternative<ConvProblem>(problem) ? "a bias, such as bias=k"
                                                                                 : "a bias, such as bias=n";
  return MakeError(ErrorCode::kInvalidArgument,
                   Cat("--", name, " ", path, ": the problem ", ir::IsWritten(role) ? "writes" : "reads", " no ", name,
                       "; give it ", remedy));
}

Result<HostOperands> PrepareOperands(const Problem& problem, const RunSettings& settings) {
  HostOperands operands;
  for (const OperandRole role : ir::kAllRoles) {
    if (HostTensor* const operand = operands.Of(role)) {
      LS_ASSIGN(*operand, Operand(problem, role, settings.File(role), settings.seed));
    }
  }
  LS_TRY(measure::DivideRows(problem, settings.group_sizes, settings.seed, operands));
  operands.epilogue = HostOperands::RandomEpilogue(problem, settings.seed);
  return operands;
}

// One problem on one device, step by step.
class ProblemRun {
 public:
  ProblemRun(const Engine& engine, const Problem& problem, const RunSettings& settings, device::Stream stream)
      : engine_(engine),
        parts_(engine.parts()),
        problem_(problem),
        output_(Stored(problem, OperandRole::kD)),
        settings_(settings),
        stream_(std::move(stream)) {}

  Result<RunOutcome> Run() {
    LS_TRY(
        measure::CheckHostMemory(problem_, parts_.emulated ? measure::HostCopies::kTwice : measure::HostCopies::kOnce));
    LS_ASSIGN(HostOperands operands, PrepareOperands(problem_, settings_));
    LS_ASSIGN(const Plan plan, engine_.MakePlan(problem_, settings_.constraint));
    outcome_.plan = plan.report();
    LS_ASSIGN(workspace_, device::DeviceBuffer::Allocate(parts_.device.context(), plan.workspace_bytes()));
    if (workspace_->size() > 0) LS_TRY(workspace_->FillBytes(stream_, 0));
    LS_ASSIGN(const DeviceOperands uploaded,
              DeviceOperands::Upload(parts_.device.context(), stream_, problem_, operands));
    if (!settings_.async_orders.empty()) LS_TRY(SetOrder(settings_.async_orders.front()));
    LS_TRY(Execute(plan, uploaded));
    HostTensor d{output_, {}};
    if (NeedsDownload()) {
      d = HostTensor::Poisoned(d.shape);
      LS_TRY(uploaded.Download(stream_, d, operands));
    }
    if (settings_.check) LS_TRY(Check(operands, uploaded, d));
    const std::string& out = settings_.File(OperandRole::kD);
    if (!out.empty()) LS_TRY(WriteNpy(out, d));
    const std::string& factors = settings_.File(OperandRole::kBlockScaleD);
    if (!factors.empty()) LS_TRY(WriteNpy(factors, operands.block_scale_d));
    if (settings_.keep_output) outcome_.output = std::move(d.bytes);
    if (IsUnknownToNumpy(output_.type) && !out.empty()) {
      const bool packed = ir::BitsOf(output_.type) < 8;
      outcome_.notes.push_back(Cat(out, " holds the bits of ", DataTypeName(output_.type), " as uint",
                                   std::max(8, ir::BitsOf(output_.type)), packed ? ", two elements in each" : "",
                                   ": NumPy lacks the type"));
    }
    if (!parts_.emulated) {
      if (settings_.repeat > 0) LS_TRY(Time(plan, uploaded));
      if (settings_.record_timeline) LS_TRY(RunStamped(plan, uploaded));
    } else if (settings_.vs) {
      const std::string_view name = measure::PeerName(*settings_.vs);
      outcome_.notes.push_back(
          Cat("--vs ", name, " compares times on a GPU; the emulator has none, so ", name, "_us is null"));
    }
    Judge();
    for (size_t i = 1; i < settings_.async_orders.size(); ++i) {
      if (settings_.stop_at_failure && !outcome_.failures.empty()) break;
      LS_TRY(RunAgain(settings_.async_orders[i], plan, uploaded, operands, d));
    }
    return std::move(outcome_);
  }

 private:
  static Status SetOrder(const std::string& name) {
    LS_ASSIGN(const AsyncOrder order, ParseAsyncOrder(name));
    runtime::SetAsyncOrder(order);
    return Ok();
  }

  // Under another completion order. `first` and `first_d`: what the first run left.
  Status RunAgain(const std::string& order, const Plan& plan, const DeviceOperands& uploaded, const HostOperands& first,
                  const HostTensor& first_d) {
    RunOutcome of_first = std::exchange(outcome_, {});
    const Status ran = [&]() -> Status {
      LS_TRY(SetOrder(order));
      LS_TRY(uploaded.PoisonOutput(stream_));
      if (workspace_->size() > 0) LS_TRY(workspace_->FillBytes(stream_, 0));
      LS_TRY(Execute(plan, uploaded));
      HostOperands operands = first;
      HostTensor d = HostTensor::Poisoned(first_d.shape);
      LS_TRY(uploaded.Download(stream_, d, operands));
      const bool same = d.bytes == first_d.bytes;
      of_first.same_bits = same && of_first.same_bits.value_or(true);
      if (settings_.check && same && SameWritten(operands, first)) {
        outcome_.comparison = of_first.comparison;
      } else if (settings_.check) {
        LS_TRY(Check(operands, uploaded, d));
      }
      Judge();
      return Ok();
    }();
    std::swap(outcome_, of_first);
    LS_TRY(ran);
    for (const std::string& failure : of_first.failures) outcome_.failures.push_back(Cat(order, ": ", failure));
    if (outcome_.verified) outcome_.verified = outcome_.failures.empty();
    return Ok();
  }

  // Whether two runs have left the same in what a kernel writes in addition to D.
  static bool SameWritten(const HostOperands& a, const HostOperands& b) {
    return a.block_scale_d.bytes == b.block_scale_d.bytes &&
           std::equal(a.epilogue.begin(), a.epilogue.end(), b.epilogue.begin(), b.epilogue.end(),
                      [](const HostTensor& x, const HostTensor& y) { return x.bytes == y.bytes; });
  }

  void* Workspace() const { return reinterpret_cast<void*>(workspace_->pointer()); }
  bool IsTooBigForTheHost() const { return ProblemFlops(problem_) / 2 > kMaxHostProducts; }
  // Values of users' functions would take too much memory.
  bool TakesSumsOfTheDevice() const { return IsTooBigForTheHost() && !ir::CallsFunctions(problem_); }
  bool ChecksOnHost() const { return settings_.check && (parts_.emulated || !nvrtc_ || measure::NeedsHost(problem_)); }
  Status CheckOnHost(const HostOperands& operands, const DeviceOperands& uploaded, const HostTensor& d) {
    LS_ASSIGN(const auto functions, measure::FunctionEvaluator::Make(engine_, problem_, operands.epilogue));
    const auto evaluate = [&](size_t index, const std::vector<float>& inputs, int64_t count) {
      return functions.Evaluate(index, inputs, count);
    };
    if (nvrtc_) {
      LS_ASSIGN(const auto sums, measure::DeviceSums::Compile(*nvrtc_, parts_.device, problem_));
      LS_ASSIGN(outcome_.comparison, CompareSums(problem_, operands, d, evaluate, [&](const measure::Strip& strip) {
                  return sums.Compute(stream_, uploaded.arguments(), strip);
                }));
      return Ok();
    }
    if (!IsTooBigForTheHost()) {
      LS_ASSIGN(outcome_.comparison, CompareAll(problem_, operands, d, evaluate));
      return Ok();
    }
    LS_ASSIGN(outcome_.comparison, CompareSample(problem_, operands, d, kSamples, settings_.seed, evaluate));
    outcome_.notes.push_back(
        Cat("too big to check completely on the host: ", kSamples, " random elements were checked"));
    return Ok();
  }

  bool NeedsDownload() {
    // The results of rint and users' functions are compared on the host, and those of groups and blocks: if there are
    // many, with sums of the device.
    if (settings_.check && !parts_.emulated && (!measure::NeedsHost(problem_) || TakesSumsOfTheDevice())) {
      auto nvrtc = Nvrtc::Open(settings_.library_directories);
      if (nvrtc) {
        nvrtc_ = std::move(*nvrtc);
      } else {
        outcome_.notes.push_back(Cat(nvrtc.error().message, "; checked on the host instead"));
      }
    }
    return ChecksOnHost() || !settings_.File(OperandRole::kD).empty() ||
           !settings_.File(OperandRole::kBlockScaleD).empty() || settings_.keep_output ||
           (settings_.check && output_.Padded());
  }

  Status Execute(const Plan& plan, const DeviceOperands& operands) {
    LS_TRY(stream_.Synchronize());
    if (parts_.emulated) (void)emulator::TakeReport();
    if (settings_.record_timeline && parts_.emulated) emulator::RecordEvents();
    const auto start = std::chrono::steady_clock::now();
    Status launched = plan.Execute(stream_.handle(), operands.arguments(), Workspace());
    if (launched) launched = stream_.Synchronize();
    if (!parts_.emulated) return launched;
    outcome_.emulate_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    emulator::Report report = emulator::TakeReport();
    outcome_.events = emulator::TakeEvents();
    if (!launched && report.faults.empty()) return launched;
    if (!report.faults.empty()) {
      return MakeError(ErrorCode::kWrongResult, Cat("the kernel stopped: ", report.faults.front().Print()));
    }
    const bool fast = report.arithmetic == emulator::SumArithmetic::kFast;
    outcome_.arithmetic = ArithmeticName(fast ? Arithmetic::kFast : Arithmetic::kHardware);
    if (fast) outcome_.notes.push_back("arithmetic: fast: the emulator's sums are plain f32, not the tensor core's");
    outcome_.counters = std::move(report.counters);
    outcome_.hazards.emplace();
    for (const emulator::Hazard& hazard : report.hazards) outcome_.hazards->push_back(hazard.Print());
    outcome_.policies = report.PolicyUses();
    for (const std::string& use : *outcome_.policies) outcome_.notes.push_back(Cat("policy ", use));
    return Ok();
  }

  Status Check(const HostOperands& operands, const DeviceOperands& uploaded, const HostTensor& d) {
    if (!ChecksOnHost()) {
      LS_ASSIGN(outcome_.comparison, CompareOnDevice(*nvrtc_, parts_.device, stream_, problem_, uploaded.arguments()));
    } else {
      LS_TRY(CheckOnHost(operands, uploaded, d));
    }
    if (d.bytes.empty()) return Ok();
    if (auto overwritten = FindOverwrittenPadding(d)) outcome_.failures.push_back(std::move(*overwritten));
    for (const HostTensor& operand : operands.epilogue) {
      if (auto overwritten = FindOverwrittenPadding(operand)) outcome_.failures.push_back(std::move(*overwritten));
    }
    return Ok();
  }

  Status Time(const Plan& plan, const DeviceOperands& operands) {
    std::vector<Contender> contenders = {
        [&](const Arguments& arguments) { return plan.Execute(stream_.handle(), arguments, Workspace()); }};
    if (settings_.vs) {
      auto calls = measure::OpenPeer(*settings_.vs, settings_.library_directories, parts_.device, stream_, problem_,
                                     operands.arguments());
      if (!calls) {
        outcome_.notes.push_back(calls.error().message);
      } else {
        measure::PeerCall& usual = calls->front();
        contenders.push_back(std::move(usual.call));
        outcome_.notes.insert(outcome_.notes.end(), usual.notes.begin(), usual.notes.end());
      }
    }
    for (Contender& contender : contenders) contender = InARow(std::move(contender), settings_.row);
    LS_ASSIGN(std::vector<double> medians,
              MedianMicroseconds(parts_.device, stream_, operands, contenders, settings_.repeat));
    for (double& median : medians) median /= settings_.row;
    outcome_.time_us = medians[0];
    if (medians.size() > 1)
      (*settings_.vs == measure::Peer::kCublas ? outcome_.cublas_us : outcome_.cudnn_us) = medians[1];
    return Ok();
  }

  // Times the plan interleaved with one whose kernel has stamps, and keeps the records of the last execution.
  Status RunStamped(const Plan& plan, const DeviceOperands& operands) {
    LS_ASSIGN(StampedPlan stamped, Engine::Parts::MakeStampedPlan(engine_, problem_, settings_.constraint));
    LS_ASSIGN(const device::DeviceBuffer memory,
              device::DeviceBuffer::Allocate(parts_.device.context(), stamped.plan.workspace_bytes()));
    LS_TRY(memory.FillBytes(stream_, 0));
    const auto calls_of = [&](const Plan& called, void* workspace) -> Contender {
      return
          [&, workspace](const Arguments& arguments) { return called.Execute(stream_.handle(), arguments, workspace); };
    };
    LS_ASSIGN(const std::vector<double> medians,
              MedianMicroseconds(
                  parts_.device, stream_, operands,
                  {calls_of(plan, Workspace()), calls_of(stamped.plan, reinterpret_cast<void*>(memory.pointer()))},
                  settings_.repeat));
    StampedRun run{.program = std::move(stamped.program), .plain_us = medians[0], .stamped_us = medians[1]};
    for (const compiler::StampRegion& region : stamped.regions) {
      run.records.emplace_back(region.bytes);
      LS_TRY(memory.CopyToHost(stream_, run.records.back().data(), region.bytes, region.begin));
    }
    LS_TRY(stream_.Synchronize());
    outcome_.stamped = std::move(run);
    return Ok();
  }

  // So many calls in place of one, on the same operands.
  static Contender InARow(Contender call, int calls) {
    return [call = std::move(call), calls](const Arguments& arguments) -> Status {
      for (int i = 0; i < calls; ++i) LS_TRY(call(arguments));
      return Ok();
    };
  }

  void Judge() {
    if (outcome_.hazards && !outcome_.hazards->empty()) {
      outcome_.failures.push_back(Cat(outcome_.hazards->size(), " hazards, first: ", outcome_.hazards->front()));
    }
    if (!settings_.check) return;
    const Comparison& comparison = *outcome_.comparison;
    if (comparison.not_finite == 0) outcome_.max_rel_err = comparison.RelativeError();
    if (auto failure = measure::FailureOf(comparison, problem_, parts_.target)) {
      outcome_.failures.push_back(std::move(*failure));
    }
    outcome_.verified = outcome_.failures.empty();
  }

  const Engine& engine_;
  Engine::Parts& parts_;
  const Problem problem_;
  const StoredTensor output_;
  const RunSettings& settings_;
  device::Stream stream_;
  std::optional<device::DeviceBuffer> workspace_;
  std::optional<Nvrtc> nvrtc_;
  RunOutcome outcome_;
};

}  // namespace

std::optional<double> RunOutcome::Tflops(const Problem& problem) const {
  if (!time_us || *time_us <= 0) return std::nullopt;
  return ProblemFlops(problem) / *time_us * 1e-6;
}

Result<RunOutcome> RunProblem(const Engine& engine, const Problem& problem, const RunSettings& settings) {
  LS_ASSIGN(device::Stream stream, device::Stream::Create(engine.parts().device.context()));
  return ProblemRun(engine, problem, settings, std::move(stream)).Run();
}

}  // namespace laneshift::tools
