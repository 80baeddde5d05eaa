// Cublaslt: NVIDIA's GEMM through its lower-level interface, which supports 8-bit types and scale factors, and lets the
// caller choose among algorithms.
//
// Thread-safety: none; one Cublaslt, one thread and one stream.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/stream.h"
#include "laneshift/engine.h"

namespace laneshift::measure {

class Cublaslt {
 public:
  // Describes the problem, asks for algorithms, and times them on `arguments` with a cold L2. kUnsupported says what is
  // missing, or that the library has no algorithm for the problem. It supports alpha, beta (of D), per-tensor scale
  // factors, and a bias along n followed by relu or gelu_tanh; other epilogues are left out. REQUIRES: `problem` is
  // complete.
  static Result<Cublaslt> Open(const std::vector<std::string>& library_directories, const device::Device& device,
                               const device::Stream& stream, const GemmProblem& problem,
                               const GemmArguments& arguments);
  Cublaslt(Cublaslt&&) noexcept;
  Cublaslt& operator=(Cublaslt&&) noexcept;
  ~Cublaslt();

  // Enqueues the problem with the fastest algorithm, and with the first one that the library's heuristic names.
  Status MultiplyByBest(const GemmArguments& arguments) const;
  Status MultiplyByFirst(const GemmArguments& arguments) const;
  // "fastest of 8 algorithms, the heuristic's 3rd".
  const std::string& choice() const;
  // Whether it executes the problem's epilogue, and not only the plain GEMM.
  bool fuses() const;

 private:
  struct State;
  explicit Cublaslt(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace laneshift::measure
