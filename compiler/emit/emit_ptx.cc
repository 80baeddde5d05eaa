#include <algorithm>
#include <map>
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

// Only some instructions need a newer version of PTX than the target.
int PtxVersionOf(const ir::Program& program, const target::Target& target) {
  int version = program.sparse_a ? target.mma.sparse_ptx_version : target.ptx_version;
  for (const ir::Channel& channel : program.channels) {
    for (const ir::TileSlot& tile : channel.tiles) {
      const DataType type = tile.layout.type;
      if (ir::MetadataBlock::Holds(tile.layout)) continue;
      if (ir::ScaleBlock::Holds(type)) version = std::max(version, target.mma.block_scale_ptx_version);
      if (ir::IsInteger(type) && type != program.operand_type)
        version = std::max(version, target.mma.mixed_integers_ptx_version);
    }
  }
  return version;
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

// The program itself: LLVM gives a function's prologue the line of the function.
constexpr int kProgramLine = 1;

// Text without its locations, with the line that the last location before each of its lines names.
LinedCode SplitLocations(std::string_view located) {
  LinedCode lined;
  lined.located_ptx = located;
  int current = 0;
  for (const std::string_view line : base::Split(located, '\n')) {
    if (const auto of_op = LocatedLine(line)) {
      current = *of_op > kProgramLine ? *of_op : 0;
      continue;
    }
    const std::string_view trimmed = base::Trim(line);
    if (trimmed.starts_with(".file") || trimmed.starts_with("$L__func_") ||
        (trimmed.starts_with("$L__tmp") && trimmed.ends_with(":")))
      continue;
    if (trimmed.starts_with(".section")) break;
    lined.ptx.append(line).append("\n");
    const bool instruction = trimmed.find(';') != std::string_view::npos && !trimmed.starts_with('.');
    lined.ptx_lines.push_back(instruction ? current : 0);
  }
  return lined;
}

// "!12 = !DILocation(line: 42, …": the line of each location.
std::map<std::string_view, int> LinesOfLocations(std::string_view llvm_ir) {
  constexpr std::string_view kLocation = "!DILocation(line: ";
  std::map<std::string_view, int> lines;
  for (const std::string_view line : base::Split(llvm_ir, '\n')) {
    const size_t at = line.find(kLocation), end = line.find(' ');
    if (!line.starts_with('!') || at == std::string_view::npos) continue;
    const std::string_view number = line.substr(at + kLocation.size());
    lines[line.substr(0, end)] =
        static_cast<int>(base::ParseInt(number.substr(0, number.find_first_of(",)"))).value_or(0));
  }
  return lines;
}

// LLVM IR without its debug metadata, with the line of each of its lines.
void SplitMetadata(std::string_view llvm_ir, LinedCode& lined) {
  constexpr std::string_view kAttachment = ", !dbg ";
  const std::map<std::string_view, int> lines = LinesOfLocations(llvm_ir);
  for (const std::string_view line : base::Split(llvm_ir, '\n')) {
    if (line.starts_with('!') && line.find("!DI") != std::string_view::npos) continue;
    const size_t at = line.find(kAttachment);
    int of_op = 0;
    if (at != std::string_view::npos) {
      const std::string_view name = line.substr(at + kAttachment.size());
      const auto found = lines.find(name.substr(0, name.find_first_of(", ")));
      if (found != lines.end()) of_op = found->second;
    }
    std::string text(line.substr(0, at));
    // "define … !dbg !4 {"
    constexpr std::string_view kScope = " !dbg ";
    if (const size_t scope = text.find(kScope); scope != std::string::npos)
      text.erase(scope, text.find(' ', scope + kScope.size()) - scope);
    lined.llvm_ir.append(text).append("\n");
    lined.llvm_lines.push_back(of_op);
  }
}

}  // namespace

Result<PtxModule> EmitPtx(const ir::Program& program, const target::Target& target, const EmitOptions& options) {
  return Emit(program, target, options, nullptr);
}

Result<LinedCode> EmitLinedCode(const ir::Program& program, const target::Target& target, const EmitOptions& options) {
  const OpLines lines = ir::LinesOf(program);
  LS_ASSIGN(const PtxModule located, Emit(program, target, options, &lines));
  LinedCode lined = SplitLocations(located.ptx);
  SplitMetadata(located.llvm_ir, lined);
  return lined;
}

}  // namespace laneshift::compiler
