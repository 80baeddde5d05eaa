// WindowLoader: an operand of a gradient of filters whose taps are windows of packed pixels
// (compiler/contraction/pixel_windows.h). A block of K is rows and columns of output positions; one bulk copy brings
// the gradient of y there, or all windows of the tile, whose columns overlap.
//
// Thread-safety: a value.
#pragma once

#include "compiler/build/matrix_loader.h"
#include "compiler/build/operand_loader.h"
#include "compiler/contraction/contraction.h"

namespace laneshift::compiler {

// The tile of an operand: that of a matrix, or of windows that overlap.
MatrixOperand WindowOperandOf(const Contraction& contraction, const Schedule& schedule, ir::Operand operand,
                              const target::Target& target);

class WindowLoader final : public OperandLoader {
 public:
  WindowLoader(const LoadTarget& target, const MatrixOperand& matrix, const Contraction& contraction)
      : OperandLoader(target),
        matrix_(matrix),
        windows_(contraction.windows),
        dimensions_(contraction.geometry.planes ? 3 : 2) {}

  void AddParams(std::vector<ir::Param>& params) const override;
  LoadBlock StartTile(ir::Builder& b, const Corner& corner) const override;

 private:
  // Where a tile begins: the first element of a span, or channel; of windows also the first line and the plane of taps.
  struct Start {
    ir::ValueId element = ir::kNoValue, line = ir::kNoValue, plane = ir::kNoValue;
  };
  Start StartOf(ir::Builder& b, const Corner& corner) const;
  // The first column, row[, plane] and the image of a block of K.
  std::vector<ir::ValueId> BlockAt(ir::Builder& b, ir::ValueId number) const;

  const MatrixOperand matrix_;
  const PixelWindows windows_;
  const size_t dimensions_;
};

}  // namespace laneshift::compiler
