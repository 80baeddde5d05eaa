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
#include "measure/reference/arithmetic_errors.h"
#include "target/target.h"

namespace laneshift::measure {

struct Comparison {
  double error_squares = 0;      // sum of (out - ref)^2 over the elements that are finite
  double reference_squares = 0;  // sum of ref^2
  double rounding_squares = 0;   // sum of (ref rounded to the output type - ref)^2: the error of every kernel
  int64_t compared = 0;
  int64_t ranged = 0;             // of these, compared with the range that the arithmetic allows
  int64_t not_finite = 0;         // NaN or infinite in D but finite in the reference: wrong, or never written
  int64_t first_not_finite = -1;  // index in D, counted through all dimensions
  int64_t outside = 0;            // beyond every value that the arithmetic allows (docs/numerics.md)
  int64_t first_outside = -1;     // as first_not_finite
  int64_t factors_outside = 0;    // scale factors of blocks of D that the arithmetic does not allow, or that do not pad
  int64_t first_factor = -1;      // the byte of the first of these, in their layout
  int64_t overwritten = 0;        // rows of outputs that belong to no group, and are not as they were
  int64_t first_overwritten = -1;
  // ||out - ref|| / ||ref|| of the reduction of the epilogue with the largest error beyond what its additions allow.
  double reductions_error = 0;
  std::string reference;  // its origin: "cpu", "cpu, 4096 elements", "nvrtc"

  // ||out - ref|| / ||ref||
  double RelativeError() const {
    if (not_finite > 0) return std::numeric_limits<double>::infinity();
    if (reference_squares == 0) return error_squares == 0 ? 0 : std::numeric_limits<double>::infinity();
    return std::sqrt(error_squares / reference_squares);
  }
  // ||out - ref|| of a correct kernel at most, whose values are off by `errors` before they are rounded. Where such a
  // value is rounded otherwise than the reference, the two lie on either side of a tie: the element is off by no more
  // than the rounded reference is, and twice the distance of the values.
  double Allowed(const ValueErrors& errors) const {
    return std::sqrt(rounding_squares) + 2 * (errors.relative * std::sqrt(reference_squares) +
                                              errors.absolute * std::sqrt(static_cast<double>(compared)));
  }
  bool Accepted(const ValueErrors& errors) const {
    return not_finite == 0 && std::sqrt(error_squares) <= Allowed(errors);
  }
  void Add(const Comparison& part) {
    error_squares += part.error_squares;
    reference_squares += part.reference_squares;
    rounding_squares += part.rounding_squares;
    compared += part.compared;
    ranged += part.ranged;
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

// Whether elements are compared with the range in which a correct kernel may have them, not with a value: if a step
// jumps (rint, users' functions), or if D has too few elements for the errors of approximated functions to average
// out. Only the host's reference has ranges.
bool NeedsRanges(const Problem& problem);
// Whether only the host's reference knows such a problem: ranges, groups of rows, and D in blocks with scale factors. A
// GPU computes its sums (measure/reference/device_sums.h).
bool NeedsHost(const Problem& problem);

// Why an output of the problem is wrong, in words; nothing if it is right. REQUIRES: `problem` is complete.
std::optional<std::string> FailureOf(const Comparison& comparison, const Problem& problem,
                                     const target::Target& target);

}  // namespace laneshift::measure
