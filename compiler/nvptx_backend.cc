#include "compiler/nvptx_backend.h"

#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "base/check.h"
#include "base/text.h"
#include "compiler/llvm_version.h"
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

// ptxas optimises; here only what makes the text small. O2 made the same machine code and took five times as long.
constexpr const char* kPipeline = "function(sroa,early-cse,simplifycfg)";

// LLVM reports an instruction that it cannot select by its fatal-error handler and would abort the user's process.
struct FatalError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void InitializeOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    llvm::install_fatal_error_handler([](void*, const char* message, bool) { throw FatalError(message); }, nullptr);
    // Loop strength reduction reshapes epilogue loops so that ptxas unrolls them, and costs a quarter of the time.
    auto& options = llvm::cl::getRegisteredOptions();
    const auto lsr = options.find("disable-lsr");
    LS_CHECK(lsr != options.end(), "LLVM has no option disable-lsr");
    static_cast<llvm::cl::opt<bool>*>(lsr->second)->setValue(true);
  });
}

llvm::TargetMachine& MachineFor(const target::Target& target) {
  thread_local std::map<std::string_view, std::unique_ptr<llvm::TargetMachine>> machines;
  std::unique_ptr<llvm::TargetMachine>& machine = machines[target.name];
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

// LLVM 22 models tcgen05.mma as a store to D alone and waits as touching nothing, and would delete or move what depends
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
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  llvm::ModulePassManager passes;
  if (auto error = builder.parsePassPipeline(passes, kPipeline)) {
    return MakeError(ErrorCode::kInternal, "LLVM pass pipeline: " + llvm::toString(std::move(error)));
  }
  passes.run(module, modules);
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
  llvm::LLVMContext context;
  context.setDiscardValueNames(true);
  llvm::Module module("laneshift", context);
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
  llvm::legacy::PassManager codegen;
  if (machine.addPassesToEmitFile(codegen, out, nullptr, llvm::CodeGenFileType::AssemblyFile, /*DisableVerify=*/true)) {
    return MakeError(ErrorCode::kInternal, "the NVPTX back end cannot emit text");
  }
  codegen.run(module);
  text.ptx = std::string(ptx);
  return text;
}

}  // namespace

std::string_view LlvmVersion() { return LLVM_VERSION_STRING; }

Result<BackendText> CompileModule(const target::Target& target, bool with_llvm_ir,
                                  const std::function<void(llvm::Module&)>& build) {
  InitializeOnce();
  try {
    return Compile(target, with_llvm_ir, build);
  } catch (const FatalError& fatal) {
    return MakeError(ErrorCode::kInternal, Cat("LLVM: ", fatal.what()));
  }
}

}  // namespace laneshift::compiler
