#include "compiler/compile.h"
#include "compiler/emit_program.h"
#include "compiler/nvptx_backend.h"
#include "compiler/ptx_check.h"

namespace laneshift::compiler {

Result<PtxModule> EmitPtx(const ir::Program& program, const target::Target& target, bool with_llvm_ir) {
  const std::string entry = "laneshift_" + program.name;
  LS_ASSIGN(BackendText text, CompileModule(target, with_llvm_ir, [&](llvm::Module& module) {
              EmitProgram(program, target, module, entry);
            }));
  LS_TRY(CheckPtx(text.ptx, program));
  return PtxModule{.ptx = std::move(text.ptx), .entry = entry, .llvm_ir = std::move(text.llvm_ir)};
}

}  // namespace laneshift::compiler
