#include "device/assembler.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <utility>

#include "base/cuda_toolkit.h"
#include "base/output_file.h"
#include "base/read_file.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "device/scratch_directory.h"

namespace laneshift::device {
namespace {

using base::Cat;
namespace fs = std::filesystem;

constexpr uint64_t kMaxCubinBytes = uint64_t{1} << 30;

// A lack of space for our own file is not the fault of the PTX.
Status WriteSource(const std::string& path, std::string_view ptx) {
  const Status written = base::WriteFile(path, ptx);
  return written ? Ok() : Status(MakeError(ErrorCode::kResourceExhausted, written.error().message));
}

Result<std::string> ReadOutput(const std::string& path) {
  auto bytes = base::ReadFile(path, kMaxCubinBytes);
  if (!bytes || bytes->empty()) return MakeError(ErrorCode::kDriver, Cat("ptxas left no output in ", path));
  return bytes;
}

// The number right before `unit` in words like "0 bytes stack frame", if they are there.
std::optional<int> CountBefore(std::string_view line, std::string_view unit) {
  size_t at = line.find(unit);
  if (at == std::string_view::npos) return std::nullopt;
  std::vector<std::string_view> before = base::Words(line.substr(0, at));
  if (before.empty()) return std::nullopt;
  std::optional<int64_t> count = base::ParseInt(before.back());
  if (!count) return std::nullopt;
  return static_cast<int>(*count);
}

void KeepLargest(int& figure, std::optional<int> found) { figure = std::max(figure, found.value_or(0)); }

// The first line that says what is wrong, without the temporary file's name.
std::string FirstComplaint(std::string_view log, const std::string& file) {
  for (std::string_view line : base::Split(log, '\n')) {
    if (line.find("error") == std::string_view::npos && line.find("fatal") == std::string_view::npos) continue;
    std::string text(line);
    for (size_t at = text.find(file); at != std::string::npos; at = text.find(file))
      text.replace(at, file.size(), "ptx");
    return text;
  }
  return std::string(base::Trim(log));
}

// "release 13.0, V13.0.88" -> "ptxas 13.0.88".
std::string IdFrom(std::string_view version) {
  for (std::string_view word : base::Words(version)) {
    if (word.size() > 1 && word[0] == 'V' && word[1] >= '0' && word[1] <= '9') return Cat("ptxas ", word.substr(1));
  }
  return {};
}

// The least and the most; without the option ptxas takes 5. Of four kernels of random draws that spilled a few bytes
// two do not at the first, and another one not at the second.
constexpr const char* kOtherRegisterUsageLevels[] = {"0", "10"};
int Spilled(const AssembleResult& result) { return result.spill_store_bytes + result.spill_load_bytes; }

// Links are followed: /usr/local/cuda changes its aim with the toolkit.
std::string DescribeFile(const std::string& path) {
  std::error_code unreadable;
  const std::string real = fs::canonical(path, unreadable);
  struct stat status = {};
  if (real.empty() || stat(real.c_str(), &status) != 0) return path;
  return Cat(real, ", ", status.st_size, " bytes, modified ", status.st_mtim.tv_sec, ".", status.st_mtim.tv_nsec);
}

}  // namespace

void ParseAssemblerLog(std::string_view log, AssembleResult& result) {
  for (std::string_view line : base::Split(log, '\n')) {
    if (line.find("(C75") != std::string_view::npos) result.advisories.emplace_back(base::Trim(line));
    KeepLargest(result.stack_bytes, CountBefore(line, " bytes stack frame"));
    KeepLargest(result.spill_store_bytes, CountBefore(line, " bytes spill stores"));
    KeepLargest(result.spill_load_bytes, CountBefore(line, " bytes spill loads"));
    KeepLargest(result.static_smem_bytes, CountBefore(line, " bytes smem"));
    KeepLargest(result.registers, CountBefore(line, " registers"));
  }
}

Result<PtxAssembler> PtxAssembler::Find(const AssemblerOptions& options) {
  std::string path = options.path.empty() ? base::FindPtxas() : options.path;
  if (path.empty()) {
    return MakeError(ErrorCode::kNotFound,
                     "no ptxas in CUDA_HOME/bin, PATH or /usr/local/cuda/bin; install the CUDA toolkit or let the "
                     "driver compile PTX");
  }
  LS_ASSIGN(base::ProgramResult ran, base::RunProgram({.argv = {path, "--version"}, .timeout = options.timeout}));
  std::string id = IdFrom(ran.output);
  if (!ran.Succeeded() || id.empty()) {
    return MakeError(ErrorCode::kNotFound, Cat(path, " is no ptxas: --version answers with no version"));
  }
  std::string file = DescribeFile(path);
  return PtxAssembler(std::move(path), std::move(id), std::move(file), options.timeout);
}

Result<AssembleResult> PtxAssembler::Assemble(std::string_view ptx, std::string_view arch, Lines lines) const {
  std::vector<std::string> options;
  if (lines == Lines::kKept) options.emplace_back("-lineinfo");
  LS_ASSIGN(ScratchDirectory scratch, ScratchDirectory::Create());
  const std::string source = scratch.File("kernel.ptx"), target = scratch.File("kernel.cubin");
  LS_TRY(WriteSource(source, ptx));
  LS_ASSIGN(AssembleResult best, Run(source, target, arch, options));
  for (const char* level : kOtherRegisterUsageLevels) {
    if (Spilled(best) == 0) break;
    // An assembler that does not know the option has already made the kernel.
    std::vector<std::string> with_level = options;
    with_level.insert(with_level.end(), {"--register-usage-level", level});
    auto other = Run(source, target, arch, with_level);
    if (other && Spilled(*other) < Spilled(best)) best = std::move(*other);
  }
  return best;
}

Result<AssembleResult> PtxAssembler::Run(const std::string& source, const std::string& target, std::string_view arch,
                                         const std::vector<std::string>& options) const {
  std::vector<std::string> argv = {path_, "-v", Cat("-arch=", arch), source, "-o", target};
  argv.insert(argv.end(), options.begin(), options.end());
  LS_ASSIGN(base::ProgramResult ran, base::RunProgram({.argv = std::move(argv), .timeout = timeout_}));
  AssembleResult result;
  result.log = ran.output + ran.messages;
  if (ran.signal != 0) {
    return MakeError(ErrorCode::kDriver, Cat(id_, " was ended by signal ", ran.signal, " on PTX for ", arch));
  }
  if (!ran.Succeeded()) {
    return MakeError(ErrorCode::kInvalidArgument, Cat(id_, " for ", arch, ": ", FirstComplaint(result.log, source)));
  }
  ParseAssemblerLog(result.log, result);
  LS_ASSIGN(result.cubin, ReadOutput(target));
  return result;
}

}  // namespace laneshift::device
