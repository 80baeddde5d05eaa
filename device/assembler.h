// PtxAssembler: NVIDIA's ptxas as a program: PTX in, cubin and resource figures out.
//
// ptxas is optional: without it the driver compiles PTX when a module is loaded.
// Thread-safety: immutable after Find(); Assemble() may be called from any thread and works in a separate directory.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "laneshift/result.h"

namespace laneshift::device {

struct AssemblerOptions {
  std::string path;  // of ptxas; empty: that of CUDA_HOME, else the first on PATH, else in /usr/local/cuda/bin
  std::chrono::milliseconds timeout{120000};
};

struct AssembleResult {
  std::string cubin;
  // The largest over all functions in the file.
  int registers = 0;
  int stack_bytes = 0;
  int spill_store_bytes = 0;
  int spill_load_bytes = 0;
  int static_smem_bytes = 0;
  std::vector<std::string> advisories;  // ptxas's performance remarks: the lines with a number (C75xx)
  std::string log;                      // everything that ptxas printed
};

// Whether the cubin keeps the lines that .loc names in the PTX; the code is the same.
enum class Lines : uint8_t { kNone, kKept };

class PtxAssembler {
 public:
  // kNotFound if there is no ptxas.
  static Result<PtxAssembler> Find(const AssemblerOptions& options = {});

  const std::string& path() const { return path_; }
  // "ptxas 13.0.88": with the target, this identifies the code that it makes.
  const std::string& id() const { return id_; }
  // The identity of that file, to check that it is still the same: its path, size and date.
  const std::string& file() const { return file_; }
  // `arch` as in "sm_100a". A kernel that spills is assembled again at other levels of register usage, and what spills
  // least is kept: ptxas moves loads up until registers run out, and how far is what the level says.
  // kInvalidArgument carries the first error of a PTX that ptxas refuses; kTimeout.
  Result<AssembleResult> Assemble(std::string_view ptx, std::string_view arch, Lines lines = Lines::kNone) const;

 private:
  PtxAssembler(std::string path, std::string id, std::string file, std::chrono::milliseconds timeout)
      : path_(std::move(path)), id_(std::move(id)), file_(std::move(file)), timeout_(timeout) {}
  // Assembles `source` into `target`, with `options` of ptxas.
  Result<AssembleResult> Run(const std::string& source, const std::string& target, std::string_view arch,
                             const std::vector<std::string>& options) const;

  std::string path_;
  std::string id_;
  std::string file_;
  std::chrono::milliseconds timeout_;
};

// Reads the figures and advisories of `ptxas -v` output into `result`.
void ParseAssemblerLog(std::string_view log, AssembleResult& result);

}  // namespace laneshift::device
