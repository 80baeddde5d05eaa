#include "runtime/kernel_cache.h"

#include <algorithm>
#include <utility>

#include "base/host_memory.h"
#include "base/log.h"
#include "base/text.h"
#include "compiler/compile.h"
#include "runtime/stopwatch.h"

namespace laneshift::runtime {
namespace {

using base::Cat;

// Longer than any kernel takes: after it the compiling process is assumed to be stuck, and every process compiles for
// itself.
constexpr int kCompileWaitMs = 60000;

// The name after the first `.entry`: the module's entry, whoever wrote the PTX.
Result<std::string> EntryOf(std::string_view ptx) {
  constexpr std::string_view kEntry = ".entry ";
  const size_t at = ptx.find(kEntry);
  if (at == std::string_view::npos) return MakeError(ErrorCode::kCorrupt, "PTX without an .entry");
  const std::string_view rest = ptx.substr(at + kEntry.size());
  return std::string(base::Trim(rest.substr(0, rest.find('('))));
}

}  // namespace

KernelCache::KernelCache(const device::Device& device, const target::Target& target, store::Store& store,
                         nvrtc::FunctionLibrary& functions, AssemblerChoice assembler)
    : device_(device), target_(target), store_(store), functions_(functions), choice_(std::move(assembler)) {}

Result<FoundKernel> KernelCache::Get(const ir::Program& program, const KernelLabel& label) {
  const std::string key = compiler::KernelKey(program);
  std::promise<Outcome> promise;
  Flight flight;
  bool own = false;
  {
    const std::lock_guard lock(mutex_);
    const auto [entry, inserted] = flights_.try_emplace(key);
    if (inserted) entry->second = promise.get_future().share();
    own = inserted;
    flight = entry->second;
  }
  if (!own) {
    Outcome found = flight.get();
    if (found) *found = {.loaded = found->loaded, .cache = CacheState::kMemory};
    return found;
  }
  // If memory runs out, waiters are notified too, and the next one tries again.
  Outcome outcome = base::WithinHostMemory([&] { return Fetch(key, program, label); });
  if (!outcome) {
    const std::lock_guard lock(mutex_);
    flights_.erase(key);
  }
  promise.set_value(std::move(outcome));  // moved, since a copy of an error's text takes memory
  return flight.get();
}

KernelCache::Outcome KernelCache::Fetch(const std::string& key, const ir::Program& program, const KernelLabel& label) {
  auto stored = store_.GetKernel(key);
  if (stored && stored->has_value()) {
    Outcome found = FromStore(**stored, static_cast<unsigned>(program.smem_bytes));
    if (found) return found;
    // A stored kernel that does not load any more is no reason to fail: it is recompiled and replaced.
    LS_LOG(kRuntime, warn, "the stored kernel ", key, " does not load (", found.error().message,
           "); compiling it again");
  }
  // Of all processes that need it, one compiles, and the others find the result.
  const store::FlightLock flight = store_.BeginFlight(Cat("compile ", key), kCompileWaitMs);
  if (flight.waited()) {
    stored = store_.GetKernel(key);
    if (stored && stored->has_value()) {
      Outcome found = FromStore(**stored, static_cast<unsigned>(program.smem_bytes));
      if (found) return found;
    }
  }
  return Compile(key, program, label);
}

KernelCache::Outcome KernelCache::FromStore(const store::KernelRecord& record, unsigned smem_bytes) {
  FoundKernel found{.loaded = nullptr, .cache = CacheState::kStore};
  std::optional<store::CubinRecord> cubin;
  if (!DriverCompiles()) cubin = record.cubin;
  const Stopwatch watch;
  if (!cubin) {
    LS_ASSIGN(cubin, Assemble(record.ptx));
    if (cubin) (void)store_.PutCubin(record.key, cubin->assembler, cubin->bytes);
  }
  LS_ASSIGN(found.loaded, Load(record.ptx, cubin, static_cast<int>(smem_bytes)));
  if (!record.cubin || !cubin) found.assemble_ms = watch.Milliseconds();
  return found;
}

KernelCache::Outcome KernelCache::Compile(const std::string& key, const ir::Program& program,
                                          const KernelLabel& label) {
  FoundKernel found;
  const Stopwatch emission;
  LS_ASSIGN(const compiler::FunctionTexts functions, functions_.TextsOf(program));
  LS_ASSIGN(compiler::PtxModule module, compiler::EmitPtx(program, target_, {.functions = functions}));
  found.ptx_ms = emission.Milliseconds();
  const Stopwatch assembly;
  LS_ASSIGN(std::optional<store::CubinRecord> cubin, Assemble(module.ptx));
  LS_ASSIGN(found.loaded, Load(module.ptx, cubin, program.smem_bytes));
  found.assemble_ms = assembly.Milliseconds();
  LS_LOG(kRuntime, debug, "compiled ", key, ": ", label.problem, ", ", label.schedule);
  auto kept = store_.PutKernel({.key = key,
                                .target = std::string(target_.name),
                                .problem = label.problem,
                                .schedule = label.schedule,
                                .generator = compiler::Generator(),
                                .ptx = std::move(module.ptx),
                                .cubin = std::move(cubin)});
  if (!kept) LS_LOG(kRuntime, warn, "kernel ", key, " is not stored: ", kept.error().message);
  return found;
}

Result<const device::PtxAssembler*> KernelCache::Ptxas() {
  const device::PtxAssembler* none = nullptr;
  if (DriverCompiles()) return none;
  std::call_once(searched_, [this] { assembler_ = device::PtxAssembler::Find({.path = choice_.ptxas}); });
  if (!*assembler_) {
    // A wrong path that was given explicitly is an error; a failed search is not.
    if (choice_.kind == AssemblerChoice::kPtxas || !choice_.ptxas.empty()) {
      return MakeError(ErrorCode::kUnsupported,
                       Cat(assembler_->error().message, "; or let the driver compile the PTX (assembler driver)"));
    }
    return none;
  }
  return &**assembler_;
}

Result<store::AssemblerRecord> KernelCache::FindAssembler() {
  LS_ASSIGN(const device::PtxAssembler* const ptxas, Ptxas());
  if (ptxas == nullptr) return store::AssemblerRecord{.name = "driver"};
  return store::AssemblerRecord{ptxas->id(), ptxas->file()};
}

Result<std::optional<store::CubinRecord>> KernelCache::Assemble(const std::string& ptx) {
  LS_ASSIGN(const device::PtxAssembler* const ptxas, Ptxas());
  if (ptxas == nullptr) return std::optional<store::CubinRecord>();
  LS_ASSIGN(device::AssembleResult result, ptxas->Assemble(ptx, target_.name));
  for (const std::string& line : result.advisories) LS_LOG(kRuntime, warn, "ptxas: ", line);
  return std::optional(store::CubinRecord{ptxas->id(), std::move(result.cubin)});
}

Result<device::Module> KernelCache::LoadModule(const std::string& ptx, const std::optional<store::CubinRecord>& cubin) {
  const device::Context context = device_.context();
  if (!cubin) return device::Module::LoadPtx(context, ptx);
  auto module = device::Module::LoadCubin(context, cubin->bytes);
  if (module || choice_.kind == AssemblerChoice::kPtxas || module.error().code != ErrorCode::kUnsupported)
    return module;
  auto compiled = device::Module::LoadPtx(context, ptx);
  if (!compiled) return compiled.error().Within(Cat(module.error().message, "; from PTX"));
  LS_LOG(kRuntime, info, "the driver takes no cubins of ", cubin->assembler, " and is given PTX (",
         module.error().message, ")");
  takes_cubins_ = false;
  return compiled;
}

Result<std::shared_ptr<const LoadedKernel>> KernelCache::Load(const std::string& ptx,
                                                              const std::optional<store::CubinRecord>& cubin,
                                                              int smem_bytes) {
  LS_ASSIGN(const std::string entry, EntryOf(ptx));
  LS_ASSIGN(device::Module module, LoadModule(ptx, cubin));
  LS_ASSIGN(device::Kernel kernel, module.GetKernel(entry));
  LS_TRY(kernel.AllowDynamicSmem(std::max(smem_bytes, OneCtaPerSmBytes(target_))));
  return std::make_shared<const LoadedKernel>(LoadedKernel{std::move(module), std::move(kernel)});
}

}  // namespace laneshift::runtime
