#include "compiler/compile.h"
#include "compiler/emit/emit_program.h"
#include "compiler/emit/nvptx_backend.h"
#include "compiler/emit/ptx_check.h"
#include "compiler/functions/function_table.h"
#include "ir/element_type.h"
#include "ir/proof/channel_proof.h"
#include "ir/metadata_block.h"
#include "ir/stored_tensor.h"

namespace laneshift::compiler {
namespace {

// Only instructions of some operand types need a newer version of PTX than the target.
int PtxVersionOf(const ir::Program& program, const target::Target& target) {
  for (const ir::Channel& channel : program.channels) {
    for (const ir::TileSlot& tile : channel.tiles) {
      const DataType type = tile.layout.type;
      if (ir::MetadataBlock::Holds(tile.layout)) continue;
      if (ir::ScaleBlock::Holds(type)) return target.mma.block_scale_ptx_version;
      if (ir::IsInteger(type) && type != program.operand_type) return target.mma.mixed_integers_ptx_version;
    }
  }
  return target.ptx_version;
}

}  // namespace

Result<PtxModule> EmitPtx(const ir::Program& program, const target::Target& target, const EmitOptions& options) {
  LS_TRY(ir::ProveChannels(program));
  const std::string entry = "laneshift_" + program.name;
  LS_ASSIGN(FunctionTable functions, FunctionTable::Make(program, options.functions));
  target::Target versioned = target;
  versioned.ptx_version = PtxVersionOf(program, target);
  LS_ASSIGN(BackendText text, CompileModule(versioned, options.with_llvm_ir, [&](llvm::Module& module) {
              EmitProgram(program, target, module, entry, functions);
            }));
  LS_TRY(CheckPtx(text.ptx, program));
  return PtxModule{.ptx = functions.Link(text.ptx), .entry = entry, .llvm_ir = std::move(text.llvm_ir)};
}

}  // namespace laneshift::compiler
