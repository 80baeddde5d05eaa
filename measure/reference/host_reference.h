// The reference on the host: every product and sum in double precision.
//
// Thread-safety: pure functions; they use all cores.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "measure/reference/comparison.h"
#include "measure/reference/host_tensor.h"

namespace laneshift::measure {

// The operands of one problem, on the host, by role: x, w and z of a convolution are a, b and c. Operands that the
// problem does not read may be empty.
struct HostOperands {
  HostTensor a, b, c, bias, scale_a{}, scale_b{}, scale_d{}, tensor_scale_a{}, tensor_scale_b{}, group_offsets{},
      group_sizes{}, block_scale_d{}, metadata_a{}, a_row_indices{}, d_row_indices{};
  std::vector<HostTensor> epilogue{};  // its operands, in order; those that it writes hold the kernel's results, and so
                                       // does block_scale_d

  // The operand of a role; null for D.
  const HostTensor* Of(OperandRole role) const;
  HostTensor* Of(OperandRole role) { return const_cast<HostTensor*>(std::as_const(*this).Of(role)); }

  // With the problem's shapes, by HostTensor::Random; rows of groups by GroupSizes::kRandom, index vectors by
  // RandomRowIndices.
  static HostOperands Random(const Problem& problem, uint64_t seed);
  static std::vector<HostTensor> RandomEpilogue(const Problem& problem, uint64_t seed);
};

// Users' functions of an epilogue on values of the reference: of the index-th one, [parameter][element] to
// [result][element] (measure/reference/function_evaluator.h).
using EvaluateFunction =
    std::function<Result<std::vector<float>>(size_t index, const std::vector<float>& inputs, int64_t count)>;

// Some rows of one product of the batch (of a grouped GEMM of the group).
struct Strip {
  int64_t batch = 0, first_row = 0, rows = 0;
  int64_t scale_shift = 0;         // of a group (ScaleShiftsOfGroups)
  int64_t first_k = 0, depth = 0;  // its part of K
};
// Of each element of a strip the sum of its products and that of their magnitudes, in double precision: row-major, all
// columns of the product, in the order in which the epilogue joins them.
struct StripSums {
  std::vector<double> sums, magnitudes;
};
// Computes them elsewhere than on the host (measure/reference/device_sums.h).
using SumStrip = std::function<Result<StripSums>(const Strip& strip)>;

// REQUIRES: `problem` is complete and the shapes match it. Users' functions of the epilogue are evaluated by
// `evaluate`, whose errors are returned.
Result<Comparison> CompareAll(const Problem& problem, const HostOperands& operands, const HostTensor& d,
                              const EvaluateFunction& evaluate);
// The same with sums from `sum_strip`, whose errors are returned, instead of the host's.
Result<Comparison> CompareSums(const Problem& problem, const HostOperands& operands, const HostTensor& d,
                               const EvaluateFunction& evaluate, const SumStrip& sum_strip);
// REQUIRES: the epilogue has none.
Comparison CompareAll(const Problem& problem, const HostOperands& operands, const HostTensor& d);

// The same for `samples` elements drawn with `seed`, for problems too large to compute completely.
Comparison CompareSample(const Problem& problem, const HostOperands& operands, const HostTensor& d, int64_t samples,
                         uint64_t seed);
Result<Comparison> CompareSample(const Problem& problem, const HostOperands& operands, const HostTensor& d,
                                 int64_t samples, uint64_t seed, const EvaluateFunction& evaluate);

}  // namespace laneshift::measure
