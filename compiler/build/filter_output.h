// FilterOutput: D is filters, the gradient of a convolution's. Its rows are filters of a group, its columns their
// channels, of every tap or of the one that a matrix of the batch is.
//
// Thread-safety: a value.
#pragma once

#include <vector>

#include "compiler/build/output_tensor.h"
#include "compiler/build/pixel_index.h"
#include "compiler/contraction/contraction.h"

namespace laneshift::compiler {

class FilterOutput final : public OutputTensor {
 public:
  // `outputs`: threads sum positions, and need to know where lines of outputs end. REQUIRES: `contraction` outlives the
  // output.
  FilterOutput(const Contraction& contraction, bool outputs)
      : contraction_(contraction), dimensions_(PixelIndex(contraction.geometry).dimensions), outputs_(outputs) {}

  void AddPitches(ir::Operand operand, std::vector<ir::Param>& params) const override;
  void AddSizes(std::vector<ir::Param>& params) const override;
  // Adjacent columns of windows need not be adjacent in memory.
  int AccessWidthOf(ir::Operand operand, int run) const override {
    return HasWindows() ? 1 : AccessWidth(contraction_.Of(operand), run);
  }
  std::vector<ir::ValueId> StoreStart(ir::Builder& b, ir::ValueId row, const Corner& corner) const override;
  void BulkStore(ir::Builder& b, ir::ValueId copy, ir::ValueId column, const Corner& corner,
                 const std::vector<ir::ValueId>& start, const ir::BulkStoreAttrs& attrs) const override;

 private:
  bool HasWindows() const { return contraction_.taps == FilterTaps::kWindows; }

  const Contraction& contraction_;
  const size_t dimensions_;
  const bool outputs_;
};

}  // namespace laneshift::compiler
