// LLVM's NVPTX back end as we use it: set-up once, hardened intrinsics, a small pass pipeline, PTX text.
//
// Thread-safety: Module creation and EmitText may run on any number of threads; each thread keeps its own
// TargetMachine.
#pragma once

#include <functional>
#include <string>

#include "laneshift/result.h"
#include "llvm/IR/Module.h"
#include "target/target.h"

namespace laneshift::compiler {

struct BackendText {
  std::string ptx;
  std::string llvm_ir;  // before the passes; only where asked for
};

// Lets `build` fill a fresh module and turns it into PTX. kInternal if LLVM cannot select an instruction: LLVM reports
// that by a fatal error, which is caught here at the price of what it leaks. So is a lack of host memory, which is
// kResourceExhausted.
Result<BackendText> CompileModule(const target::Target& target, bool with_llvm_ir,
                                  const std::function<void(llvm::Module&)>& build);

}  // namespace laneshift::compiler
