#include <optional>

#include "base/text.h"
#include "compiler/compile.h"
#include "compiler/emit/emit_program.h"
#include "compiler/emit/nvptx_backend.h"
#include "compiler/emit/ptx_check.h"
#include "compiler/functions/function_table.h"
#include "compiler/line_table.h"
#include "ir/element_type.h"
#include "ir/metadata_block.h"
#include "ir/program_lines.h"
#include "ir/proof/channel_proof.h"
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

// With `lines`, the text has a .loc before the instructions of an op.
Result<PtxModule> Emit(const ir::Program& program, const target::Target& target, const EmitOptions& options,
                       const OpLines* lines) {
  LS_TRY(ir::ProveChannels(program));
  const std::string entry = "laneshift_" + program.name;
  LS_ASSIGN(FunctionTable functions, FunctionTable::Make(program, options.functions));
  target::Target versioned = target;
  versioned.ptx_version = PtxVersionOf(program, target);
  LS_ASSIGN(BackendText text, CompileModule(versioned, options.with_llvm_ir, [&](llvm::Module& module) {
              EmitProgram(program, target, module, entry, functions, lines);
            }));
  if (lines == nullptr) LS_TRY(CheckPtx(text.ptx, program));
  return PtxModule{.ptx = functions.Link(text.ptx), .entry = entry, .llvm_ir = std::move(text.llvm_ir)};
}

// The line of a directive like "\t.loc\t1 42 0"; nothing if it is another one.
std::optional<int> LocatedLine(std::string_view line) {
  const std::vector<std::string_view> words = base::Words(line);
  if (words.size() < 3 || words[0] != ".loc") return std::nullopt;
  const auto number = base::ParseInt(words[2]);
  return number ? static_cast<int>(*number) : 0;
}

// Text without its locations, with the line that the last location before each of its lines names.
LinedPtx SplitLocations(std::string_view located) {
  LinedPtx lined;
  int current = 0;
  for (const std::string_view line : base::Split(located, '\n')) {
    if (const auto of_op = LocatedLine(line)) {
      current = *of_op;
      continue;
    }
    const std::string_view trimmed = base::Trim(line);
    if (trimmed.starts_with(".file") || trimmed.starts_with("$L__func_") ||
        (trimmed.starts_with("$L__tmp") && trimmed.ends_with(":")))
      continue;
    if (trimmed.starts_with(".section")) break;
    lined.ptx.append(line).append("\n");
    const bool instruction = trimmed.find(';') != std::string_view::npos && !trimmed.starts_with('.');
    lined.program_lines.push_back(instruction ? current : 0);
  }
  return lined;
}

}  // namespace

Result<PtxModule> EmitPtx(const ir::Program& program, const target::Target& target, const EmitOptions& options) {
  return Emit(program, target, options, nullptr);
}

Result<LinedPtx> EmitLinedPtx(const ir::Program& program, const target::Target& target, const EmitOptions& options) {
  const OpLines lines = ir::LinesOf(program);
  LS_ASSIGN(const PtxModule located, Emit(program, target, options, &lines));
  return SplitLocations(located.ptx);
}

}  // namespace laneshift::compiler
