// The reference on the host: every product and sum in double precision.
//
// Thread-safety: pure functions; they use all cores.
#pragma once

#include <cstdint>

#include "tools/comparison.h"
#include "tools/host_matrix.h"

namespace laneshift::tools {

// The operands of one problem, on the host. `c` and `bias` may be empty where the problem does not read them.
struct HostOperands {
  HostMatrix a, b, c, bias;
};

// REQUIRES: `problem` is complete and the shapes are its own.
Comparison CompareAll(const GemmProblem& problem, const HostOperands& operands, const HostMatrix& d);

// The same for `samples` elements drawn with `seed`, for problems too big to be computed in whole.
Comparison CompareSample(const GemmProblem& problem, const HostOperands& operands, const HostMatrix& d, int64_t samples,
                         uint64_t seed);

}  // namespace laneshift::tools
