// The epilogue: the steps from v = alpha * sum + beta * C + bias (f32) to D, applied in order to every element. Part of
// a problem, with a one-line form:
//
//   gemm m=4096 n=4096 k=4096 epilogue=bias_n+gelu_tanh
//   gemm m=4096 n=4096 k=4096 epilogue=scale_m:f32+residual+clamp:0:6
//   conv n=8 h=56 w=56 c=64 k=64 r=3 s=3 pad=1 epilogue=bias_k:f32+residual+relu
//
// A step is its name, then its numbers and the type of its operand, separated by colons. The default type is that of D,
// or bf16 if D is 8-bit. Operands are passed in the order of the steps that have one (GemmArguments::epilogue). A
// vector is packed. A matrix has the layout of D (pitches and strides in elements are D's), begins at a multiple of 16
// bytes and may be D. The scale factors of scale_block are packed, ceil(m / 128) rows of ceil(n / 128), shared by the
// batch.
//
// Reductions (sums and amax) are f32, shared by the batch, and accumulate into what the caller has put there. An amax
// has the same bits in every run. A sum depends on the order in which tiles end, unless the problem is deterministic;
// the plan then needs a workspace. Batch-invariant problems refuse sums.
// After a gated step columns are those of D. Before it they are those of B, twice as many, and there are no matrices.
// In a convolution D's columns are the channels of y, and B's the filters. With the split gate/up layout
// (swiglu:halves) column j of B is the gate of column j + n / 2; otherwise column 2 j is the gate of 2 j + 1. This
// applies to every group of filters. Per-column operands of steps before the gated one have the layout of B's columns.
//
// Thread-safety: values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>

#include "laneshift/epilogue_function.h"

namespace laneshift {

enum class DataType : uint8_t;

// Rows and columns are those of D; in a convolution a row is an output pixel and a column an output channel.
enum class EpilogueKind : uint8_t {
  kScale,             // scale:x         v * x
  kScaleRow,          // scale_m         v * s[row]
  kScaleColumn,       // scale_n         v * s[column]; of a convolution scale_k
  kBiasRow,           // bias_m          v + s[row]
  kBiasColumn,        // bias_n          v + s[column]; of a convolution bias_k
  kResidual,          // residual        v + r[row, column]
  kMultiply,          // multiply        v * r[row, column]
  kRelu,              // relu            max(v, 0)
  kLeakyRelu,         // leaky_relu:x    v where v > 0, else v * x (0.01 if left out)
  kGelu,              // gelu            v * (1 + erf(v / sqrt(2))) / 2
  kGeluTanh,          // gelu_tanh       v * (1 + tanh(sqrt(2/pi) * (v + 0.044715 v^3))) / 2
  kSilu,              // silu            v / (1 + exp(-v))
  kSigmoid,           // sigmoid         1 / (1 + exp(-v))
  kTanh,              // tanh            tanh(v)
  kClamp,             // clamp:x:y       min(max(v, x), y)
  kAux,               // aux             stores v at this point to r[row, column] and passes it on
  kReluGradient,      // drelu           v where r[row, column] > 0, else 0
  kGeluGradient,      // dgelu           v * gelu'(r[row, column])
  kGeluTanhGradient,  // dgelu_tanh      v * gelu_tanh'(r[row, column])
  kSiluGradient,      // dsilu           v * silu'(r[row, column])
  kSigmoidGradient,   // dsigmoid        v * sigmoid'(r[row, column])
  kTanhGradient,      // dtanh           v * tanh'(r[row, column])
  kLeakyGradient,     // dleaky_relu:x   v where r[row, column] > 0, else v * x (0.01 if left out)
  kClampGradient,     // dclamp:x:y      v where x <= r[row, column] <= y, else 0
  kScaleBlock,        // scale_block     v * s[row / 128, column / 128]
  kRint,              // rint            the nearest integer, the even one of two
  kTowardZero,        // toward_zero     v truncated to D's type (bf16 or f16) instead of rounded to nearest
  kSwiglu,            // swiglu          silu(v[row, 2 j]) * v[row, 2 j + 1]: D has half as many columns, n / 2
  kGeglu,             // geglu           gelu(v[row, 2 j]) * v[row, 2 j + 1]
  kGegluTanh,         // geglu_tanh      gelu_tanh(v[row, 2 j]) * v[row, 2 j + 1]
  kSumRows,           // sum_m           adds v to r[row] and passes it on
  kSumColumns,        // sum_n           adds v to r[column]; of a convolution sum_k
  kAmaxRows,          // amax_m          r[row] becomes max(r[row], |v|)
  kAmaxColumns,       // amax_n          r[column] becomes max(r[column], |v|); of a convolution amax_k
  kAmax,              // amax            the one number r becomes max(r, |v|)
  kFunction,          // file.cu:name    a user's function (laneshift/epilogue_function.h)
};

// The columns of B, gate and up, from which a gated step computes column j of D.
enum class PairOrder : uint8_t {
  kInterleaved,  // 2 j and 2 j + 1
  kHalves,       // split gate/up layout: j and n / 2 + j
};

struct EpilogueStep {
  EpilogueKind kind{};
  std::array<double, 2> numbers{};         // as many as its kind has
  std::optional<DataType> operand_type{};  // none: that of D
  FunctionStep function{};                 // of kFunction: its operands and numbers
  PairOrder pairs{};                       // of a gated step or a user's gated function

  bool operator==(const EpilogueStep&) const = default;
};

// Limits of one problem.
constexpr size_t kMaxEpilogueSteps = 12;
constexpr int kMaxEpilogueOperands = 8;
constexpr int kMaxEpilogueNumbers = 8;

// The steps, stored in place, so that problems are plain values. Excess steps are counted, and refused by
// CompleteProblem.
class Epilogue {
 public:
  Epilogue() = default;
  Epilogue(std::initializer_list<EpilogueStep> steps) {
    for (const EpilogueStep& step : steps) push_back(step);
  }
  void push_back(const EpilogueStep& step) {
    if (asked_ < kMaxEpilogueSteps) steps_[asked_] = step;
    ++asked_;
  }
  bool empty() const { return asked_ == 0; }
  size_t size() const { return asked_ < kMaxEpilogueSteps ? asked_ : kMaxEpilogueSteps; }
  bool overflows() const { return asked_ > kMaxEpilogueSteps; }
  const EpilogueStep& operator[](size_t i) const { return steps_[i]; }
  EpilogueStep* begin() { return steps_.data(); }
  EpilogueStep* end() { return steps_.data() + size(); }
  const EpilogueStep* begin() const { return steps_.data(); }
  const EpilogueStep* end() const { return steps_.data() + size(); }

  bool operator==(const Epilogue&) const = default;

 private:
  std::array<EpilogueStep, kMaxEpilogueSteps> steps_{};  // those after the last are default ones
  size_t asked_ = 0;
};

// Addresses of the operands, in the order of the steps that have one.
using EpilogueArguments = std::array<void*, kMaxEpilogueOperands>;

}  // namespace laneshift
