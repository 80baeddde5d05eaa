// The reference on the host: every product and sum in double precision.
//
// Thread-safety: pure functions; they use all cores.
#pragma once

#include <cstdint>
#include <vector>

#include "measure/comparison.h"
#include "measure/host_tensor.h"

namespace laneshift::measure {

// The operands of one problem, on the host, by role: x, w and z of a convolution are a, b and c. What the problem does
// not read may be empty.
struct HostOperands {
  HostTensor a, b, c, bias, scale_a{}, scale_b{}, scale_d{};
  std::vector<HostTensor> epilogue{};  // its operands, in order; those that it writes hold what was written

  // The operand of a role; null for D.
  const HostTensor* Of(OperandRole role) const;

  // Of the problem's shapes, by HostTensor::Random.
  static HostOperands Random(const Problem& problem, uint64_t seed);
  static std::vector<HostTensor> RandomEpilogue(const Problem& problem, uint64_t seed);
};

// REQUIRES: `problem` is complete and the shapes are its own.
Comparison CompareAll(const Problem& problem, const HostOperands& operands, const HostTensor& d);

// The same for `samples` elements drawn with `seed`, for problems too big to be computed in whole.
Comparison CompareSample(const Problem& problem, const HostOperands& operands, const HostTensor& d, int64_t samples,
                         uint64_t seed);

}  // namespace laneshift::measure
