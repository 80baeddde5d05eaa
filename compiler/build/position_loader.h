// PositionLoader: an operand of the gradient of filters. A block of K is positions of the implicit-GEMM index, which
// are the rows of its tile; the elements of a row are channels, of x those under one tap or under several. Bulk im2col
// copies bring it.
//
// Thread-safety: a value.
#pragma once

#include "compiler/build/matrix_loader.h"
#include "compiler/build/operand_loader.h"
#include "compiler/build/operand_parts.h"
#include "compiler/build/pixel_index.h"
#include "compiler/contraction/contraction.h"

namespace laneshift::compiler {

// What a matrix of the batch is: a tap of a group's filters.
struct TapOfGroup {
  std::vector<ir::ValueId> taps{};  // column, row[, plane]
  ir::ValueId group = ir::kNoValue;
  ir::ValueId number = ir::kNoValue;  // of the tap
};
TapOfGroup DecodeTap(ir::Builder& b, size_t dimensions, ir::ValueId batch);

class PositionLoader final : public OperandLoader {
 public:
  // REQUIRES: contraction and parts outlive the loader.
  PositionLoader(const LoadTarget& target, const MatrixOperand& matrix, const Contraction& contraction,
                 const OperandParts& parts)
      : OperandLoader(target),
        matrix_(matrix),
        pixels_(contraction.geometry),
        reads_taps_(contraction.ReadsTaps(matrix.operand)),
        taps_(contraction.taps),
        parts_(parts) {}

  void AddParams(std::vector<ir::Param>& params) const override;
  int StartRegisters() const override;
  LoadBlock StartTile(ir::Builder& b, const Corner& corner) const override;

 private:
  // Whether each swizzle span of the tile is a tap's, which a separate copy brings.
  bool TapsAreColumns() const;
  // What one copy brings of each block: where its channels begin, how far from the index its pixels are, and the column
  // of the tile that it fills.
  struct Piece {
    ir::ValueId channel = ir::kNoValue;
    std::vector<ir::ValueId> offsets{};
    int column = ir::PixelLoadAttrs::kEveryColumn;
  };
  std::vector<Piece> PiecesOf(ir::Builder& b, const Corner& corner) const;
  Piece PieceOf(ir::Builder& b, ir::ValueId channel, const std::vector<ir::ValueId>& taps) const;

  const MatrixOperand matrix_;
  const PixelIndex pixels_;
  const bool reads_taps_;
  const FilterTaps taps_;
  const OperandParts& parts_;
};

}  // namespace laneshift::compiler
