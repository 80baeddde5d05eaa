#include "device/disassembler.h"

#include "base/cuda_toolkit.h"
#include "base/output_file.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "device/scratch_directory.h"

namespace laneshift::device {
namespace {

constexpr std::chrono::milliseconds kDisassemblyTimeout{120000};

struct DisassemblerRow {
  const char *program, *option;
};
constexpr DisassemblerRow kDisassemblers[] = {{"nvdisasm", "-c"}, {"cuobjdump", "-sass"}};

}  // namespace

Result<Disassembler> Disassembler::Find() {
  for (const DisassemblerRow& row : kDisassemblers) {
    if (std::string path = base::FindCudaProgram(row.program); !path.empty())
      return Disassembler(std::move(path), row.option);
  }
  return MakeError(ErrorCode::kNotFound,
                   "no nvdisasm or cuobjdump in CUDA_HOME/bin, PATH or /usr/local/cuda/bin; install the CUDA toolkit's "
                   "binary tools (package cuda-nvdisasm, or nvidia-cuda-nvdisasm of PyPI)");
}

Result<std::string> Disassembler::Disassemble(std::string_view cubin) const {
  LS_ASSIGN(const ScratchDirectory scratch, ScratchDirectory::Create());
  const std::string file = scratch.File("kernel.cubin");
  if (const Status written = base::WriteFile(file, cubin); !written)
    return MakeError(ErrorCode::kResourceExhausted, written.error().message);
  LS_ASSIGN(base::ProgramResult ran,
            base::RunProgram({.argv = {path_, option_, file}, .timeout = kDisassemblyTimeout}));
  if (!ran.Succeeded() || ran.output.empty())
    return MakeError(ErrorCode::kDriver, base::Cat(path_, " refuses the cubin: ", base::Trim(ran.messages)));
  return std::move(ran.output);
}

}  // namespace laneshift::device
