// ProbeKernel: a kernel of compiler/probes/probe_programs.h on a device: loaded, launched and timed.
//
// Thread-safety: none.
#pragma once

#include <cstdint>

#include "device/buffer.h"
#include "device/device.h"
#include "device/module.h"
#include "device/stream.h"
#include "ir/program.h"
#include "laneshift/result.h"
#include "target/target.h"

namespace laneshift::runtime {

// Of the GEMM problem as which a probe is launched.
struct ProbeSize {
  int64_t m = 0, n = 0, k = 0;
};

class ProbeKernel {
 public:
  // Returns the error of `built`. REQUIRES: `device` and `target` outlive the kernel.
  static Result<ProbeKernel> Load(const device::Device& device, const target::Target& target,
                                  Result<ir::Program> built);

  const ir::Program& program() const { return program_; }
  // Enqueues it as `ctas` CTAs that loop over the tiles, on operands of bf16 and an output of f32; operands that a
  // probe does not access may be null.
  Status Launch(const device::Stream& stream, const ProbeSize& size, int ctas, const void* operands, void* sums) const;
  // The shortest of a few runs, in microseconds.
  Result<double> TimeOf(const device::Stream& stream, const ProbeSize& size, int ctas, const void* operands,
                        void* sums) const;
  // Blocks of K that the busiest CTA processes.
  double BlocksOf(const ProbeSize& size, int ctas) const;

 private:
  ProbeKernel(const device::Device& device, ir::Program program, device::Module module, device::Kernel kernel)
      : device_(device), program_(std::move(program)), module_(std::move(module)), kernel_(std::move(kernel)) {}

  const device::Device& device_;
  ir::Program program_;
  device::Module module_;
  device::Kernel kernel_;
};

}  // namespace laneshift::runtime
