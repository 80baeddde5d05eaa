#include "compiler/build/epilogue_terms.h"

#include <algorithm>
#include <vector>

namespace laneshift::compiler {

bool EpilogueTerms::HasMatrices() const {
  return std::any_of(steps.begin(), steps.end(), [](const EpilogueStep& step) {
    const ir::StepOperand operand = ir::InfoOf(step.kind).operand;
    // Reductions skip the rows that D has not, and users' functions are not run there: they need to know where those
    // are.
    return ir::IsMatrix(operand) || ir::IsTotal(operand) || step.function;
  });
}

bool EpilogueTerms::KeepsF32() const {
  return type == DataType::kF32 || std::any_of(steps.begin(), steps.end(), [&](const EpilogueStep& step) {
           const std::vector<ir::StepTensor> tensors = ir::TensorsOf(step, type);
           return std::any_of(tensors.begin(), tensors.end(), [](const ir::StepTensor& tensor) {
             return tensor.operand == ir::StepOperand::kOutput && tensor.type == DataType::kF32;
           });
         });
}

}  // namespace laneshift::compiler
