// Comparison: how far a computed D is from the reference, and which results are correct.
//
// Thread-safety: values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "ir/epilogue_steps.h"
#include "ir/stored_tensor.h"
#include "laneshift/problem.h"
#include "target/target.h"

namespace laneshift::measure {

struct Comparison {
  double error_squares = 0;      // sum of (out - ref)^2 over the elements that are finite
  double reference_squares = 0;  // sum of ref^2
  double rounding_squares = 0;   // sum of (ref rounded to the output type - ref)^2: the error of every kernel
  int64_t compared = 0;
  int64_t not_finite = 0;         // NaN or infinite in D but finite in the reference: wrong, or never written
  int64_t first_not_finite = -1;  // index in D, counted through all dimensions
  int64_t outside = 0;            // beyond every value that the arithmetic allows (docs/numerics.md)
  int64_t first_outside = -1;     // as first_not_finite
  int64_t factors_outside = 0;    // scale factors of blocks of D that the arithmetic does not allow, or that do not pad
  int64_t first_factor = -1;      // the byte of the first of these, in their layout
  int64_t overwritten = 0;        // rows of outputs that belong to no group, and are not as they were
  int64_t first_overwritten = -1;
  double reductions_error = 0;  // ||out - ref|| / ||ref|| of the reduction of the epilogue with the largest error
  std::string reference;        // its origin: "cpu", "cpu, 4096 elements", "nvrtc"

  // ||out - ref|| / ||ref||
  double RelativeError() const {
    if (not_finite > 0) return std::numeric_limits<double>::infinity();
    if (reference_squares == 0) return error_squares == 0 ? 0 : std::numeric_limits<double>::infinity();
    return std::sqrt(error_squares / reference_squares);
  }
  // Below the bound; or, for outputs too few to average their rounding, as good as the reference rounded to the type.
  bool Accepted(double bound) const {
    constexpr double kSlack = 1.05 * 1.05;  // a sum in f32 may fall to the other side of a tie
    return RelativeError() < bound || (not_finite == 0 && error_squares <= kSlack * rounding_squares);
  }
  void Add(const Comparison& part) {
    error_squares += part.error_squares;
    reference_squares += part.reference_squares;
    rounding_squares += part.rounding_squares;
    compared += part.compared;
    not_finite += part.not_finite;
    outside += part.outside;
    if (first_outside < 0 || (part.first_outside >= 0 && part.first_outside < first_outside)) {
      first_outside = part.first_outside;
    }
    factors_outside += part.factors_outside;
    if (first_factor < 0 || (part.first_factor >= 0 && part.first_factor < first_factor)) {
      first_factor = part.first_factor;
    }
    overwritten += part.overwritten;
    if (first_overwritten < 0) first_overwritten = part.first_overwritten;
    reductions_error = std::max(reductions_error, part.reductions_error);
    if (first_not_finite < 0 || (part.first_not_finite >= 0 && part.first_not_finite < first_not_finite)) {
      first_not_finite = part.first_not_finite;
    }
  }
};

// The bound on reductions_error, as a multiple of that on the elements: their errors may have one sign, and add up.
inline constexpr double kReductionsSlack = 4;

// The bound on RelativeError(): the rounding to the output's type, and the bits that the target's tensor core truncates
// from sums of 8-bit products on their way to f32.
double ErrorBound(const Problem& problem, const target::Target& target);

// Whether elements are compared with the range in which a correct kernel may have them, not with a value: if a step
// jumps (rint, users' functions), or if D has too few elements for the errors of approximated functions to average
// out. Only the host's reference has ranges.
bool NeedsRanges(const Problem& problem);
// Whether only the host's reference knows such a problem: ranges, groups of rows, and D in blocks with scale factors. A
// GPU computes its sums (measure/reference/device_sums.h).
bool NeedsHost(const Problem& problem);

// How far a sum in f32 may be from the exact one, as a multiple of the sum of its products' magnitudes, on any target.
double SumErrorFactor(const Problem& problem);
// The largest error of a step's function at x; nothing if it is exact.
double FunctionError(ir::Function function, const Problem& problem, double x);
// How far a sum of `terms` values in f32, in any order that kernels use, may be off, as a multiple of the sum of their
// magnitudes.
double ReductionErrorFactor(double terms);

// Why an output of the problem is wrong, in words; nothing if it is right. REQUIRES: `problem` is complete.
std::optional<std::string> FailureOf(const Comparison& comparison, const Problem& problem,
                                     const target::Target& target);

}  // namespace laneshift::measure
