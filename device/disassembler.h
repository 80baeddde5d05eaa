// Disassembler: NVIDIA's nvdisasm or cuobjdump as a program: a cubin in, SASS out.
//
// Thread-safety: immutable after Find(); Disassemble() may be called from any thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "laneshift/result.h"

namespace laneshift::device {

class Disassembler {
 public:
  // Either program of CUDA_HOME, else on PATH, else in /usr/local/cuda/bin. kNotFound says what to install.
  static Result<Disassembler> Find();

  const std::string& path() const { return path_; }
  // SASS with the addresses of instructions. kDriver if the program refuses the cubin.
  Result<std::string> Disassemble(std::string_view cubin) const;

 private:
  Disassembler(std::string path, std::string option) : path_(std::move(path)), option_(std::move(option)) {}

  std::string path_, option_;
};

}  // namespace laneshift::device
