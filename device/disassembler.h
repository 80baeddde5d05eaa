// Disassembler: NVIDIA's nvdisasm or cuobjdump as a program: a cubin in, SASS out, with the lines of the source that a
// cubin keeps.
//
// Thread-safety: immutable after Find(); Disassemble() may be called from any thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "laneshift/result.h"

namespace laneshift::device {

struct Sass {
  std::string text;        // with the addresses of instructions
  std::vector<int> lines;  // of each of its lines, that of the source, from 1; 0: none, or cuobjdump cannot say
};

// Takes the remarks of `nvdisasm -g` out of its text.
Sass SplitLineRemarks(std::string_view text);

class Disassembler {
 public:
  // Either program of CUDA_HOME, else on PATH, else in /usr/local/cuda/bin. kNotFound says what to install.
  static Result<Disassembler> Find();

  const std::string& path() const { return path_; }
  // kDriver if the program refuses the cubin.
  Result<Sass> Disassemble(std::string_view cubin) const;

 private:
  Disassembler(std::string path, std::vector<std::string> options)
      : path_(std::move(path)), options_(std::move(options)) {}

  std::string path_;
  std::vector<std::string> options_;
};

}  // namespace laneshift::device
