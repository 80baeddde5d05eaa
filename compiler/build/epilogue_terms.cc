#include "compiler/build/epilogue_terms.h"

#include <algorithm>
#include <vector>

#include "compiler/legality/promotion.h"
#include "ir/element_type.h"
#include "ir/mma.h"

namespace laneshift::compiler {

bool EpilogueTerms::HasMatrices() const {
  return std::any_of(steps.begin(), steps.end(), [](const EpilogueStep& step) {
    const ir::StepOperand operand = ir::InfoOf(step.kind).operand;
    // Reductions skip the rows that D has not, and users' functions are not run there: they need to know where those
    // are.
    return ir::IsMatrix(operand) || ir::IsReduction(operand) || step.function;
  });
}

bool EpilogueTerms::HasScaleOfD() const {
  if (d_scale != OutputScaling::kNone) return d_scale == OutputScaling::kNv;
  return scale != Scaling::kNone && ir::IsFloat8(type);
}

bool EpilogueTerms::KeepsF32() const {
  return type == DataType::kF32 || std::any_of(steps.begin(), steps.end(), [&](const EpilogueStep& step) {
           const std::vector<ir::StepTensor> tensors = ir::TensorsOf(step, type);
           return std::any_of(tensors.begin(), tensors.end(), [](const ir::StepTensor& tensor) {
             return tensor.operand == ir::StepOperand::kOutput && tensor.type == DataType::kF32;
           });
         });
}

EpilogueTerms TermsOf(const Contraction& contraction, ir::RowMap rows, const target::Target& target) {
  return {.type = contraction.d.type(),
          .c_type = contraction.c.type(),
          .accumulator = ir::AccumulatorType(contraction.a.type()),
          .adds_c = contraction.beta != 0,
          .bias = contraction.bias,
          .scale = contraction.scale,
          .scale_tiles = {.packed = contraction.scale_type == ScaleFactorType::kUe8m0},
          .d_scale = contraction.d_scale,
          .promotes = Promotes(contraction, target),
          .rows = rows,
          .patches = contraction.geometry.HasPatches(),
          .steps = contraction.epilogue(),
          .orders_reductions = ir::OrdersReductions(contraction.epilogue(), contraction.numerics)};
}

}  // namespace laneshift::compiler
