// MatrixOutput: D is the matrices of a batch, or rows of groups.
//
// Thread-safety: a value.
#pragma once

#include <vector>

#include "compiler/build/output_tensor.h"
#include "compiler/contraction/contraction.h"

namespace laneshift::compiler {

class MatrixOutput final : public OutputTensor {
 public:
  // REQUIRES: `contraction` outlives the output.
  explicit MatrixOutput(const Contraction& contraction) : contraction_(contraction) {}

  void AddPitches(ir::Operand operand, std::vector<ir::Param>& params) const override;
  void AddSizes(std::vector<ir::Param>& params) const override;
  int AccessWidthOf(ir::Operand operand, int run) const override { return AccessWidth(contraction_.Of(operand), run); }
  std::vector<ir::ValueId> StoreStart(ir::Builder& b, ir::ValueId row, const Corner& corner) const override;
  void BulkStore(ir::Builder& b, ir::ValueId copy, ir::ValueId column, const Corner& corner,
                 const std::vector<ir::ValueId>& start, const ir::BulkStoreAttrs& attrs) const override;

 private:
  const Contraction& contraction_;
};

}  // namespace laneshift::compiler
