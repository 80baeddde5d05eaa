// CutSums: what a tensor core that keeps few bits of sums (CutRule) may lose of each one.
//
// Whatever the order of the products in a run, an accumulator is between minus the sum of its negative products and the
// sum of its positive ones, so the place of the cut is below a bound that both sums give; and a product loses no more
// at its place than at that bound. docs/numerics.md has the derivation.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "measure/reference/arithmetic_errors.h"

namespace laneshift::measure {

// Columns of B that one call takes at most.
inline constexpr int64_t kCutColumns = 64;

// For the products of a row of A with `columns` columns of B, whose elements are `step` apart: how far below and above
// the exact sums those of a kernel may be.
void CutSums(const CutRule& rule, int64_t depth, const float* a, const float* b, int64_t step, int64_t columns,
             double* below, double* above);

}  // namespace laneshift::measure
