#include "compiler/build/matrix_loader.h"

#include <algorithm>

#include "base/integer_math.h"
#include "compiler/build/cta_plan.h"
#include "compiler/legality/check_async.h"
#include "compiler/legality/tma_addressable.h"
#include "ir/piece_lanes.h"
#include "ir/row_steps.h"

namespace laneshift::compiler {

using ir::Axis;
using ir::Builder;
using ir::Operand;
using ir::ValueId;

namespace {

// Of runs of pieces with separate addresses: as many as kWithCopies leaves registers for (compiler/build/cta_plan.cc).
constexpr int kFewRuns = 8;

ValueId Along(const MatrixStart& start, Axis axis) {
  return axis == Axis::kM ? start.row : axis == Axis::kN ? start.column : start.depth;
}

void LoadMatrixTile(Builder& b, const MatrixOperand& matrix, const LoadTarget& target, const OperandParts& parts,
                    ValueId slot, const MatrixStart& start) {
  const ir::SharedLayout& tile = matrix.tile;
  std::vector<ValueId> at = {slot, Along(start, tile.inner_axis), Along(start, tile.outer_axis), start.batch};
  const bool halves = matrix.operand == Operand::kB && parts.HasSplitGateUp();
  if (target.path == LoadPath::kTma) {
    at[2] = parts.Start(b, at[2], matrix.operand, parts.BoxOf(tile, matrix.operand).outer);
    if (matrix.copied_rows > 0) at.push_back(start.rows);
    b.TmaLoad(at, {.tile = target.tile,
                   .operand = matrix.operand,
                   .to = parts.MulticastScopeOf(matrix.operand),
                   .whole = parts.IsWhole(matrix.operand),
                   .halves = halves});
  } else {
    b.CopyLoad(at, {.tile = target.tile,
                    .operand = matrix.operand,
                    .transposed = matrix.transposed,
                    .halves = halves,
                    .gathers = matrix.indexed,
                    .piece = matrix.piece});
  }
}

}  // namespace

MatrixOperand MatrixOperandOf(const Contraction& contraction, const Schedule& schedule, Operand operand,
                              const target::Target& target) {
  const OperandSource& source = contraction.Of(operand);
  const bool transposed = Transposes(source, target);
  const Axis outer_axis = transposed ? source.inner_axis : source.outer_axis;
  const Axis inner_axis = transposed ? source.outer_axis : source.inner_axis;
  const auto extent = [&](Axis axis) {
    return axis == Axis::kM   ? schedule.tile_m
           : axis == Axis::kN ? schedule.tile_n / schedule.ctas
                              : schedule.tile_k / source.compression;
  };
  const int inner = extent(inner_axis);
  const LoadPath path = operand == Operand::kA ? schedule.a_load : schedule.b_load;
  return {.operand = operand,
          .tile = {.type = source.type(),
                   .outer_axis = outer_axis,
                   .inner_axis = inner_axis,
                   .outer = extent(outer_axis),
                   .inner = inner,
                   .swizzle = ir::WidestSwizzle(contraction.TileBytes(inner)),
                   .padded = contraction.IsPadded(source)},
          .transposed = transposed,
          .shared = source.shared,
          .indexed = source.indexed,
          .compression = source.compression,
          .piece = path == LoadPath::kAsync ? PieceOf(source, contraction.TileBytes(inner)) : 0};
}

void MatrixOperand::LeaveOutRows(const OperandParts& parts, RowSide rows) {
  const int of_part = parts.BoxOf(tile, operand).outer;
  const int of_copy = ir::RowsOfCopy(of_part, rows == RowSide::kN);
  if (of_copy < of_part) copied_rows = of_copy;
}

void MatrixOperand::AddParams(LoadPath path, const OperandParts& parts, std::vector<ir::Param>& params) const {
  if (path == LoadPath::kTma) {
    ir::SharedLayout box = parts.BoxOf(tile, operand);
    if (copied_rows > 0) box.outer = copied_rows;
    params.push_back({ir::MapOf(operand), box});
  } else {
    params.insert(params.end(), {{ir::BaseOf(operand), {}}, {ir::PitchOf(operand), {}}, {ir::StrideOf(operand), {}}});
  }
}

bool MatrixLoader::KeepsManyAddresses() const {
  return matrix_.piece > 0 && ir::PieceLanes(matrix_.tile, matrix_.piece).runs > kFewRuns;
}

OperandLoader::LoadBlock MatrixLoader::StartTile(Builder& b, const Corner& corner) const {
  MatrixStart start{
      .row = corner.row, .column = corner.column, .depth = ir::kNoValue, .batch = corner.batch, .rows = corner.rows};
  if (matrix_.shared) start.batch = corner.HasPartOfK() ? corner.part : b.Constant(0);
  if (matrix_.operand == Operand::kB) start.column = parts_.ColumnOfB(b, corner.column);
  return [this, start](Builder& into, ValueId slot, const KBlock& block, int) {
    MatrixStart at = start;
    // Stored elements are counted, not those of K.
    at.depth =
        matrix_.compression == 1 ? block.first : into.Mul({block.number, into.Constant(matrix_.tile.Extent(Axis::kK))});
    LoadMatrixTile(into, matrix_, target(), parts_, slot, at);
  };
}

int RowLoader::WarpsFor(const MatrixOperand& matrix, const OperandParts& parts, int at_once) {
  const int rows = matrix.tile.outer / parts.Count(matrix.operand);
  return std::min(kGatherWarps, base::CeilDiv(rows, at_once));
}

int RowLoader::StartRegisters() const {
  return at_once_ * base::CeilDiv(Rows(), at_once_ * 32 * target().gather_warps);
}

void RowLoader::AddParams(std::vector<ir::Param>& params) const {
  ir::SharedLayout row = matrix_.tile;
  row.outer = 1;
  params.push_back({ir::MapOf(matrix_.operand), row});
}

OperandLoader::LoadBlock RowLoader::StartTile(Builder& b, const Corner& corner) const {
  const ValueId first = parts_.Start(b, corner.row, matrix_.operand, Rows());
  const ValueId rows = b.FindRows({first}, {.rows = Rows(), .at_once = at_once_});
  const ir::RowLoadAttrs attrs{
      .tile = target().tile, .rows = Rows(), .at_once = at_once_, .to = parts_.MulticastScopeOf(matrix_.operand)};
  return [rows, attrs](Builder& into, ValueId slot, const KBlock& block, int) {
    into.LoadRows({slot, rows, block.first}, attrs);
  };
}

void ResidentMatrixLoader::Load(Builder& b) const {
  const ValueId zero = b.Constant(0);
  const ValueId column = parts_.ColumnOfResidentB(b);
  ForEach(b, Slots(b), [&](ValueId number) {
    const ValueId slot = b.Put({}, {.channel = target().channel});
    const ValueId depth = b.Mul({number, b.Constant(k_.tile_k)});
    LoadMatrixTile(b, matrix_, target(), parts_, slot, {zero, column, depth, zero});
    target().path == LoadPath::kAsync ? b.SendLate({slot}) : b.Send({slot});
  });
  if (target().path == LoadPath::kAsync) b.DrainSends({}, {.channel = target().channel});
}

}  // namespace laneshift::compiler
