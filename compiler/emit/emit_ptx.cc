#include "compiler/compile.h"
#include "compiler/emit/emit_program.h"
#include "compiler/emit/nvptx_backend.h"
#include "compiler/emit/ptx_check.h"
#include "compiler/functions/function_table.h"
#include "ir/proof/channel_proof.h"

namespace laneshift::compiler {

Result<PtxModule> EmitPtx(const ir::Program& program, const target::Target& target, const EmitOptions& options) {
  LS_TRY(ir::ProveChannels(program));
  const std::string entry = "laneshift_" + program.name;
  LS_ASSIGN(FunctionTable functions, FunctionTable::Make(program, options.functions));
  LS_ASSIGN(BackendText text, CompileModule(target, options.with_llvm_ir, [&](llvm::Module& module) {
              EmitProgram(program, target, module, entry, functions);
            }));
  LS_TRY(CheckPtx(text.ptx, program));
  return PtxModule{.ptx = functions.Link(text.ptx), .entry = entry, .llvm_ir = std::move(text.llvm_ir)};
}

}  // namespace laneshift::compiler
