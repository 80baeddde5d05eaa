// Cudnn: NVIDIA's convolution library, if installed, as the baseline of `run --vs cudnn`.
//
// Thread-safety: none; one Cudnn, one thread and one stream.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/stream.h"
#include "laneshift/engine.h"
#include "measure/peers/cudnn_convolution.h"

namespace laneshift::measure {

class Cudnn {
 public:
  // Finds cuDNN's best for the problem, a convolution or one of its gradients: builds what its heuristics propose,
  // times each on `arguments` with a cold L2 cache and keeps the fastest. What `problem` computes is overwritten.
  // `scope` says whether one plan computes z, the bias and the epilogue, too. kUnsupported says what is missing.
  // REQUIRES: `arguments` are those of the problem's kind.
  static Result<Cudnn> Open(const std::vector<std::string>& library_directories, const device::Device& device,
                            const device::Stream& stream, const ConvProblem& problem, const Arguments& arguments,
                            cudnn::GraphScope scope);
  // Whether the library can be opened, and its version: "cuDNN 9.19.0 (libcudnn.so.9)".
  static Result<std::string> Probe(const std::vector<std::string>& library_directories);
  Cudnn(Cudnn&&) noexcept;
  Cudnn& operator=(Cudnn&&) noexcept;
  ~Cudnn();

  // Enqueues what the scope has of the problem. The first call with a set of addresses prepares a
  // descriptor for them, later ones only launch. REQUIRES: addresses of the problem that Open was given.
  Status Execute(const Arguments& arguments) const;
  // The chosen plan: "fastest of 14 plans, 2.5 MiB of workspace".
  const std::string& choice() const;

 private:
  struct State;
  explicit Cudnn(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace laneshift::measure
