#include "laneshift/engine.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "autotune/ranking.h"
#include "base/text.h"
#include "device/launch.h"
#include "runtime/argument_pointers.h"
#include "runtime/argument_roles.h"
#include "runtime/engine_core.h"
#include "runtime/launch_arguments.h"
#include "runtime/stopwatch.h"
#include "store/choice_standing.h"

namespace laneshift {
namespace {

using base::Cat;

// Beyond this many the remembered plans are forgotten together; kernels stay.
constexpr size_t kMaxRememberedPlans = 4096;
// No kernel makes use of more than this.
constexpr int64_t kMaxUsefulAlignment = 16;

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

std::string PlanKey(const std::string& problem, const ScheduleConstraint& constraint) {
  // Undecided fields keep their defaults and do not tell constraints apart; the bits say which ones count.
  return Cat(problem, "|", constraint.fixed, "|", PrintSchedule(constraint.value));
}

// A measured or modelled choice of the store, if it is admitted and still builds; else the rule's.
Result<Schedule> ChooseFor(Engine::Parts& parts, const target::Target& target, const Problem& problem,
                           const ScheduleConstraint& constraint) {
  const device::DeviceFacts& facts = parts.device.facts();
  const auto stored = parts.store.GetChoices(PrintProblem(problem), std::string(parts.target.name), parts.device_key);
  const store::Revision revision{Cat(compiler::kGeneratorRevision), facts.Driver()};
  if (const auto picked = stored ? store::PickChoice(*stored, revision) : std::nullopt) {
    const auto parsed = ParseSchedule(picked->record.schedule);
    if (parsed && constraint.Admits(parsed->value) && compiler::ValidateSchedule(problem, parsed->value, target)) {
      return parsed->value;
    }
  }
  return autotune::ChooseSchedule(problem, constraint, target, facts.sm_count);
}

// The schedule, and the target that it is for: one that moves rows in Tensor Memory needs to know how the device does
// that, and no other has to wait for a probe.
struct Chosen {
  Schedule schedule;
  const target::Target* target;
};
Result<Chosen> Choose(Engine::Parts& parts, const Problem& problem, const ScheduleConstraint& constraint) {
  LS_ASSIGN(Schedule schedule, ChooseFor(parts, parts.target, problem, constraint));
  if (schedule.reuse != Reuse::kLaneShift) return Chosen{schedule, &parts.target};
  const target::Target& target = parts.device_target.Get();
  if (target.tensor_facts == parts.target.tensor_facts) return Chosen{schedule, &target};
  auto again = ChooseFor(parts, target, problem, constraint);
  if (again) return Chosen{*again, &target};
  // Where the device is why nothing fits any more, that is the reason to tell.
  LS_TRY(compiler::ValidateSchedule(problem, schedule, target));
  return again.error();
}

// Rules change with versions and are cheap to ask again; they are recorded for people (`laneshift db`), not read back.
void RememberRule(Engine::Parts& parts, const Problem& problem, const Schedule& schedule) {
  (void)parts.store.PutChoice({.problem = PrintProblem(problem),
                               .target = std::string(parts.target.name),
                               .device = parts.device_key,
                               .schedule = PrintSchedule(schedule),
                               .source = store::ChoiceSource::kRule,
                               .generator = Cat(compiler::kGeneratorRevision),
                               .driver = parts.device.facts().Driver()});
}

void Describe(const Engine::Parts& parts, const Schedule& schedule, const runtime::FoundKernel& found,
              runtime::PreparedPlan& plan) {
  const device::KernelFacts& facts = plan.kernel->kernel.facts();
  plan.report = {.problem = PrintProblem(plan.problem),
                 .target = std::string(parts.target.name),
                 .device = parts.device.facts().name,
                 .schedule = PrintSchedule(schedule),
                 .cache = found.cache,
                 .ptx_ms = found.ptx_ms,
                 .assemble_ms = found.assemble_ms,
                 .registers = facts.registers_per_thread,
                 .local_bytes = facts.local_bytes_per_thread,
                 .smem_bytes = static_cast<int>(plan.launch.smem_bytes) + facts.static_smem_bytes,
                 .threads = static_cast<int>(plan.launch.threads),
                 .grid = plan.launch.grid};
}

int64_t UsefulAlignment(const void* pointer, DataType type) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  if (address == 0) return kMaxUsefulAlignment;
  const int64_t own = std::min<int64_t>(kMaxUsefulAlignment, int64_t{1} << std::min(62, std::countr_zero(address)));
  return std::max(own, DataTypeBytes(type));
}

Problem WithAlignmentsOf(GemmProblem problem, const GemmArguments& given) {
  problem.align_a = UsefulAlignment(given.a, problem.a);
  problem.align_b = UsefulAlignment(given.b, problem.b);
  problem.align_c = UsefulAlignment(given.c, problem.c);
  problem.align_d = UsefulAlignment(given.d, problem.d);
  return problem;
}

Problem WithAlignmentsOf(ConvProblem problem, const GemmArguments& given) {
  problem.align_x = UsefulAlignment(given.a, problem.x);
  problem.align_w = UsefulAlignment(given.b, problem.w);
  problem.align_z = UsefulAlignment(given.c, problem.z);
  problem.align_y = UsefulAlignment(given.d, problem.y);
  return problem;
}

}  // namespace

runtime::EngineCore::EngineCore(const EngineOptions& options, OpenedDevice device)
    : opened(std::move(device)),
      store(store::Store::Open({.directory = options.store_directory})),
      device_target(opened, store),
      kernels(opened.device, *opened.target, store, AssemblerOf(options, opened.emulator != nullptr)),
      parts{
          *opened.api, opened.device, *opened.target, store, device_target, opened.Key(), opened.emulator != nullptr} {}

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
  for (const Arithmetic arithmetic : {Arithmetic::kHardware, Arithmetic::kFast}) {
    if (text == ArithmeticName(arithmetic)) return arithmetic;
  }
  return MakeError(
      ErrorCode::kInvalidArgument,
      Cat("'", text, "' is not an arithmetic; use hardware (the tensor core's own sums) or fast (plain f32)"));
}

Result<AsyncOrder> ParseAsyncOrder(std::string_view text) {
  if (text == "eager") return AsyncOrder{AsyncOrder::kEager};
  if (text == "late") return AsyncOrder{AsyncOrder::kLate};
  if (text.starts_with("random:")) {
    const auto seed = base::ParseInt(text.substr(7));
    if (seed && *seed >= 0) return AsyncOrder{AsyncOrder::kRandom, static_cast<uint64_t>(*seed)};
  }
  return MakeError(ErrorCode::kInvalidArgument,
                   Cat("'", text, "' is not an order; use eager, late or random:SEED (SEED a whole number from 0)"));
}

Plan::Plan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;
Plan::~Plan() = default;

const PlanReport& Plan::report() const { return impl_->report; }
size_t Plan::workspace_bytes() const { return 0; }

Status Plan::Execute(CUstream_st* stream, const Arguments& arguments, void* /*workspace: none is needed yet*/) const {
  const runtime::PreparedPlan& plan = *impl_->prepared;
  LS_ASSIGN(const GemmArguments roles, runtime::RolesOf(plan.problem, arguments));
  LS_TRY(runtime::CheckPointers(plan.problem, arguments));
  const device::Device& device = impl_->core->opened.device;
  // Encoding a tensor map needs a current context too, not only the launch.
  LS_ASSIGN(const device::ActiveContext active, device.Activate());
  runtime::LaunchArguments values;
  LS_TRY(values.Bind(device.api(), plan.params, roles));
  return device::Launch(plan.kernel->kernel,
                        {.grid = {plan.launch.grid, 1, 1},
                         .block = {plan.launch.threads, 1, 1},
                         .cluster = {},
                         .dynamic_smem_bytes = plan.launch.smem_bytes},
                        device::Stream::Borrow(device.context(), stream), values.pointers());
}

Engine::Engine(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

Result<Engine> Engine::Open(const EngineOptions& options) {
  LS_ASSIGN(runtime::OpenedDevice device, runtime::OpenSelectedDevice(options));
  return Engine(std::make_shared<Impl>(options, std::move(device)));
}

Result<Plan> Engine::MakePlan(const Problem& problem, const ScheduleConstraint& constraint) const {
  const runtime::Stopwatch watch;
  LS_ASSIGN(const Problem complete, CompleteProblem(problem));
  const std::string text = PrintProblem(complete);
  const std::string key = PlanKey(text, constraint);
  std::shared_ptr<const runtime::PreparedPlan> known;
  {
    const std::lock_guard lock(impl_->plans_mutex);
    if (const auto found = impl_->plans.find(key); found != impl_->plans.end()) known = found->second;
  }
  if (known != nullptr) {
    PlanReport report = known->report;
    report.cache = CacheState::kMemory;
    report.ptx_ms = report.assemble_ms = 0;
    report.plan_ms = watch.Milliseconds();
    return Plan(std::make_shared<const Plan::Impl>(Plan::Impl{impl_, std::move(known), std::move(report)}));
  }

  LS_ASSIGN(const Chosen chosen, Choose(impl_->parts, complete, constraint));
  const Schedule& schedule = chosen.schedule;
  auto plan = std::make_shared<runtime::PreparedPlan>();
  plan->problem = complete;
  LS_ASSIGN(const ir::Program program, compiler::BuildProgram(complete, schedule, *chosen.target));
  plan->params = compiler::BindParams(complete, schedule, program);
  auto found = impl_->kernels.Get(program, {text, PrintSchedule(schedule)});
  if (!found) return found.error().Within(Cat("compiling ", text, " for ", impl_->parts.target.name));
  plan->kernel = found->loaded;
  plan->launch = compiler::PlanLaunch(complete, schedule, program, impl_->parts.device.facts().sm_count);
  Describe(impl_->parts, schedule, *found, *plan);
  if (found->cache == CacheState::kCompiled && constraint.fixed == 0) RememberRule(impl_->parts, complete, schedule);
  plan->report.plan_ms = watch.Milliseconds();
  {
    const std::lock_guard lock(impl_->plans_mutex);
    if (impl_->plans.size() >= kMaxRememberedPlans) impl_->plans.clear();
    impl_->plans.try_emplace(key, plan);
  }
  PlanReport report = plan->report;
  return Plan(std::make_shared<const Plan::Impl>(Plan::Impl{impl_, std::move(plan), std::move(report)}));
}

Status Engine::Run(const Problem& problem, CUstream_st* stream, const Arguments& arguments) const {
  LS_ASSIGN(const GemmArguments roles, runtime::RolesOf(problem, arguments));
  const Problem aligned = std::visit([&](const auto& kind) { return WithAlignmentsOf(kind, roles); }, problem);
  LS_ASSIGN(const Plan plan, MakePlan(aligned));
  return plan.Execute(stream, arguments);
}

std::string Engine::device_name() const { return impl_->opened.device.facts().name; }
std::string Engine::target() const { return std::string(impl_->opened.target->name); }

std::vector<std::string> Engine::warnings() const { return impl_->store.Stat().warnings; }

Engine::Parts& Engine::parts() const { return impl_->parts; }

}  // namespace laneshift
