#include "compiler/build/position_loader.h"

#include <utility>

namespace laneshift::compiler {

using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::ValueId;

TapOfGroup DecodeTap(Builder& b, size_t dimensions, ValueId batch) {
  TapOfGroup tap{.group = batch};
  ValueId taps = b.Constant(1);
  for (size_t d = 0; d < dimensions; ++d) {
    const ValueId extent = b.ParamValue(ir::kSpatialBindings[d].taps);
    tap.taps.push_back(b.Rem({tap.group, extent}));
    tap.group = b.Div({tap.group, extent});
    taps = b.Mul({taps, extent});
  }
  tap.number = b.Rem({batch, taps});
  return tap;
}

void PositionLoader::AddParams(std::vector<ir::Param>& params) const {
  matrix_.AddParams(target().path, parts_, params);
  if (reads_taps_ && taps_ == FilterTaps::kColumns) params.push_back({Binding::kChannels, {}});
}

PositionLoader::Piece PositionLoader::PieceOf(Builder& b, ValueId channel, const std::vector<ValueId>& taps) const {
  Piece piece{.channel = channel};
  for (size_t d = 0; d < pixels_.dimensions; ++d) {
    piece.offsets.push_back(reads_taps_ ? b.Mul({taps[d], b.ParamValue(ir::kSpatialBindings[d].dilation)})
                                        : b.Constant(0));
  }
  return piece;
}

bool PositionLoader::TapsAreColumns() const { return reads_taps_ && taps_ != FilterTaps::kMatrices; }

int PositionLoader::StartRegisters() const {
  return TapsAreColumns() ? matrix_.tile.Columns() * (1 + static_cast<int>(pixels_.dimensions)) : 0;
}

std::vector<PositionLoader::Piece> PositionLoader::PiecesOf(Builder& b, const Corner& corner) const {
  const bool of_a = matrix_.operand == Operand::kA;
  const ValueId first = of_a ? corner.row : parts_.ColumnOfB(b, corner.column);
  if (!TapsAreColumns()) {
    const TapOfGroup tap = DecodeTap(b, pixels_.dimensions, corner.batch);
    const ValueId of_group = b.Mul({tap.group, b.ParamValue(of_a ? Binding::kM : Binding::kN)});
    return {PieceOf(b, b.Add({first, of_group}), tap.taps)};
  }
  // Columns after the last tap are outside of D: whatever pixels they are multiplied with.
  std::vector<Piece> pieces;
  const ValueId channels = b.ParamValue(Binding::kChannels);
  for (int i = 0; i < matrix_.tile.Columns(); ++i) {
    const ValueId column = b.Add({first, b.Constant(i * matrix_.tile.ColumnElements())});
    const TapOfGroup tap = DecodeTap(b, pixels_.dimensions, b.Div({column, channels}));
    pieces.push_back(PieceOf(b, b.Rem({column, channels}), tap.taps));
    pieces.back().column = i;
  }
  return pieces;
}

OperandLoader::LoadBlock PositionLoader::StartTile(Builder& b, const Corner& corner) const {
  return [this, pieces = PiecesOf(b, corner)](Builder& into, ValueId slot, const KBlock& block, int) {
    const int rows = parts_.BoxOf(matrix_.tile, matrix_.operand).outer;
    std::vector<ValueId> at = pixels_.Decode(into, parts_.Start(into, block.first, matrix_.operand, rows));
    for (size_t d = 0; d < pixels_.dimensions && reads_taps_; ++d) {
      const ir::SpatialBindings& of = ir::kSpatialBindings[d];
      at[d] = into.Sub({into.Mul({at[d], into.ParamValue(of.stride)}), into.ParamValue(of.pad)});
    }
    for (const Piece& piece : pieces) {
      std::vector<ValueId> operands = {slot, piece.channel};
      operands.insert(operands.end(), at.begin(), at.end());
      operands.insert(operands.end(), piece.offsets.begin(), piece.offsets.end());
      into.LoadPixels(operands, {.tile = target().tile,
                                 .map = ir::MapOf(matrix_.operand),
                                 .column = piece.column,
                                 .to = parts_.MulticastScopeOf(matrix_.operand)});
    }
  };
}

}  // namespace laneshift::compiler
