#include "emulator/driver/driver.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "base/text.h"
#include "emulator/driver/driver_functions.h"
#include "emulator/driver/driver_state.h"
#include "emulator/ptx/source_lines.h"

namespace laneshift::emulator {

using namespace device;  // NOLINT: the driver's vocabulary is all of this file's subject

namespace {

// In the order of Profile.
constexpr DeviceProfile kProfiles[] = {
    {"b200", "laneshift emulator (B200 profile)", 10, 0, 148, 132 << 20, 1965000, 3996000, 8192, Chip::kSm100a,
     "sm_100a", true, false},
    {"h200", "laneshift emulator (H200 profile)", 9, 0, 132, 60 << 20, 1980000, 3201000, 6144, Chip::kSm90a, "sm_90a",
     false, false},
    {"b300", "laneshift emulator (B300 profile)", 10, 3, 148, 132 << 20, 1965000, 3996000, 8192, Chip::kSm100a,
     "sm_103a", true, true},
    {"thor", "laneshift emulator (Thor profile)", 11, 0, 20, 32 << 20, 1575000, 4266000, 256, Chip::kSm100a, "sm_110a",
     true, false},
};

}  // namespace

DeviceProfile ProfileOf(const Options& options) {
  DeviceProfile profile = kProfiles[static_cast<size_t>(options.profile)];
  if (options.multiprocessors > 0) profile.multiprocessors = options.multiprocessors;
  return profile;
}

std::string_view ProfileName(Profile profile) { return kProfiles[static_cast<size_t>(profile)].id; }

Result<Profile> ProfileOfTarget(std::string_view target) {
  std::string known;
  for (size_t i = 0; i < std::size(kProfiles); ++i) {
    const std::string_view own = kProfiles[i].target;
    if (target == own ||
        (target.ends_with('f') && target.substr(0, target.size() - 1) == own.substr(0, own.size() - 1)))
      return static_cast<Profile>(i);
    known += base::Cat(known.empty() ? "" : ", ", own);
  }
  return MakeError(ErrorCode::kInvalidArgument,
                   base::Cat("no emulated device runs '", target, "'; those of ", known, " are emulated"));
}

DriverState& TheDriver() {
  // The driver API has no handle for the driver itself: its state is the process's, as with the real one.
  static auto* state = new DriverState;
  return *state;
}

ReturnedFault& FaultOfThisThread() {
  static thread_local ReturnedFault fault;
  return fault;
}

void DriverState::Reset() {
  held.clear();
  executables.clear();
  graphs.clear();
  events.clear();
  streams.clear();
  functions.clear();
  libraries.clear();
  modules.clear();
  pools.clear();
  current_pool = &default_pool;
  contexts.clear();
  memory.reset();
  crew.Forget();
  if (meter == nullptr) meter = std::make_unique<LimitMeter>(options.limits);
  memory = std::make_unique<GlobalMemory>(options.memory_bytes, meter.get());
  sticky = kCuSuccess;
  primary_references = 0;
}

namespace {

CuResult ResultOf(FaultKind kind) {
  switch (kind) {
    case FaultKind::kIllegalAddress:
      return kCuErrorIllegalAddress;
    case FaultKind::kMisalignedAddress:
      return kCuErrorMisalignedAddress;
    case FaultKind::kIllegalInstruction:
      return kCuErrorIllegalInstruction;
    case FaultKind::kInvalidAddressSpace:
      return kCuErrorInvalidAddressSpace;
    case FaultKind::kLaunchFailure:
      return kCuErrorLaunchFailed;
    case FaultKind::kDeadlock:
    case FaultKind::kLivelock:
    case FaultKind::kInstructionLimit:
    case FaultKind::kTimeLimit:
      return kCuErrorLaunchTimeout;
    case FaultKind::kMemoryLimit:
    case FaultKind::kPendingLimit:
    case FaultKind::kOutputLimit:
      return kCuErrorOutOfMemory;
    case FaultKind::kStackLimit:
      return kCuErrorLaunchFailed;
  }
  return kCuErrorUnknown;
}

}  // namespace

CuResult DriverState::RunKernel(const KernelRun& run) {
  // The maximum number of kernels that run concurrently.
  constexpr size_t kMostHeld = 16;
  if (!run.may_overlap || held.size() >= kMostHeld) {
    if (const CuResult bad = RunHeld(); bad != kCuSuccess) return bad;
    if (sticky != kCuSuccess) return sticky;
  }
  held.push_back(run);
  // Where launches return their faults, only one that may begin early itself waits for others: its caller has asked for
  // that.
  const bool waits = options.faults == FaultReturn::kSticky || run.may_overlap;
  return run.function->kernel->lets_others_begin && waits ? kCuSuccess : RunHeld();
}

namespace {

// What a launch took of one host thread, about, in microseconds: from what it did, so that a busy host changes nothing.
double CostOf(const Counters& counters) {
  return 0.1 * static_cast<double>(counters.warp_instructions) + 1e-4 * static_cast<double>(counters.mma_multiplies) +
         1e-4 * static_cast<double>(counters.bytes_global_to_shared + counters.bytes_shared_to_global);
}

// Whether the launches are so small that others would hardly come before this thread is done with them.
bool IsSmall(std::span<const KernelRun> runs) {
  constexpr double kSmall = 40;
  double cost = 0;
  for (const KernelRun& run : runs) {
    if (run.function->cluster_cost < 0) return false;
    cost += run.function->cluster_cost * ClustersOf(run.shape);
  }
  return cost < kSmall;
}

}  // namespace

CuResult DriverState::RunHeld() {
  if (held.empty()) return kCuSuccess;
  const std::vector<KernelRun> runs = std::exchange(held, {});
  const DeviceProfile profile = ProfileOf(options);
  FaultOfThisThread() = {};
  EmulatedMachine machine;
  machine.memory = memory.get();
  machine.hazards = options.hazards == HazardChecks::kOn ? &hazards : nullptr;
  machine.prints = &prints;
  machine.trace = traces ? &trace : nullptr;
  machine.completion = options.completion;
  machine.seed = options.seed;
  machine.arithmetic = options.arithmetic;
  machine.meter = meter.get();
  machine.progress = options.progress;
  const uint64_t printed = std::min<uint64_t>(report.output.size(), options.limits.output);
  prints.Allow(options.limits.output - printed);
  TensorMapEdits map_edits;
  machine.map_edits = &map_edits;
  machine.policies = options.policies;
  machine.accepts_cancellation = options.cancellation == Cancellation::kAccept;
  machine.multiprocessors = static_cast<uint32_t>(profile.multiprocessors);
  machine.has_tensor_memory = profile.tensor_memory;
  machine.has_long_rows = profile.long_rows;
  std::optional<GlobalOrder> order;
  if (machine.hazards != nullptr) machine.order = &order.emplace(*meter);
  std::vector<Launch> batch;
  HazardLog::Modules texts;
  for (const KernelRun& run : runs) {
    const DecodedKernel& kernel = *run.function->kernel;
    Launch& launch = batch.emplace_back(Launch{&machine, &kernel, run.shape, run.parameters, ++launches});
    if (order) launch.first_cluster = order->AddGrid(kernel, run.shape, ClustersOf(run.shape));
    texts[kernel.name] = &run.function->module->syntax();
  }
  static const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  const int threads = options.host_threads > 0 ? options.host_threads : cores;
  hazards.SetModules(std::move(texts));
  const bool observed = IsObserved(runs);
  if (observed) options.observer->Before(Observe(runs));
  meter->BeginLaunch(options.progress != nullptr ? options.progress_after : std::chrono::milliseconds(0));
  const auto begun = std::chrono::steady_clock::now();
  std::vector<GridResult> results = RunGrids(batch, crew, IsSmall(runs) ? 1 : threads);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  meter->EndLaunch();
  NoteUses(runs, results, took.count());
  // What the crew keeps for the next launch must not be what somebody else lacks.
  if (meter->host_bytes() > meter->limits().host_memory / 2) crew.Forget();
  report.launches += runs.size();
  report.arithmetic = options.arithmetic;
  report.output += prints.Take();
  for (Hazard& hazard : hazards.Take()) {
    Notice(hazard.Print());
    if (!hazard.place.ptx.empty()) Notice("    " + hazard.place.ptx);
    report.hazards.push_back(std::move(hazard));
  }
  CuResult returned = kCuSuccess;
  bool faulted = false;
  for (size_t i = 0; i < results.size(); ++i) {
    report.counters.Add(results[i].counters);
    std::optional<Fault>& fault = results[i].fault;
    if (!fault) continue;
    Annotate(runs[i].function->module->syntax(), *fault);
    returned = ReturnFault(*fault);
    faulted = true;
  }
  if (observed) options.observer->After(Observe(runs), faulted);
  return returned;
}

bool DriverState::IsObserved(std::span<const KernelRun> runs) const {
  return options.observer != nullptr && std::any_of(runs.begin(), runs.end(), [this](const KernelRun& run) {
           return options.observer->Wants(run.function->kernel->name);
         });
}

ObservedRun DriverState::Observe(std::span<const KernelRun> runs) const {
  ObservedRun observed;
  const LoadedModule& module = *runs.front().function->module;
  bool of_one_module = true;
  for (const KernelRun& run : runs) {
    of_one_module = of_one_module && run.function->module == &module;
    ObservedLaunch& launch = observed.launches.emplace_back();
    launch.kernel = run.function->kernel->name;
    launch.shape = run.shape;
    launch.may_overlap = run.may_overlap;
    for (const VariableSyntax& parameter : run.function->kernel->syntax->parameters)
      launch.arguments.push_back(std::span(run.parameters).subspan(parameter.offset, parameter.bytes));
  }
  if (of_one_module) observed.ptx = *module.syntax().text;
  observed.changed_variables = module.ChangedVariables();
  for (const Allocation* allocation : memory->All()) {
    if (module.Owns(allocation->address())) continue;
    observed.memory.push_back(
        {allocation->address(), {allocation->At(allocation->address()), allocation->bytes()}, allocation->Touched()});
  }
  return observed;
}

// Kernels that ran concurrently share the time; each gets a part in proportion to its instructions.
void DriverState::NoteUses(std::span<const KernelRun> runs, std::span<const GridResult> results, double seconds) {
  double instructions = 0;
  for (const GridResult& result : results) instructions += static_cast<double>(result.counters.warp_instructions);
  for (size_t i = 0; i < runs.size(); ++i) {
    const Counters& counters = results[i].counters;
    const auto own = static_cast<double>(counters.warp_instructions);
    if (!results[i].fault) runs[i].function->cluster_cost = CostOf(counters) / ClustersOf(runs[i].shape);
    KernelUse& use = report.kernels[runs[i].function->kernel->name];
    ++use.launches;
    use.warp_instructions += counters.warp_instructions;
    use.thread_instructions += counters.thread_instructions;
    use.seconds += instructions > 0 ? seconds * own / instructions : seconds / static_cast<double>(runs.size());
  }
}

CuResult DriverState::ReturnFault(const Fault& fault) {
  Notice(fault.Print());
  if (!fault.place.ptx.empty()) Notice("    " + fault.place.ptx);
  report.faults.push_back(fault);
  const CuResult failure = ResultOf(fault.kind);
  if (options.faults == FaultReturn::kAtOnce) {
    FaultOfThisThread() = {failure, fault.Print()};
    return failure;
  }
  // Like an asynchronous launch: the fault shows at the next synchronisation.
  sticky = failure;
  return kCuSuccess;
}

Result<Profile> ParseProfile(std::string_view name) {
  std::string known;
  for (size_t i = 0; i < std::size(kProfiles); ++i) {
    if (name == kProfiles[i].id) return static_cast<Profile>(i);
    known += base::Cat(known.empty() ? "" : ", ", kProfiles[i].id);
  }
  return MakeError(ErrorCode::kInvalidArgument, base::Cat("unknown device profile '", name, "': ", known));
}

Result<Completion> ParseCompletion(std::string_view name) {
  if (name == "eager") return Completion::kEager;
  if (name == "late") return Completion::kLate;
  if (name == "random") return Completion::kRandom;
  return MakeError(ErrorCode::kInvalidArgument,
                   base::Cat("unknown completion order '", name, "': eager, late or random"));
}

Result<SumArithmetic> ParseArithmetic(std::string_view name) {
  if (name == "hardware") return SumArithmetic::kHardware;
  if (name == "fast") return SumArithmetic::kFast;
  return MakeError(ErrorCode::kInvalidArgument, base::Cat("unknown arithmetic '", name, "': hardware or fast"));
}

void Configure(const Options& options) {
  DriverState& state = TheDriver();
  const std::lock_guard lock(state.mutex);
  // What the old meter has counted goes before it does.
  state.Reset();
  state.memory.reset();
  state.meter.reset();
  state.options = options;
  state.Reset();
  state.report = {};
  state.hazards.SetModules({});
  state.hazards.Take();
  state.hazards.SetRules(options.hazard_rules);
  state.prints.Take();
  state.traces = false;
  state.trace.Take();
  state.launches = 0;
  state.initialised = false;
}

void SetCompletion(Completion completion, uint64_t seed) {
  DriverState& state = TheDriver();
  const std::lock_guard lock(state.mutex);
  (void)state.RunHeld();
  state.options.completion = completion;
  state.options.seed = seed;
  state.launches = 0;
}

Status AllocateAt(uint64_t address, uint64_t bytes) {
  DriverState& state = TheDriver();
  const std::lock_guard lock(state.mutex);
  if (state.memory->AllocateAt(address, bytes) != nullptr) return Ok();
  const bool fits = bytes <= state.memory->capacity() - state.memory->used();
  return fits ? MakeError(ErrorCode::kInvalidArgument,
                          base::Cat("no ", bytes, " bytes of memory can begin at address ", address))
              : MakeError(ErrorCode::kResourceExhausted, base::Cat("the device has no ", bytes, " bytes left"));
}

bool ReadMemory(uint64_t address, void* to, uint64_t bytes) {
  DriverState& state = TheDriver();
  const std::lock_guard lock(state.mutex);
  (void)state.RunHeld();
  const Allocation* allocation = state.memory == nullptr ? nullptr : state.memory->Find(address, bytes);
  if (allocation != nullptr) std::memcpy(to, allocation->At(address), bytes);
  return allocation != nullptr;
}

bool DriverIsUsed() {
  DriverState& state = TheDriver();
  const std::lock_guard lock(state.mutex);
  return state.initialised && state.initialised_by == getpid();
}

Report TakeReport() {
  DriverState& state = TheDriver();
  const std::lock_guard lock(state.mutex);
  (void)state.RunHeld();
  state.report.policies = state.options.policies;
  state.report.unused_suppressions = state.hazards.UnusedSuppressions();
  return std::exchange(state.report, {});
}

void RecordEvents() {
  DriverState& state = TheDriver();
  const std::lock_guard lock(state.mutex);
  state.traces = true;
}

std::vector<EmulatedEvent> TakeEvents() {
  DriverState& state = TheDriver();
  const std::lock_guard lock(state.mutex);
  (void)state.RunHeld();
  return state.trace.Take();
}

DriverApi Driver() {
  DriverState& state = TheDriver();
  {
    const std::lock_guard lock(state.mutex);
    if (!state.memory) state.Reset();
  }
  DriverApi api;
#define CU(member, symbol, parameters) api.member = driver::member;
#include "device/driver_api.def"
  return api;
}

}  // namespace laneshift::emulator
