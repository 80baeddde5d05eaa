#include "compiler/build/tile_walk.h"

#include <algorithm>

#include "compiler/emit/cluster_place.h"

namespace laneshift::compiler {

Value* TileWalk::OfCluster(const RoleContext& cx, Value* ctas) {
  const int size = cx.program.ClusterSize();
  return size == 1 ? ctas : cx.e.ir().CreateUDiv(ctas, cx.e.C32(static_cast<uint32_t>(size)));
}

TileWalk::TileWalk(const RoleContext& cx, int raster, Value* rows, Value* columns, Value* batches)
    : cx_(cx), e_(cx.e), b_(cx.e.ir()), raster_(raster) {
  const auto by = [&](Value* count, int extent) {
    return extent == 1 ? count : b_.CreateUDiv(b_.CreateAdd(count, e_.C32(extent - 1)), e_.C32(extent));
  };
  rows_ = by(rows, cx.program.cluster_m);
  columns_ = by(columns, cx.program.cluster_n);
  total_ = b_.CreateMul(b_.CreateMul(rows_, columns_), batches);
  own_ = OfCluster(cx, e_.CtaIndex());
  count_ = OfCluster(cx, e_.CtaCount());
}

TileWalk::Place TileWalk::At(Value* linear) const {
  const auto of_cta = [&](Value* index, int extent, ir::Axis axis) {
    if (extent == 1) return index;
    return b_.CreateAdd(b_.CreateMul(index, e_.C32(extent)), cx_.cluster->Index(axis));
  };
  Value* per_batch = b_.CreateMul(rows_, columns_);
  Value* band_rows = e_.C32(std::max(1, raster_ / cx_.program.cluster_m));
  Value* per_band = b_.CreateMul(band_rows, columns_);
  const Quotient batch = Divide(linear, per_batch, b_.CreateICmpULT(linear, per_batch), e_.C32(0));
  const Quotient band = Divide(batch.rest, per_band, b_.CreateICmpULT(batch.rest, per_band), e_.C32(0));
  Value* first_row = b_.CreateMul(band.quotient, band_rows);
  Value* height = b_.CreateSub(rows_, first_row);
  Value* whole = b_.CreateICmpUGE(height, band_rows);
  height = b_.CreateSelect(whole, band_rows, height);
  const Quotient column = Divide(band.rest, height, whole, b_.CreateUDiv(band.rest, band_rows));
  Value* own_row = of_cta(b_.CreateAdd(first_row, column.rest), cx_.program.cluster_m, ir::Axis::kM);
  Value* own_column = of_cta(column.quotient, cx_.program.cluster_n, ir::Axis::kN);
  return {own_row, own_column, batch.quotient};
}

// By a number that only the kernel knows takes a hundred clocks; where `easy` holds, the quotient is `quotient`.
TileWalk::Quotient TileWalk::Divide(Value* number, Value* divisor, Value* easy, Value* quotient) const {
  const Variable result = e_.NewVariable(e_.I32(), quotient);
  e_.If(b_.CreateNot(easy), [&] { e_.Store(result, b_.CreateUDiv(number, divisor)); });
  Value* found = e_.Load(result);
  return {found, b_.CreateSub(number, b_.CreateMul(found, divisor))};
}

void TileWalk::ForEachGranted(const std::function<void(const Turn&)>& begin,
                              const std::function<void(Value*)>& body) const {
  const Variable tile = e_.NewVariable(e_.I32(), own_);
  const Turn turn{tile, e_.NewVariable(e_.I32(), e_.C32(0))};
  begin(turn);
  e_.DoWhile([&] {
    body(e_.Load(tile));
    return b_.CreateICmpNE(e_.Load(turn.more), e_.C32(0));
  });
}

void TileWalk::ForEach(int turn, int turns, const std::function<void(Value*)>& body) const {
  const auto turns_of = [&](int count) { return b_.CreateMul(count_, e_.C32(static_cast<uint32_t>(count))); };
  const Variable tile = e_.NewVariable(e_.I32(), turn == 0 ? own_ : b_.CreateAdd(own_, turns_of(turn)));
  Value* step = turns == 1 ? count_ : turns_of(turns);
  // A counted loop over this CTA's tiles: the tile itself advances by the number of CTAs.
  Value* first = e_.Load(tile);
  Value* some = b_.CreateICmpULT(first, total_);
  Value* rest = b_.CreateSub(b_.CreateSub(total_, first), e_.C32(1));
  Value* count = b_.CreateSelect(some, b_.CreateAdd(b_.CreateUDiv(rest, step), e_.C32(1)), e_.C32(0));
  e_.For(e_.C32(0), count, 1, [&](Value*) {
    Value* linear = e_.Load(tile);
    body(linear);
    e_.Store(tile, b_.CreateAdd(linear, step));
  });
}

void TileWalk::ForEachShare(Value* blocks, int most, const std::function<void(Value*, const Share&)>& body) const {
  Value* most_sections = e_.C32(most);
  Value* sections = b_.CreateSelect(b_.CreateICmpULT(blocks, most_sections), blocks, most_sections);
  Value* rounds = b_.CreateUDiv(total_, count_);
  Value* rest = b_.CreateURem(total_, count_);
  Value* cut = b_.CreateMul(rest, sections);
  // Pieces own, own + count, …: those of one round are of one section, or of two, so that CTAs which share an operand
  // read the same part of K at the same time.
  Value* behind = b_.CreateUDiv(b_.CreateSub(b_.CreateSub(cut, own_), e_.C32(1)), count_);
  Value* pieces = b_.CreateSelect(b_.CreateICmpULT(own_, cut), b_.CreateAdd(behind, e_.C32(1)), e_.C32(0));
  Value* divisor = b_.CreateSelect(b_.CreateICmpEQ(rest, e_.C32(0)), e_.C32(1), rest);
  e_.For(e_.C32(0), b_.CreateAdd(pieces, rounds), 1, [&](Value* i) {
    Value* is_cut = b_.CreateICmpULT(i, pieces);
    const auto choose = [&](Value* of_piece, Value* of_whole) { return b_.CreateSelect(is_cut, of_piece, of_whole); };
    Value* piece = b_.CreateAdd(b_.CreateMul(i, count_), own_);
    Value* number = b_.CreateURem(piece, divisor);
    Value* section = choose(b_.CreateUDiv(piece, divisor), e_.C32(0));
    Value* round = b_.CreateSub(i, pieces);
    Value* linear = choose(number, b_.CreateAdd(rest, b_.CreateAdd(b_.CreateMul(round, count_), own_)));
    const auto block = [&](Value* of) { return b_.CreateUDiv(b_.CreateMul(of, blocks), sections); };
    Share share{.first = choose(block(section), e_.C32(0)),
                .end = choose(block(b_.CreateAdd(section, e_.C32(1))), blocks),
                .number = number,
                .section = section,
                .sections = choose(sections, e_.C32(1))};
    // Of a cluster every CTA has a tile of its own.
    const int cluster = cx_.program.ClusterSize();
    if (cluster > 1) {
      Value* rank = b_.CreateURem(e_.CtaIndex(), e_.C32(cluster));
      share.number = b_.CreateAdd(b_.CreateMul(number, e_.C32(cluster)), rank);
    }
    body(linear, share);
  });
}

}  // namespace laneshift::compiler
