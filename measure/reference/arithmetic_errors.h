// ArithmeticErrors: how far a correct kernel may be from exact arithmetic, in one place. Every number here follows from
// a format, from a rule that a tensor core was seen to obey, or from an error that the PTX ISA manual states;
// docs/numerics.md has the derivations.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/epilogue_steps.h"
#include "laneshift/problem.h"
#include "target/target.h"

namespace laneshift::measure {

// The unit roundoff of f32: one operation errs by at most this part of its result.
inline constexpr double kUnitRoundoff = 0x1p-24;

// Half of the last place of the type at `value`: what rounding to nearest may change. 0 for integers.
double HalfPlace(DataType type, double value);

// The least normal number of an operand's type. A tensor core takes smaller ones for as large when it cuts addends.
double LeastNormal(DataType type);

// How far a sum of products may be from the exact one, as a multiple of the sum of the products' magnitudes, on a
// tensor core that keeps an f32; operands that are not normal count as if they were.
double SumErrorFactor(const Problem& problem);

// What the tensor cores with the fewest bits lose of a sum of e4m3 and e5m2 products, as such a multiple, on average
// and with a margin of two: where the products themselves are not at hand. 0 for other operands.
double AverageCutFactor(const Problem& problem);

// A tensor core that keeps fewer bits of sums of e4m3 and e5m2 products, where a kernel for some target uses one:
// every product, and the sum so far, is cut at the same place of each instruction, and the result is cut there again.
struct CutRule {
  int bits;          // fraction bits of the largest addend that are kept, and of the result
  int64_t run;       // most products in one accumulator; then it is added to a sum in f32
  bool consecutive;  // those of a run are consecutive, from a multiple of `run` on
  int64_t segment;   // so many consecutive products, or their last ones, have whole instructions
  bool scaled;       // products have f32 factors here, which the tensor core's have not
  // Normal numbers; the exponent of a smaller one counts as theirs. 0 with factors, where nobody sees which are
  // smaller.
  double least_a, least_b;
};
std::optional<CutRule> CutRuleOf(const Problem& problem);

// Products that one instruction with such a rule adds.
inline constexpr int64_t kCutProducts = 32;

// The largest error of a function of the epilogue, or of a derivative, at x; 0 if it is exact.
double FunctionError(ir::Function function, const Problem& problem, double x);
double DerivativeError(ir::Function function, double x);

// How far a sum of `terms` values in f32, in any order that kernels use, may be off, as a multiple of the sum of their
// magnitudes.
double ReductionErrorFactor(double terms);

// How far the values of D may be from exact ones before they are rounded to the type of D: in the norm, for operands
// whose products have both signs. Relative to the norm of the values, and of each value.
struct ValueErrors {
  double relative = 0, absolute = 0;
};
ValueErrors ValueErrorsOf(const Problem& problem, const target::Target& target);
// The relative one on any target, twice: of values whose sum is compared, of which single ones may be off by more.
double LargestValueError(const Problem& problem);

}  // namespace laneshift::measure
