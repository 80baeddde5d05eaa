#include "runtime/open_device.h"

#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "emulator/driver/driver.h"

namespace laneshift::runtime {
namespace {

using base::Cat;

// The parsed `EngineOptions::device`.
struct Selection {
  enum Kind { kAuto, kCuda, kEmulator } kind = kAuto;
  int ordinal = 0;
};

Result<Selection> ParseSelection(std::string_view text) {
  if (text == "auto") return Selection{};
  if (text == "emulator") return Selection{Selection::kEmulator};
  if (text == "cuda") return Selection{Selection::kCuda};
  if (text.starts_with("cuda:")) {
    const auto ordinal = base::ParseInt(text.substr(5));
    if (ordinal && *ordinal >= 0 && *ordinal < 1024) return Selection{Selection::kCuda, static_cast<int>(*ordinal)};
  }
  return MakeError(ErrorCode::kInvalidArgument,
                   Cat("'", text, "' is not a device; use auto, cuda, cuda:N (N from 0) or emulator"));
}

// The wanted target, or null if any will do.
Result<const target::Target*> WantedTarget(const EngineOptions& options) {
  if (options.target.empty()) return static_cast<const target::Target*>(nullptr);
  auto target = target::FindTarget(options.target);
  // An unknown name is the caller's mistake, not a gap of the device.
  if (!target) return MakeError(ErrorCode::kInvalidArgument, target.error().message);
  return target;
}

Result<OpenedDevice> OpenGpu(int ordinal, const target::Target* wanted) {
  LS_ASSIGN(device::DriverApi loaded, device::LoadCudaDriver());
  auto api = std::make_unique<const device::DriverApi>(loaded);
  LS_ASSIGN(device::Device gpu, device::OpenDevice(*api, ordinal));
  const device::DeviceFacts& facts = gpu.facts();
  LS_ASSIGN(const target::Target* own, target::TargetOfDevice(facts.compute_major, facts.compute_minor));
  if (wanted != nullptr && !wanted->RunsOn(facts.compute_major, facts.compute_minor)) {
    return MakeError(ErrorCode::kUnsupported,
                     Cat("cuda:", ordinal, " (", facts.name, ") runs ", own->name, ", not ", wanted->name,
                         "; leave the target out, or use the emulator for ", wanted->name));
  }
  return OpenedDevice{nullptr, std::move(api), std::move(gpu), own, {}};
}

emulator::Completion CompletionOf(AsyncOrder::Kind kind) {
  switch (kind) {
    case AsyncOrder::kEager:
      return emulator::Completion::kEager;
    case AsyncOrder::kLate:
      return emulator::Completion::kLate;
    case AsyncOrder::kRandom:
      return emulator::Completion::kRandom;
  }
  LS_CHECK(false, "unknown completion order ", static_cast<int>(kind));
}

Status CheckCount(const char* name, int count, int most) {
  if (count >= 0 && count <= most) return Ok();
  return MakeError(ErrorCode::kInvalidArgument, Cat(name, "=", count, " is out of range; use 0 to ", most));
}

Result<emulator::Options> EmulatorOptions(const target::Target& target, const EngineOptions& options) {
  emulator::Options chosen;
  LS_ASSIGN(chosen.profile, emulator::ProfileOfTarget(target.name));
  chosen.completion = CompletionOf(options.async_order.kind);
  chosen.seed = options.async_order.seed;
  // An engine continues after a failed kernel, and reports at once which one failed.
  chosen.faults = emulator::FaultReturn::kAtOnce;
  switch (options.arithmetic) {
    case Arithmetic::kHardware:
      chosen.arithmetic = emulator::SumArithmetic::kHardware;
      break;
    case Arithmetic::kFast:
      chosen.arithmetic = emulator::SumArithmetic::kFast;
      break;
  }
  switch (options.cluster_cancel) {
    case ClusterCancel::kAccept:
      chosen.cancellation = emulator::Cancellation::kAccept;
      break;
    case ClusterCancel::kRefuse:
      chosen.cancellation = emulator::Cancellation::kRefuse;
      break;
  }
  LS_TRY(CheckCount("emulator_threads", options.emulator_threads, emulator::kMostHostThreads));
  LS_TRY(CheckCount("emulator_multiprocessors", options.emulator_multiprocessors, emulator::kMostMultiprocessors));
  chosen.host_threads = options.emulator_threads;
  chosen.multiprocessors = options.emulator_multiprocessors;
  for (const std::string& policy : options.policies) LS_TRY(emulator::SetPolicy(chosen.policies, policy));
  return chosen;
}

// The answers that are not the default ones.
std::string ChosenAnswers(const emulator::Policies& policies) {
  std::vector<std::string> words;
  const auto& table = emulator::PolicyTable();
  for (size_t i = 0; i < table.size(); ++i) {
    const std::string_view answer = emulator::AnswerOf(policies, static_cast<emulator::Policy>(i));
    if (answer != table[i].answers.front()) words.push_back(Cat(table[i].name, "=", answer));
  }
  return base::Join(words, " ");
}

Result<OpenedDevice> OpenEmulator(const EngineOptions& options, const target::Target* wanted) {
  const target::Target& target = wanted != nullptr ? *wanted : target::Targets().front();
  LS_ASSIGN(const emulator::Options chosen, EmulatorOptions(target, options));
  LS_ASSIGN(auto lease, EmulatorLease::Acquire(target, chosen));
  auto api = std::make_unique<const device::DriverApi>(emulator::Driver());
  LS_ASSIGN(device::Device device, device::OpenDevice(*api, 0));
  return OpenedDevice{std::move(lease), std::move(api), std::move(device), &target, ChosenAnswers(chosen.policies)};
}

// The first GPU that runs the wanted target, or any target; nothing if there is none.
std::optional<OpenedDevice> FirstUsableGpu(const target::Target* wanted) {
  for (int ordinal = 0;; ++ordinal) {
    auto gpu = OpenGpu(ordinal, wanted);
    if (gpu) return std::move(*gpu);
    if (gpu.error().code == ErrorCode::kNotFound || ordinal == 64) return std::nullopt;
  }
}

// The emulator is process-wide state; this records who uses it and how.
struct SharedEmulator {
  std::mutex mutex;
  int leases = 0;
  std::string configuration;
};

std::string Describe(const target::Target& target, const emulator::Options& options) {
  const std::string answers = ChosenAnswers(options.policies);
  const bool fast = options.arithmetic == emulator::SumArithmetic::kFast;
  return Cat(target.name, ", async order ", static_cast<int>(options.completion), ":", options.seed, ", ",
             ArithmeticName(fast ? Arithmetic::kFast : Arithmetic::kHardware), " arithmetic, ", options.host_threads,
             " threads, ", options.multiprocessors, " multiprocessors", answers.empty() ? "" : ", ", answers);
}

SharedEmulator& TheEmulator() {
  static SharedEmulator shared;
  return shared;
}

}  // namespace

Result<std::shared_ptr<const EmulatorLease>> EmulatorLease::Acquire(const target::Target& target,
                                                                    const emulator::Options& options) {
  const std::string configuration = Describe(target, options);
  SharedEmulator& shared = TheEmulator();
  const std::lock_guard lock(shared.mutex);
  if (shared.leases > 0 && shared.configuration != configuration) {
    return MakeError(ErrorCode::kUnsupported,
                     Cat("the emulator of this process is in use as ", shared.configuration, " and cannot be ",
                         configuration, " at the same time; close the other engine and its plans first"));
  }
  if (shared.leases == 0) {
    emulator::Configure(options);
    shared.configuration = configuration;
  }
  ++shared.leases;
  return std::shared_ptr<const EmulatorLease>(new EmulatorLease);
}

std::string OpenedDevice::Key() const {
  return policies.empty() ? device.facts().Key() : Cat(device.facts().Key(), "/", policies);
}

EmulatorLease::~EmulatorLease() {
  SharedEmulator& shared = TheEmulator();
  const std::lock_guard lock(shared.mutex);
  --shared.leases;
}

std::optional<EmulatorReport> TakeReport(const OpenedDevice& device) {
  if (device.emulator == nullptr) return std::nullopt;
  emulator::Report report = emulator::TakeReport();
  const bool fast = report.arithmetic == emulator::SumArithmetic::kFast;
  EmulatorReport told{.launches = report.launches,
                      .policies = report.PolicyUses(),
                      .output = std::move(report.output),
                      .arithmetic = fast ? Arithmetic::kFast : Arithmetic::kHardware};
  for (const emulator::Fault& fault : report.faults) told.faults.push_back(fault.Picture());
  for (const emulator::Hazard& hazard : report.hazards) told.hazards.push_back(hazard.Print());
  return told;
}

void SetAsyncOrder(const AsyncOrder& order) { emulator::SetCompletion(CompletionOf(order.kind), order.seed); }

Result<OpenedDevice> OpenSelectedDevice(const EngineOptions& options) {
  LS_ASSIGN(const Selection selection, ParseSelection(options.device));
  LS_ASSIGN(const target::Target* wanted, WantedTarget(options));
  switch (selection.kind) {
    case Selection::kCuda:
      return OpenGpu(selection.ordinal, wanted);
    case Selection::kEmulator:
      return OpenEmulator(options, wanted);
    case Selection::kAuto:
      break;
  }
  if (auto gpu = FirstUsableGpu(wanted)) return std::move(*gpu);
  return OpenEmulator(options, wanted);
}

}  // namespace laneshift::runtime
