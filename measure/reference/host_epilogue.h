// The host's reference of an epilogue: in double precision, one element at a time, and the comparison of each
// stored element.
//
// Thread-safety: const methods may be called from any number of threads, for different elements.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/check.h"
#include "ir/block_quantizer.h"
#include "ir/epilogue_steps.h"
#include "measure/reference/arithmetic_errors.h"
#include "measure/reference/comparison.h"
#include "measure/reference/epilogue_reductions.h"
#include "measure/reference/host_reference.h"
#include "measure/reference/product_view.h"
#include "measure/reference/value_range.h"

namespace laneshift::measure {

// The points of a range at which users' functions are evaluated: the value, and both ends.
inline constexpr int64_t kPoints = 3;

// The values of users' functions, which are evaluated in batches: each element runs up to the first function whose
// values are not known yet, leaves its inputs there, and runs again after the evaluation.
class FunctionValues {
 public:
  // `count`: of elements of D.
  FunctionValues(const Epilogue& epilogue, int64_t count) {
    const size_t gate = ir::GateOf(epilogue);
    for (size_t i = 0; i < epilogue.size(); ++i) {
      const FunctionStep& function = epilogue[i].function;
      if (!function) continue;
      size_t inputs = function->is_gated ? 2 : 1;
      for (const FunctionParameter& p : function->parameters) inputs += p.operand != FunctionOperand::kTable;
      const int64_t calls = kPoints * (i < gate && gate < epilogue.size() ? 2 * count : count);
      functions_.push_back({calls, std::vector<float>(inputs * static_cast<size_t>(calls)), {}});
    }
  }
  size_t size() const { return functions_.size(); }
  bool complete() const { return known_ == functions_.size(); }
  bool Knows(size_t function) const { return function < known_; }
  float& Input(size_t function, size_t parameter, int64_t call) {
    Function& of = functions_[function];
    return of.inputs[parameter * static_cast<size_t>(of.calls) + static_cast<size_t>(call)];
  }
  float Result(size_t function, size_t result, int64_t call) const {
    const Function& of = functions_[function];
    return of.results[result * static_cast<size_t>(of.calls) + static_cast<size_t>(call)];
  }
  // From the least to the greatest of an element's.
  ValueRange RangeOf(size_t function, size_t result, int64_t element) const {
    const auto at = [&](int64_t point) { return double{Result(function, result, kPoints * element + point)}; };
    return ValueRange::Hull(at(0), at(1), at(2));
  }
  // Of the first function that is not known.
  Status EvaluateNext(const EvaluateFunction& evaluate) {
    LS_CHECK(evaluate != nullptr, "nobody evaluates the users' functions of the epilogue");
    Function& next = functions_[known_];
    LS_ASSIGN(next.results, evaluate(known_, next.inputs, next.calls));
    ++known_;
    return Ok();
  }

 private:
  struct Function {
    int64_t calls = 0;  // kPoints for each element, or for each column of its pair
    std::vector<float> inputs, results;
  };
  std::vector<Function> functions_;
  size_t known_ = 0;  // the number of functions that are known
};

// Whether the reference computes sums itself, or gets them from a device without their products.
enum class SumsFrom : uint8_t { kProducts, kDevice };

// Sums of products, those of an element one after the other: of the products, of their magnitudes or more, and with a
// CutRule how far below and above the first of these a kernel's may be.
struct ProductSums {
  const double *exact = nullptr, *magnitudes = nullptr, *below = nullptr, *above = nullptr;

  ProductSums From(int64_t index) const {
    return {exact + index, magnitudes + index, below == nullptr ? below : below + index,
            above == nullptr ? above : above + index};
  }
};

// The epilogue of a sum, in double precision.
class HostEpilogue {
 public:
  // `output`: the type of D. Without `totals` there are no reductions.
  HostEpilogue(const Problem& problem, const HostOperands& operands, DataType output, EpilogueReductions* totals,
               SumsFrom from);

  HostEpilogue(const HostEpilogue&) = delete;
  HostEpilogue& operator=(const HostEpilogue&) = delete;

  const ProductView& view() const { return view_; }
  // What is lost of sums of products beyond f32's rounding.
  const std::optional<CutRule>& cut() const { return cut_; }
  // Columns of the product per column of D.
  int64_t columns_per_output() const { return gate_ < epilogue_.size() ? 2 : 1; }
  // The `index`-th column of B to be multiplied: those of a pair one after the other.
  int64_t ColumnOfB(int64_t index) const { return ir::ColumnOfB(epilogue_, index, view_.n); }

  // Columns of D that are compared at once: 1, or those of a block with a scale factor. Where they are several, Finish
  // gives the range of the element's value, and FinishBlock compares.
  int64_t columns_at_once() const { return quantizer_ ? quantizer_->run() : 1; }
  // Compares D's element, given the sums of columns_per_output() products from the `j`-th on, and the epilogue's other
  // stores. If a function of the epilogue is not known yet, only its inputs are
  // left for `element` of D.
  std::optional<ValueRange> Finish(int64_t batch, int64_t i, int64_t j, const ProductSums& sums, const HostTensor& d,
                                   Comparison& into, FunctionValues& functions, int64_t element) const;

  // Compares the elements of a block from `first` on, and its scale factor, with the ranges of the block's values:
  // the factor is one of those that the largest magnitude may have, and each element what some value of its range
  // becomes with that factor.
  void FinishBlock(int64_t batch, int64_t i, int64_t first, std::span<const ValueRange> values, const HostTensor& d,
                   Comparison& into) const;
  // Factors of rows and blocks that D does not have are zero.
  void CountPadding(Comparison& into) const;

 private:
  struct Place {
    int64_t row_of_product, row, column;
    int64_t call;       // of a function there
    int64_t group = 0;  // of rows: vectors along columns have one part for each
  };
  // The number of operands and functions of the epilogue before a value's current step.
  struct Passed {
    size_t operands = 0, functions = 0;
  };

  static float OperandOf(const FunctionParameter& parameter, const HostTensor& tensor, const Place& at);
  static int64_t PlaceOfReduction(ir::StepOperand operand, int64_t columns, const Place& at);
  static void LeaveInputs(const FunctionCall& call, const HostTensor* operands, std::span<const ValueRange> values,
                          const Place& at, FunctionValues& functions, size_t function, int64_t point);
  void CountOutputs(const FunctionCall& call, const HostTensor* operands, const Place& at, Comparison& into,
                    const FunctionValues& functions, size_t function) const;
  std::optional<ValueRange> Called(const FunctionCall& call, size_t operand, std::span<const ValueRange> values,
                                   const Place& at, Comparison& into, FunctionValues& functions, size_t function) const;
  std::optional<ValueRange> Gated(Passed& passed, std::span<const ValueRange> values, const Place& at, Comparison& into,
                                  FunctionValues& functions) const;
  std::optional<ValueRange> After(size_t first, size_t end, Passed& passed, ValueRange value, const Place& at,
                                  Comparison& into, FunctionValues& functions) const;
  ValueRange After(const EpilogueStep& step, size_t operand, const ValueRange& value, const Place& at, Comparison& into,
                   bool totals) const;
  ValueRange Applied(ir::Function function, const std::array<double, 2>& numbers, const ValueRange& value) const;
  double Other(const EpilogueStep& step, size_t operand, const Place& at) const;
  double Bias(const Place& at) const;
  // Of an s32 D.
  void CountInteger(const HostTensor& d, int64_t row, int64_t column, double sum, double magnitude,
                    Comparison& into) const;
  void Count(const HostTensor& d, int64_t row, int64_t column, const ValueRange& range, Comparison& into) const;

  const Problem problem_;
  const ProductView view_;
  const DataType output_;
  double alpha_;
  double last_ = 1;                  // the scale factor of D
  const bool saturates_, unsigned_;  // integer sums saturate; both operands are unsigned
  const Epilogue& epilogue_;
  const HostOperands& operands_;
  EpilogueReductions* const totals_;
  const size_t gate_;
  std::optional<ir::BlockQuantizer> quantizer_;
  const std::optional<CutRule> cut_;
  const double sum_error_;
  const bool by_range_;  // the norm counts distances from ranges, not from values
  const bool each_;      // each element has to be a number of its range, rounded
};

}  // namespace laneshift::measure
