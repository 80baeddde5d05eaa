#include "device/disassembler.h"

#include <optional>
#include <utility>

#include "base/cuda_toolkit.h"
#include "base/output_file.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "device/scratch_directory.h"

namespace laneshift::device {
namespace {

constexpr std::chrono::milliseconds kDisassemblyTimeout{120000};

struct DisassemblerRow {
  const char* program;
  std::vector<std::string> options;
};
const DisassemblerRow kDisassemblers[] = {{"nvdisasm", {"-c", "-g"}}, {"cuobjdump", {"-sass"}}};

// "//## File "kernel.tir", line 42": of the instructions after it.
std::optional<int> RemarkedLine(std::string_view line) {
  constexpr std::string_view kLine = ", line ";
  const std::string_view trimmed = base::Trim(line);
  const size_t at = trimmed.find(kLine);
  if (!trimmed.starts_with("//## File ") || at == std::string_view::npos) return std::nullopt;
  const std::string_view number = trimmed.substr(at + kLine.size());
  return static_cast<int>(base::ParseInt(number.substr(0, number.find(' '))).value_or(0));
}

}  // namespace

Sass SplitLineRemarks(std::string_view text) {
  Sass sass;
  int current = 0;
  for (const std::string_view line : base::Split(text, '\n')) {
    if (const auto remarked = RemarkedLine(line)) {
      current = *remarked;
      continue;
    }
    const bool instruction = base::Trim(line).starts_with("/*") && line.find(';') != std::string_view::npos;
    sass.text.append(line).append("\n");
    sass.lines.push_back(instruction ? current : 0);
  }
  return sass;
}

Result<Disassembler> Disassembler::Find() {
  for (const DisassemblerRow& row : kDisassemblers) {
    if (std::string path = base::FindCudaProgram(row.program); !path.empty())
      return Disassembler(std::move(path), row.options);
  }
  return MakeError(ErrorCode::kNotFound,
                   "no nvdisasm or cuobjdump in CUDA_HOME/bin, PATH or /usr/local/cuda/bin; install the CUDA toolkit's "
                   "binary tools (package cuda-nvdisasm, or nvidia-cuda-nvdisasm of PyPI)");
}

Result<Sass> Disassembler::Disassemble(std::string_view cubin) const {
  LS_ASSIGN(const ScratchDirectory scratch, ScratchDirectory::Create());
  const std::string file = scratch.File("kernel.cubin");
  if (const Status written = base::WriteFile(file, cubin); !written)
    return MakeError(ErrorCode::kResourceExhausted, written.error().message);
  std::vector<std::string> argv = {path_};
  argv.insert(argv.end(), options_.begin(), options_.end());
  argv.push_back(file);
  LS_ASSIGN(base::ProgramResult ran, base::RunProgram({.argv = std::move(argv), .timeout = kDisassemblyTimeout}));
  if (!ran.Succeeded() || ran.output.empty())
    return MakeError(ErrorCode::kDriver, base::Cat(path_, " refuses the cubin: ", base::Trim(ran.messages)));
  return SplitLineRemarks(ran.output);
}

}  // namespace laneshift::device
