// How cuBLAS and cuBLASLt name the arithmetic of a problem: values of cublas_api.h and library_types.h.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "ir/element_type.h"
#include "laneshift/problem.h"

namespace laneshift::measure {

struct CublasArithmetic {
  int compute;  // cublasComputeType_t
  int scale;    // cudaDataType_t of alpha and beta
};

inline CublasArithmetic ArithmeticOf(const GemmProblem& problem) {
  constexpr CublasArithmetic kF32 = {68, 0}, kTf32 = {77, 0}, kS32 = {72, 10};
  if (ir::IsInteger(problem.a)) return kS32;
  return problem.a == DataType::kTf32 ? kTf32 : kF32;
}

// Alpha or beta in that type.
class CublasScalar {
 public:
  CublasScalar(const GemmProblem& problem, double value)
      : number_(static_cast<float>(value)),
        integer_(static_cast<int32_t>(value)),
        is_integer_(ir::IsInteger(problem.a)) {}
  const void* pointer() const { return is_integer_ ? static_cast<const void*>(&integer_) : &number_; }

 private:
  float number_;
  int32_t integer_;
  bool is_integer_;
};

}  // namespace laneshift::measure
