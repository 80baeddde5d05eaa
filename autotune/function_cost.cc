#include "autotune/function_cost.h"

#include "base/check.h"

namespace laneshift::autotune {

FunctionCost CostOf(ir::Function function) {
  switch (function) {
    case ir::Function::kIdentity:
      return {0, 0, 0, 0};
    case ir::Function::kRelu:
    case ir::Function::kRint:
    case ir::Function::kCutBf16:
      return {1, 0, 1, 0};
    case ir::Function::kLeakyRelu:
    case ir::Function::kClamp:
    case ir::Function::kCutF16:
      return {2, 0, 2, 0};
    case ir::Function::kGelu:
      return {16, 2, 7, 1};
    case ir::Function::kGeluTanh:
      return {8, 2, 5, 1};
    case ir::Function::kSilu:
      return {5, 2, 2, 1};
    case ir::Function::kSigmoid:
      return {4, 2, 3, 1};
    case ir::Function::kTanh:
      return {5, 2, 1, 1};
  }
  LS_CHECK(false, "unknown function ", static_cast<int>(function));
}

}  // namespace laneshift::autotune
