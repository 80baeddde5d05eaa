#include "laneshift/engine.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "base/host_memory.h"
#include "base/log.h"
#include "base/text.h"
#include "compiler/plan/kernel_plan.h"
#include "compiler/plan/reductions.h"
#include "compiler/plan/stamps.h"
#include "device/launch.h"
#include "ir/conv_problem.h"
#include "ir/element_type.h"
#include "ir/stored_tensor.h"
#include "runtime/argument_roles.h"
#include "runtime/engine_core.h"
#include "runtime/launch_arguments.h"
#include "runtime/schedule_choice.h"
#include "runtime/stopwatch.h"
#include "runtime/tuning.h"
#include "store/location.h"

namespace laneshift {
namespace {

using base::Cat;

runtime::AssemblerChoice AssemblerOf(const EngineOptions& options, bool emulated) {
  using Choice = runtime::AssemblerChoice;
  // The emulator takes PTX and nothing else.
  if (emulated) return {Choice::kDriver, {}};
  switch (options.assembler) {
    case Assembler::kAuto:
      return {Choice::kPtxasOrDriver, options.ptxas};
    case Assembler::kPtxas:
      return {Choice::kPtxas, options.ptxas};
    case Assembler::kDriver:
      return {Choice::kDriver, {}};
  }
  return {};
}

void Describe(const Engine::Parts& parts, const runtime::ChosenSchedule& chosen, const runtime::FoundKernel& found,
              const runtime::PreparedLaunch& product, runtime::PreparedPlan& plan) {
  const device::KernelFacts& facts = product.kernel->kernel.facts();
  const compiler::LaunchGeometry& launch = product.shape;
  plan.report = {.problem = PrintProblem(plan.problem),
                 .target = std::string(parts.target.name),
                 .device = parts.device.facts().name,
                 .schedule = PrintSchedule(chosen.schedule),
                 .choice = chosen.origin,
                 .cache = found.cache,
                 .ptx_ms = found.ptx_ms,
                 .assemble_ms = found.assemble_ms,
                 .registers = facts.registers_per_thread,
                 .local_bytes = facts.local_bytes_per_thread,
                 .smem_bytes = static_cast<int>(launch.smem_bytes) + facts.static_smem_bytes,
                 .threads = static_cast<int>(launch.threads),
                 .grid = launch.grid};
  plan.remembered = plan.report;
  plan.remembered.cache = CacheState::kMemory;
  plan.remembered.ptx_ms = plan.remembered.assemble_ms = 0;
}

// Persistent clusters that the device runs at one time, with one CTA per SM: two would share its tensor core.
Result<int> MostClusters(const device::Device& device, const device::Kernel& kernel, const ir::Program& program) {
  const int sm_count = device.facts().sm_count;
  if (program.ClusterSize() == 1) return sm_count;
  const auto size = static_cast<unsigned>(program.ClusterSize());
  LS_ASSIGN(const int active,
            device::ActiveClusters(kernel, {.grid = {size, 1, 1},
                                            .block = {static_cast<unsigned>(program.threads), 1, 1},
                                            .cluster = {size, 1, 1},
                                            .dynamic_smem_bytes = static_cast<unsigned>(program.smem_bytes)}));
  return std::min(active, std::max(1, sm_count / program.ClusterSize()));
}

// What is known of a main kernel with stamps.
struct Stamped {
  ir::Program program{};
  std::vector<compiler::StampRegion> regions{};
};

// The kernels of one plan, in the order in which they are launched.
class PlanMaker {
 public:
  PlanMaker(runtime::EngineCore& core, const Problem& problem, const runtime::ChosenSchedule& chosen)
      : core_(core), problem_(problem), chosen_(chosen), plan_(std::make_unique<runtime::PreparedPlan>()) {}

  // `stamped`: gets the main kernel with stamps, and what it leaves where; null: it has none.
  Result<std::unique_ptr<runtime::PreparedPlan>> Make(Stamped* stamped) && {
    plan_->problem = problem_;
    plan_->pointers = runtime::PointerRules(problem_);
    const compiler::GridLimits limits{
        .sm_count = core_.parts.device.facts().sm_count,
        .resident_clusters = [this](const ir::Program& program) { return LoadProduct(program); }};
    LS_ASSIGN(compiler::KernelPlan kernels, compiler::PlanKernels(problem_, chosen_.schedule, *chosen_.target, limits));
    if (stamped != nullptr) {
      LS_ASSIGN(stamped->regions, compiler::AddStamps(kernels, *chosen_.target));
      stamped->program = kernels.launches[stamped->regions.front().launch].program;
      LS_ASSIGN(product_, Load(stamped->program));
    }
    for (compiler::PlannedLaunch& launch : kernels.launches) LS_TRY(Add(std::move(launch)));
    plan_->workspace_bytes = kernels.workspace.Bytes();
    LS_ASSIGN(plan_->single, runtime::WithoutWorkspace(chosen_.schedule));
    Describe(core_.parts, chosen_, cost_, plan_->launches[product_at_], *plan_);
    return std::move(plan_);
  }

 private:
  // The kernel of a program; accumulates the cost of making it.
  Result<std::shared_ptr<const runtime::LoadedKernel>> Load(const ir::Program& program) {
    auto found = core_.kernels.Get(program, {PrintProblem(problem_), PrintSchedule(chosen_.schedule)});
    if (!found) return Compiling(found.error());
    cost_.cache = std::max(cost_.cache, found->cache);
    cost_.ptx_ms += found->ptx_ms;
    cost_.assemble_ms += found->assemble_ms;
    return found->loaded;
  }

  // How many clusters run at one time, the driver knows of a loaded kernel.
  Result<int> LoadProduct(const ir::Program& program) {
    LS_ASSIGN(product_, Load(program));
    auto most = MostClusters(core_.parts.device, product_->kernel, program);
    if (!most) return Compiling(most.error());
    return most;
  }

  Error Compiling(const Error& error) const {
    return error.Within(Cat("compiling ", PrintProblem(problem_), " for ", core_.parts.target.name));
  }

  Status Add(compiler::PlannedLaunch launch) {
    runtime::PreparedLaunch prepared{
        .params = std::move(launch.params), .shape = launch.geometry, .overlaps = launch.overlaps};
    if (launch.purpose != compiler::LaunchPurpose::kMain) {
      LS_ASSIGN(prepared.kernel, Load(launch.program));
    } else {
      prepared.kernel = product_;
      // The end of the previous kernel overlaps with the beginning of this one, which may load what is constant.
      const bool constant = ir::ConstantOf(problem_) != ConstantOperand::kNone;
      prepared.overlaps |= constant;
      // Otherwise CTAs of a kernel that may start early would be placed on SMs in pairs, where the previous kernel has
      // left most room. One that loads before that ends has to fit next to it.
      if (constant || core_.overlap == device::GridOverlap::kProgrammatic) {
        const int least = launch.program.LoadsEarly() ? runtime::TwoCtasPerSmBytes(*chosen_.target)
                                                      : runtime::OneCtaPerSmBytes(*chosen_.target);
        prepared.shape.smem_bytes = std::max(prepared.shape.smem_bytes, static_cast<unsigned>(least));
      }
      product_at_ = plan_->launches.size();
    }
    plan_->launches.push_back(std::move(prepared));
    return Ok();
  }

  runtime::EngineCore& core_;
  const Problem& problem_;
  const runtime::ChosenSchedule& chosen_;
  std::unique_ptr<runtime::PreparedPlan> plan_;
  std::shared_ptr<const runtime::LoadedKernel> product_{};
  size_t product_at_ = 0;  // among the launches
  runtime::FoundKernel cost_{.loaded = {}, .cache = CacheState::kMemory};
};

Result<std::unique_ptr<runtime::PreparedPlan>> PreparePlan(runtime::EngineCore& core, const Problem& problem,
                                                           const runtime::ChosenSchedule& chosen,
                                                           Stamped* stamped = nullptr) {
  return PlanMaker(core, problem, chosen).Make(stamped);
}

Status RefuseWhileCaptured(const device::Device& device, CUstream_st* stream, const Problem& problem) {
  if (!runtime::IsCaptured(device, stream)) return Ok();
  return MakeError(ErrorCode::kInvalidArgument,
                   Cat("a stream is being captured and no plan of ", PrintProblem(problem),
                       " is ready; call Prepare() (or MakePlan) before the capture begins"));
}

Error NothingMeasured(const Engine::Parts& parts, const Problem& problem) {
  const std::string text = PrintProblem(problem);
  return MakeError(ErrorCode::kNotFound,
                   Cat("no measured schedule of ", text, " is stored for ", parts.device.facts().name,
                       "; run: laneshift tune \"", text, "\", or open the engine with another miss policy"));
}

Error NeedsWorkspace(const Problem& problem, size_t bytes) {
  const bool orders = compiler::OrdersReductions(problem);
  return MakeError(ErrorCode::kUnsupported,
                   Cat("Run has no workspace, and ", PrintProblem(problem),
                       orders ? " adds its sums in a fixed order in one of " : " packs operands into one of ", bytes,
                       " bytes; make a plan and pass Execute a workspace", orders ? ", or use numerics=default" : ""));
}

// Measures the problem unless another thread or process just has.
Result<runtime::ChosenSchedule> TuneFor(runtime::EngineCore& core, const Problem& problem, bool again,
                                        const std::function<bool()>& stop) {
  const std::lock_guard one_at_a_time(core.tuning);
  LS_ASSIGN(runtime::ChosenSchedule chosen, runtime::ChooseFor(core.parts, problem, {}));
  if (!again && runtime::IsSettled(chosen.origin, core.parts.emulated)) return chosen;
  if (again && chosen.origin == ChoiceOrigin::kMeasured) return chosen;
  if (Status tuned = core.parts.tune(problem, stop); !tuned) {
    return tuned.error().Within(Cat("measuring ", PrintProblem(problem)));
  }
  return runtime::ChooseFor(core.parts, problem, {});
}

constexpr std::chrono::milliseconds kCapturePause{20};

// The job of MissPolicy::kBackground. Failures are logged: the existing plan stays.
void TuneInBackground(runtime::EngineCore& core, const Problem& problem, runtime::PlanSlot& slot,
                      const std::function<bool()>& stop) {
  auto chosen = TuneFor(core, problem, slot.current().report.choice == ChoiceOrigin::kStale, stop);
  if (!chosen) {
    if (!stop()) LS_LOG(kRuntime, warn, chosen.error().message, "; the plan stays as it is");
    return;
  }
  // Loading a kernel would break a capture.
  while (!stop() && runtime::IsCaptured(core.opened.device, nullptr)) std::this_thread::sleep_for(kCapturePause);
  if (stop()) return;
  auto next = PreparePlan(core, problem, *chosen);
  if (!next) {
    LS_LOG(kRuntime, warn, next.error().message, "; the plan stays as it is");
    return;
  }
  if ((*next)->workspace_bytes > slot.workspace_bytes()) {
    LS_LOG(kRuntime, info, PrintProblem(problem),
           ": the faster schedule needs a larger workspace; the next engine will use it");
    return;
  }
  slot.Switch(std::move(*next));
}

// Looks the plan up or makes it.
Result<runtime::FoundPlan> FindOrMakePlan(const std::shared_ptr<runtime::EngineCore>& shared, const Problem& problem,
                                          const ScheduleConstraint& constraint) {
  runtime::EngineCore& core = *shared;
  const runtime::Stopwatch watch;
  if (auto known = core.plans.Find(problem, constraint)) {
    return runtime::FoundPlan{shared, std::move(known)};
  }
  LS_ASSIGN(Problem complete, CompleteProblem(problem));
  if (auto known = core.plans.Find(complete, constraint)) {
    known = core.plans.Insert(problem, complete, constraint, std::move(known));
    return runtime::FoundPlan{shared, std::move(known)};
  }
  LS_TRY(RefuseWhileCaptured(core.opened.device, nullptr, complete));
  complete = core.functions.WithLengths(std::move(complete));
  LS_ASSIGN(runtime::ChosenSchedule chosen, runtime::ChooseFor(core.parts, complete, constraint));
  const bool missed = constraint.fixed == 0 && !runtime::IsSettled(chosen.origin, core.parts.emulated);
  if (missed && core.on_miss == MissPolicy::kError) return NothingMeasured(core.parts, complete);
  if (missed && core.on_miss == MissPolicy::kTune) {
    LS_ASSIGN(chosen, TuneFor(core, complete, /*again=*/false, [] { return false; }));
  }
  LS_ASSIGN(std::unique_ptr<runtime::PreparedPlan> prepared, PreparePlan(core, complete, chosen));
  prepared->report.plan_ms = watch.Milliseconds();
  auto own = std::make_unique<const PlanReport>(prepared->report);
  const auto made = std::make_shared<runtime::PlanSlot>(std::move(prepared));
  std::shared_ptr<runtime::PlanSlot> slot = core.plans.Insert(problem, complete, constraint, made);
  const bool stale = constraint.fixed == 0 && chosen.origin == ChoiceOrigin::kStale;
  if (core.on_miss == MissPolicy::kBackground && (missed || stale) && slot == made) {
    const Status added = core.background.Add(
        [&core, complete, slot](const std::function<bool()>& stop) { TuneInBackground(core, complete, *slot, stop); });
    if (!added)
      LS_LOG(kRuntime, warn, added.error().message, "; the plan of ", PrintProblem(complete), " stays as it is");
  }
  const runtime::PreparedPlan* version = &slot->current();
  return runtime::FoundPlan{shared, std::move(slot), std::move(own), version};
}

// `most`: more is of no use.
int64_t UsefulAlignment(const void* pointer, DataType type, int64_t most = 16) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  if (address == 0) return most;
  const int64_t own = std::min<int64_t>(most, int64_t{1} << std::min(62, std::countr_zero(address)));
  return std::max(own, ir::BytesOf(type, 1));
}

EngineOptions WithStore(EngineOptions options) {
  if (options.store_directory.empty()) options.store_directory = store::UsualDirectory();
  return options;
}

template <typename Product>
Problem WithAlignmentsOf(Product problem, const GemmArguments& given) {
  const auto kind = ir::MmaKindOf(problem.a, problem.b, problem.scale);
  problem.align_a = UsefulAlignment(given.a, problem.a, ir::TmaAlignmentOf(problem.a, kind));
  problem.align_b = UsefulAlignment(given.b, problem.b, ir::TmaAlignmentOf(problem.b, kind));
  problem.align_c = UsefulAlignment(given.c, problem.c);
  problem.align_d = UsefulAlignment(given.d, problem.d);
  return problem;
}

Problem WithAlignmentsOf(ConvProblem problem, const GemmArguments& given) {
  const void* const addresses[] = {given.a, given.b, given.c, given.d};
  for (size_t role = 0; role < ir::kConvOperands; ++role) {
    const ir::ConvFields& fields = ir::FieldsOf(problem.pass, role);
    problem.*fields.align = UsefulAlignment(addresses[role], problem.*fields.type);
  }
  return problem;
}

}  // namespace

Status runtime::Launch(const EngineCore& core, const PreparedLaunch& launch, const GemmArguments& roles,
                       void* workspace, CUstream_st* stream) {
  const device::Device& device = core.opened.device;
  LaunchArguments values;
  LS_TRY(values.Bind(device.api(), launch.params, roles, workspace));
  return device::Launch(launch.kernel->kernel,
                        {.grid = {launch.shape.grid, 1, 1},
                         .block = {launch.shape.threads, 1, 1},
                         .cluster = {launch.shape.cluster, 1, 1},
                         .dynamic_smem_bytes = launch.shape.smem_bytes,
                         .overlap = launch.overlaps ? device::GridOverlap::kProgrammatic : core.overlap},
                        device::Stream::Borrow(device.context(), stream), values.pointers());
}

bool runtime::IsCaptured(const device::Device& device, CUstream_st* stream) {
  const auto capturing = device::Stream::Borrow(device.context(), stream).IsCapturing();
  return capturing && *capturing;
}

runtime::EngineCore::EngineCore(const EngineOptions& options, OpenedDevice device)
    : EngineCore(std::move(device), WithStore(options)) {}

runtime::EngineCore::EngineCore(OpenedDevice device, const EngineOptions& options)
    : opened(std::move(device)),
      store(store::Store::Open({.directory = options.store_directory,
                                .system_path = runtime::SystemStore(options.system_store),
                                .system_kernels = options.system_store_kernels})),
      device_target(opened, store),
      functions(store, *opened.target,
                {.library_directories = options.library_directories,
                 .include_directories = options.include_directories,
                 .nvrtc = options.nvrtc,
                 .program = runtime::ProgramOf(options),
                 .limits = options.function_limits,
                 .in_process = options.functions_in_process}),
      kernels(opened.device, *opened.target, store, functions, AssemblerOf(options, opened.emulator != nullptr)),
      conversions(*opened.target, kernels),
      parts{*opened.api,   opened.device, *opened.target, store,
            device_target, functions,     opened.Key(),   opened.emulator != nullptr},
      on_miss(options.on_miss),
      overlap(options.launch_overlap == LaunchOverlap::kProgrammatic ? device::GridOverlap::kProgrammatic
                                                                     : device::GridOverlap::kNone) {
  parts.find_assembler = [this] { return kernels.FindAssembler(); };
  parts.tune = runtime::MakeTuneFunction(options, parts);
}

std::string_view ChoiceOriginName(ChoiceOrigin origin) {
  switch (origin) {
    case ChoiceOrigin::kRule:
      return "rule";
    case ChoiceOrigin::kPrior:
      return "prior";
    case ChoiceOrigin::kPredicted:
      return "predicted";
    case ChoiceOrigin::kStale:
      return "stale";
    case ChoiceOrigin::kMeasured:
      return "measured";
    case ChoiceOrigin::kGiven:
      return "given";
  }
  return "unknown";
}

std::string_view MissPolicyName(MissPolicy policy) {
  switch (policy) {
    case MissPolicy::kHeuristic:
      return "heuristic";
    case MissPolicy::kTune:
      return "tune";
    case MissPolicy::kBackground:
      return "background";
    case MissPolicy::kError:
      return "error";
  }
  return "unknown";
}

Result<MissPolicy> ParseMissPolicy(std::string_view text) {
  return base::WithinHostMemory([&]() -> Result<MissPolicy> {
    for (const MissPolicy policy :
         {MissPolicy::kHeuristic, MissPolicy::kTune, MissPolicy::kBackground, MissPolicy::kError}) {
      if (text == MissPolicyName(policy)) return policy;
    }
    return MakeError(ErrorCode::kInvalidArgument,
                     Cat("'", text, "' is not a miss policy; use heuristic, tune, background or error"));
  });
}

std::string_view CacheStateName(CacheState state) {
  switch (state) {
    case CacheState::kMemory:
      return "memory";
    case CacheState::kStore:
      return "store";
    case CacheState::kCompiled:
      return "compiled";
  }
  return "unknown";
}

std::string_view ArithmeticName(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::kHardware:
      return "hardware";
    case Arithmetic::kFast:
      return "fast";
  }
  return "unknown";
}

Result<Arithmetic> ParseArithmetic(std::string_view text) {
  return base::WithinHostMemory([&]() -> Result<Arithmetic> {
    for (const Arithmetic arithmetic : {Arithmetic::kHardware, Arithmetic::kFast}) {
      if (text == ArithmeticName(arithmetic)) return arithmetic;
    }
    return MakeError(
        ErrorCode::kInvalidArgument,
        Cat("'", text, "' is not an arithmetic; use hardware (the tensor core's own sums) or fast (plain f32)"));
  });
}

Result<AsyncOrder> ParseAsyncOrder(std::string_view text) {
  return base::WithinHostMemory([&]() -> Result<AsyncOrder> {
    if (text == "eager") return AsyncOrder{AsyncOrder::kEager};
    if (text == "late") return AsyncOrder{AsyncOrder::kLate};
    if (text.starts_with("random:")) {
      const auto seed = base::ParseInt(text.substr(7));
      if (seed && *seed >= 0) return AsyncOrder{AsyncOrder::kRandom, static_cast<uint64_t>(*seed)};
    }
    return MakeError(ErrorCode::kInvalidArgument,
                     Cat("'", text, "' is not an order; use eager, late or random:SEED (SEED a whole number from 0)"));
  });
}

Plan::Plan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;
Plan::~Plan() = default;

const PlanReport& Plan::report() const {
  const runtime::PreparedPlan& plan = impl_->slot->current();
  return impl_->own != nullptr && &plan == impl_->made_for ? *impl_->own : plan.remembered;
}
size_t Plan::workspace_bytes() const { return impl_->slot->workspace_bytes(); }

Status Plan::Execute(CUstream_st* stream, const Arguments& arguments, void* workspace) const {
  return base::WithinHostMemory([&]() -> Status {
    const runtime::PreparedPlan& plan = impl_->slot->current();
    LS_ASSIGN(const GemmArguments roles, runtime::RolesOf(plan.problem, arguments));
    LS_TRY(plan.pointers.CheckPointers(roles));
    LS_TRY(runtime::CheckWorkspace(plan.problem, workspace, plan.workspace_bytes));
    // Asking about memory and encoding a tensor map need a current context too, not only the launch.
    const device::Device& device = impl_->core->opened.device;
    LS_ASSIGN(const device::ActiveContext active, device.Activate());
    LS_TRY(plan.pointers.CheckMemory(device, roles));
    if (plan.workspace_bytes > 0) LS_TRY(runtime::CheckMemory(device, "workspace", workspace, plan.workspace_bytes));
    for (const runtime::PreparedLaunch& launch : plan.launches)
      LS_TRY(runtime::Launch(*impl_->core, launch, roles, workspace, stream));
    return Ok();
  });
}

Engine::Engine(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

Result<Engine> Engine::Open(const EngineOptions& options) {
  return base::WithinHostMemory([&]() -> Result<Engine> {
    LS_ASSIGN(runtime::OpenedDevice device, runtime::OpenSelectedDevice(options));
    return Engine(std::make_shared<Impl>(options, std::move(device)));
  });
}

Engine Engine::Parts::OpenOn(const EngineOptions& options, runtime::OpenedDevice device) {
  return Engine(std::make_shared<Impl>(options, std::move(device)));
}

Result<StampedPlan> Engine::Parts::MakeStampedPlan(const Engine& engine, const Problem& problem,
                                                   const ScheduleConstraint& constraint) {
  return base::WithinHostMemory([&]() -> Result<StampedPlan> {
    runtime::EngineCore& core = *engine.impl_;
    LS_ASSIGN(Problem complete, CompleteProblem(problem));
    complete = core.functions.WithLengths(std::move(complete));
    LS_ASSIGN(const runtime::ChosenSchedule chosen, runtime::ChooseFor(core.parts, complete, constraint));
    Stamped stamped;
    LS_ASSIGN(std::unique_ptr<runtime::PreparedPlan> prepared, PreparePlan(core, complete, chosen, &stamped));
    runtime::FoundPlan found{engine.impl_, std::make_shared<runtime::PlanSlot>(std::move(prepared))};
    return StampedPlan{.plan = Plan(std::make_shared<const Plan::Impl>(Plan::Impl{std::move(found)})),
                       .program = std::move(stamped.program),
                       .regions = std::move(stamped.regions)};
  });
}

Result<Plan> Engine::MakePlan(const Problem& problem, const ScheduleConstraint& constraint) const {
  return base::WithinHostMemory([&]() -> Result<Plan> {
    LS_ASSIGN(runtime::FoundPlan found, FindOrMakePlan(impl_, problem, constraint));
    return Plan(std::make_shared<const Plan::Impl>(Plan::Impl{std::move(found)}));
  });
}

Status Engine::Prepare(std::span<const Problem> problems) const {
  return base::WithinHostMemory([&]() -> Status {
    for (const Problem& problem : problems) {
      auto plan = MakePlan(problem);
      if (!plan) return plan.error().Within(Cat("preparing ", PrintProblem(problem)));
      impl_->plans.Pin(problem, {});
    }
    return Ok();
  });
}

Result<Problem> Engine::ReadProblem(std::string_view text) const {
  return base::WithinHostMemory([&] { return impl_->functions.ReadProblem(text); });
}

Result<EpilogueStep> Engine::MakeStep(const FunctionSource& source) const {
  return base::WithinHostMemory([&]() -> Result<EpilogueStep> {
    LS_ASSIGN(FunctionCall call, impl_->functions.Find(source));
    return EpilogueStep{.kind = EpilogueKind::kFunction, .function = FunctionStep(std::move(call))};
  });
}

void Engine::FinishTuning() const { impl_->background.Finish(); }

Status Engine::Run(const Problem& problem, CUstream_st* stream, const Arguments& arguments) const {
  return base::WithinHostMemory([&]() -> Status {
    LS_ASSIGN(const GemmArguments roles, runtime::RolesOf(problem, arguments));
    const Problem aligned = std::visit([&](const auto& kind) { return WithAlignmentsOf(kind, roles); }, problem);
    const auto make = [&](const ScheduleConstraint& constraint) -> Result<Plan> {
      if (impl_->plans.Find(aligned, constraint) == nullptr) {
        LS_TRY(RefuseWhileCaptured(impl_->opened.device, stream, aligned));
      }
      return MakePlan(aligned, constraint);
    };
    LS_ASSIGN(Plan plan, make({}));
    // Not needed here.
    if (plan.workspace_bytes() > 0) {
      auto without = make(plan.impl_->slot->current().single);
      // Gradients of convolutions that pack operands have no other schedule.
      if (!without && without.error().code == ErrorCode::kUnsupported)
        return NeedsWorkspace(aligned, plan.workspace_bytes());
      LS_ASSIGN(plan, std::move(without));
    }
    if (plan.workspace_bytes() > 0) return NeedsWorkspace(aligned, plan.workspace_bytes());
    return plan.Execute(stream, arguments);
  });
}

std::optional<EmulatorReport> Engine::TakeReport() const { return runtime::TakeReport(impl_->opened); }

std::string Engine::device_name() const { return impl_->opened.device.facts().name; }
std::string Engine::target() const { return std::string(impl_->opened.target->name); }

std::vector<std::string> Engine::warnings() const { return impl_->store.Stat().warnings; }

Engine::Parts& Engine::parts() const { return impl_->parts; }

}  // namespace laneshift
