// PixelOutput: D is pixels of images, whose rows are positions of the implicit-GEMM index.
//
// Thread-safety: a value.
#pragma once

#include <vector>

#include "compiler/build/output_tensor.h"
#include "compiler/build/pixel_index.h"
#include "compiler/contraction/contraction.h"

namespace laneshift::compiler {

class PixelOutput final : public OutputTensor {
 public:
  // `extents`: threads read pixels, and need to know where the images end. REQUIRES: `contraction` outlives the output.
  PixelOutput(const Contraction& contraction, bool extents)
      : contraction_(contraction), pixels_(contraction.geometry), extents_(extents) {}

  void AddPitches(ir::Operand operand, std::vector<ir::Param>& params) const override;
  void AddSizes(std::vector<ir::Param>& params) const override;
  int AccessWidthOf(ir::Operand operand, int run) const override;
  std::vector<ir::ValueId> StoreStart(ir::Builder& b, ir::ValueId row, const Corner& corner) const override;
  void BulkStore(ir::Builder& b, ir::ValueId copy, ir::ValueId column, const Corner& corner,
                 const std::vector<ir::ValueId>& start, const ir::BulkStoreAttrs& attrs) const override;

 private:
  const Contraction& contraction_;
  const PixelIndex pixels_;
  const bool extents_;
};

}  // namespace laneshift::compiler
