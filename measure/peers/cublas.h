// Cublas: NVIDIA's GEMM library, if installed, as the baseline of `run --vs cublas`.
//
// Thread-safety: none; one Cublas, one thread and one stream.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/stream.h"
#include "laneshift/engine.h"

namespace laneshift::measure {

class Cublas {
 public:
  // Makes a handle in the device's context that works on `stream`. kUnsupported says what is missing.
  static Result<Cublas> Open(const std::vector<std::string>& library_directories, const device::Device& device,
                             const device::Stream& stream);
  // Whether the library can be opened, and its version: "cuBLAS 13.0.2 (libcublas.so.13)".
  static Result<std::string> Probe(const std::vector<std::string>& library_directories);
  Cublas(Cublas&&) noexcept;
  Cublas& operator=(Cublas&&) noexcept;
  ~Cublas();

  // Enqueues d = alpha a b + beta d: C is D here, and the bias is left out. REQUIRES: `problem` is complete.
  Status Multiply(const GemmProblem& problem, const GemmArguments& arguments) const;

 private:
  struct State;
  explicit Cublas(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace laneshift::measure
