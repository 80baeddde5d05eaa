#include "compiler/emit/nvptx_backend.h"

#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "base/host_memory.h"
#include "base/text.h"
#include "compiler/emit/llvm_version.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"

extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace laneshift::compiler {
namespace {

using base::Cat;

constexpr const char* kTriple = "nvptx64-nvidia-cuda";

// ptxas optimises; these passes only make the text small. O2 made the same machine code and took five times as long.
constexpr const char* kLlvmPasses = "function(sroa,early-cse,simplifycfg)";

// LLVM reports an instruction that it cannot select by its fatal-error handler and would abort the user's process.
struct FatalError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void InitializeOnce() {
  // After running out of memory the next call tries again.
  [[maybe_unused]] static const bool done = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    llvm::install_bad_alloc_error_handler([](void*, const char*, bool) { throw std::bad_alloc(); }, nullptr);
    llvm::install_fatal_error_handler([](void*, const char* message, bool) { throw FatalError(message); }, nullptr);
    // Loop strength reduction reshapes epilogue loops so that ptxas unrolls them, and costs a quarter of the time.
    auto& options = llvm::cl::getRegisteredOptions();
    const auto lsr = options.find("disable-lsr");
    LS_CHECK(lsr != options.end(), "LLVM has no option disable-lsr");
    static_cast<llvm::cl::opt<bool>*>(lsr->second)->setValue(true);
    return true;
  }();
}

// LLVM is built without exceptions. One that passes through it leaves its objects half changed, and destroying those
// could crash; so they are leaked then.
class UnlessUnwinding {
 public:
  template <typename T>
  void operator()(T* object) const {
    if (std::uncaught_exceptions() == before_) delete object;
  }

 private:
  int before_ = std::uncaught_exceptions();
};
template <typename T, typename... Arguments>
std::unique_ptr<T, UnlessUnwinding> MakeLlvm(Arguments&&... arguments) {
  return std::unique_ptr<T, UnlessUnwinding>(new T(std::forward<Arguments>(arguments)...));
}

// By the name of the target and the PTX version.
using Machines = std::map<std::pair<std::string_view, int>, std::unique_ptr<llvm::TargetMachine>>;

Machines& MachinesOfThread() {
  thread_local Machines machines;
  return machines;
}

llvm::TargetMachine& MachineFor(const target::Target& target) {
  std::unique_ptr<llvm::TargetMachine>& machine = MachinesOfThread()[{target.name, target.ptx_version}];
  if (machine == nullptr) {
    const llvm::Triple triple(kTriple);
    std::string error;
    const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(triple, error);
    LS_CHECK(backend != nullptr, "no NVPTX back end: ", error);
    machine.reset(backend->createTargetMachine(triple, std::string(target.name), Cat("+ptx", target.ptx_version), {},
                                               llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::None));
  }
  return *machine;
}

// LLVM 22 models tcgen05.mma as a store only to D and waits as touching nothing, and would delete or move what depends
// on the rest. Declarations are made opaque, so that calls stay where they were written.
void Harden(llvm::Module& module) {
  constexpr std::string_view kPrefixes[] = {"llvm.nvvm.tcgen05.",         "llvm.nvvm.cp.async.bulk.",
                                            "llvm.nvvm.mbarrier.",        "llvm.nvvm.wgmma.",
                                            "llvm.nvvm.fence.",           "llvm.nvvm.setmaxnreg.",
                                            "llvm.nvvm.barrier.cluster.", "llvm.nvvm.clusterlaunchcontrol.try"};
  for (llvm::Function& function : module) {
    if (!function.isIntrinsic()) continue;
    const llvm::StringRef name = function.getName();
    bool asynchronous = false;
    for (const std::string_view prefix : kPrefixes)
      asynchronous |= name.starts_with(llvm::StringRef(prefix.data(), prefix.size()));
    if (!asynchronous) continue;
    function.setMemoryEffects(llvm::MemoryEffects::unknown());
    for (const llvm::Argument& argument : function.args()) {
      function.removeParamAttr(argument.getArgNo(), llvm::Attribute::WriteOnly);
      function.removeParamAttr(argument.getArgNo(), llvm::Attribute::ReadOnly);
    }
    function.removeFnAttr(llvm::Attribute::NoSync);
    function.removeFnAttr(llvm::Attribute::WillReturn);
    function.addFnAttr(llvm::Attribute::Convergent);
  }
}

Status RunPasses(llvm::Module& module, llvm::TargetMachine& machine) {
  struct Passes {
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager graphs;
    llvm::ModuleAnalysisManager modules;
    llvm::ModulePassManager passes;
  };
  const auto held = MakeLlvm<Passes>();
  const auto builder = MakeLlvm<llvm::PassBuilder>(&machine);
  builder->registerModuleAnalyses(held->modules);
  builder->registerCGSCCAnalyses(held->graphs);
  builder->registerFunctionAnalyses(held->functions);
  builder->registerLoopAnalyses(held->loops);
  builder->crossRegisterProxies(held->loops, held->functions, held->graphs, held->modules);
  if (auto error = builder->parsePassPipeline(held->passes, kLlvmPasses)) {
    return MakeError(ErrorCode::kInternal, "LLVM pass pipeline: " + llvm::toString(std::move(error)));
  }
  held->passes.run(module, held->modules);
  return Ok();
}

std::string Print(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, nullptr);
  return text;
}

Result<BackendText> Compile(const target::Target& target, bool with_llvm_ir,
                            const std::function<void(llvm::Module&)>& build) {
  llvm::TargetMachine& machine = MachineFor(target);
  const auto context = MakeLlvm<llvm::LLVMContext>();
  context->setDiscardValueNames(true);
  const auto held = MakeLlvm<llvm::Module>("laneshift", *context);
  llvm::Module& module = *held;
  module.setTargetTriple(llvm::Triple(kTriple));
  module.setDataLayout(machine.createDataLayout());
  build(module);
  Harden(module);
  BackendText text;
  if (with_llvm_ir) text.llvm_ir = Print(module);
  std::string broken;
  llvm::raw_string_ostream complaint(broken);
  if (llvm::verifyModule(module, &complaint)) return MakeError(ErrorCode::kInternal, "broken LLVM IR: " + broken);
  LS_TRY(RunPasses(module, machine));
  llvm::SmallString<0> ptx;
  llvm::raw_svector_ostream out(ptx);
  const auto codegen = MakeLlvm<llvm::legacy::PassManager>();
  if (machine.addPassesToEmitFile(*codegen, out, nullptr, llvm::CodeGenFileType::AssemblyFile,
                                  /*DisableVerify=*/true)) {
    return MakeError(ErrorCode::kInternal, "the NVPTX back end cannot emit text");
  }
  codegen->run(module);
  text.ptx = std::string(ptx);
  return text;
}

}  // namespace

std::string_view LlvmVersion() { return LLVM_VERSION_STRING; }

Result<BackendText> CompileModule(const target::Target& target, bool with_llvm_ir,
                                  const std::function<void(llvm::Module&)>& build) {
  const auto leave_machine = [&] {
    const auto machine = MachinesOfThread().find({target.name, target.ptx_version});
    if (machine != MachinesOfThread().end()) (void)machine->second.release();
  };
  try {
    InitializeOnce();
    return Compile(target, with_llvm_ir, build);
  } catch (const FatalError& fatal) {
    leave_machine();
    return MakeError(ErrorCode::kInternal, Cat("LLVM: ", fatal.what()));
  } catch (const std::bad_alloc&) {
    leave_machine();
    return base::NoHostMemory();
  }
}

}  // namespace laneshift::compiler
