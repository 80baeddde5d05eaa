#include "compiler/emit/work_loop.h"

#include <algorithm>

#include "compiler/emit/cluster_place.h"
#include "ir/stored_tensor.h"

namespace laneshift::compiler {

Value* WorkLoop::OfCluster(const RoleContext& cx, Value* ctas) {
  const int size = cx.program.ClusterSize();
  return size == 1 ? ctas : cx.e.ir().CreateUDiv(ctas, cx.e.C32(static_cast<uint32_t>(size)));
}

WorkLoop::WorkLoop(const RoleContext& cx, const ir::WorkAttrs& attrs, const Counts& counts)
    : cx_(cx),
      e_(cx.e),
      b_(cx.e.ir()),
      attrs_(attrs),
      rows_of_tile_(counts.rows),
      batches_(counts.batches),
      blocks_(counts.blocks),
      block_(counts.block),
      scale_blocks_(counts.scale_blocks) {
  const auto by = [&](Value* count, int extent) { return extent == 1 ? count : CeilDiv(cx.e, count, extent); };
  const bool groups = ir::HasGroups(attrs.source);
  rows_ = groups ? b_.CreateMul(counts.rows, e_.C32(cx.program.cluster_m)) : by(counts.rows, cx.program.cluster_m);
  columns_ = by(counts.columns, cx.program.cluster_n);
  total_ = b_.CreateMul(b_.CreateMul(rows_, columns_), counts.batches);
  own_ = OfCluster(cx, e_.CtaIndex());
  clusters_ = OfCluster(cx, e_.CtaCount());
}

WorkLoop::Place WorkLoop::At(const Unit& unit) const {
  const auto of_cta = [&](Value* index, int extent, ir::Axis axis) {
    if (extent == 1) return index;
    return b_.CreateAdd(b_.CreateMul(index, e_.C32(extent)), cx_.cluster->Index(axis));
  };
  const bool groups = unit.group != nullptr;
  Value* rows = groups ? unit.tile_rows : rows_;
  Value* per_batch = groups ? nullptr : b_.CreateMul(rows_, columns_);
  Value* band_rows = e_.C32(std::max(1, attrs_.raster / cx_.program.cluster_m));
  Value* per_band = b_.CreateMul(band_rows, columns_);
  const Quotient batch = groups ? Quotient{unit.group, b_.CreateSub(unit.tile, unit.first_tile)}
                                : Divide(unit.tile, per_batch, b_.CreateICmpULT(unit.tile, per_batch), e_.C32(0));
  const Quotient band = Divide(batch.rest, per_band, b_.CreateICmpULT(batch.rest, per_band), e_.C32(0));
  Value* first_row = b_.CreateMul(band.quotient, band_rows);
  Value* height = b_.CreateSub(rows, first_row);
  Value* whole = b_.CreateICmpUGE(height, band_rows);
  height = b_.CreateSelect(whole, band_rows, height);
  const Quotient column = Divide(band.rest, height, whole, b_.CreateUDiv(band.rest, band_rows));
  Value* own_row = of_cta(b_.CreateAdd(first_row, column.rest), cx_.program.cluster_m, ir::Axis::kM);
  Value* own_column = of_cta(column.quotient, cx_.program.cluster_n, ir::Axis::kN);
  Place place{own_row, own_column, batch.quotient};
  if (ir::HasGroups(attrs_.source)) PlaceInGroup(unit, place);
  return place;
}

// Tiles that divide the rows of their group take equally long: CTAs that compute a column of them read the same B at
// the same time.
void WorkLoop::PlaceInGroup(const Unit& unit, Place& place) const {
  Value* rows = b_.CreateSub(unit.end_row, unit.first_row);
  if (!DividesRows()) {
    place.first_row = b_.CreateMul(place.row, rows_of_tile_);
    place.rows = b_.CreateSub(rows, place.first_row);
    return;
  }
  Value* step = e_.C32(static_cast<uint32_t>(attrs_.row_step));
  Value* steps = CeilDiv(e_, rows, attrs_.row_step);
  Value* tiles = b_.CreateMul(unit.tile_rows, e_.C32(static_cast<uint32_t>(cx_.program.cluster_m)));
  const Quotient each =
      Divide(b_.CreateAdd(steps, b_.CreateSub(tiles, e_.C32(1))), tiles, b_.CreateICmpEQ(tiles, e_.C32(1)), steps);
  // Full tiles hold the group, too, where a step more is too many rows.
  place.rows = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b_.CreateMul(each.quotient, step), rows_of_tile_);
  place.first_row = b_.CreateMul(place.row, place.rows);
}

// Division by a number that only the kernel knows takes a hundred clocks; where `easy` holds, `quotient` is the result.
WorkLoop::Quotient WorkLoop::Divide(Value* number, Value* divisor, Value* easy, Value* quotient) const {
  const Variable result = e_.NewVariable(e_.I32(), quotient);
  e_.If(b_.CreateNot(easy), [&] { e_.Store(result, b_.CreateUDiv(number, divisor)); });
  Value* found = e_.Load(result);
  return {found, b_.CreateSub(number, b_.CreateMul(found, divisor))};
}

void WorkLoop::ForEach(const std::function<void(const Unit&)>& body) {
  const Source source = SourceOfUnits();
  const auto iterate = [&](Value* iteration) {
    Unit unit = source.unit(iteration);
    if (cx_.program.cluster_k > 1) TakePart(unit);
    body(unit);
    source.advance(unit);
  };
  if (source.count != nullptr) return e_.For(e_.C32(0), source.count, 1, iterate);
  const auto loop = [&] {
    e_.DoWhile([&] {
      iterate(nullptr);
      return source.more();
    });
  };
  if (source.any == nullptr) return loop();
  e_.If(source.any, loop);
}

WorkLoop::Source WorkLoop::SourceOfUnits() {
  switch (attrs_.source) {
    case ir::WorkSource::kStatic:
      return attrs_.slices == 1 ? WholeTiles() : Slices();
    case ir::WorkSource::kLaunchControl:
      return StolenTiles();
    case ir::WorkSource::kGroups:
    case ir::WorkSource::kMaskedGroups:
    case ir::WorkSource::kPartsOfK:
      return TilesOfGroups();
  }
  __builtin_unreachable();
}

// Of a tile that CTAs of the cluster share, the blocks of K of this one.
void WorkLoop::TakePart(Unit& unit) const {
  Value* parts = e_.C32(static_cast<uint32_t>(cx_.program.cluster_k));
  Value* part = cx_.cluster->Index(ir::Axis::kK);
  const auto block = [&](Value* of) { return b_.CreateUDiv(b_.CreateMul(of, blocks_), parts); };
  unit.k_begin = block(part);
  unit.k_end = block(b_.CreateAdd(part, e_.C32(1)));
  unit.number = unit.slice = e_.C32(0);
  unit.slices = e_.C32(1);
}

// Every Nth tile, N the number of clusters; a ping-pong role has one of each `pingpong_roles` of these.
WorkLoop::Source WorkLoop::WholeTiles() {
  const auto advance_of = [&](int count) { return b_.CreateMul(clusters_, e_.C32(static_cast<uint32_t>(count))); };
  const Variable tile = e_.NewVariable(
      e_.I32(), attrs_.pingpong_index == 0 ? own_ : b_.CreateAdd(own_, advance_of(attrs_.pingpong_index)));
  Value* step = attrs_.pingpong_roles == 1 ? clusters_ : advance_of(attrs_.pingpong_roles);
  // Compared with the number of tiles, which is uniform, rather than counted: a count is a division before the loop and
  // a register through all of it.
  const auto more = [this, tile] { return b_.CreateICmpULT(e_.Load(tile), total_); };
  return {.any = more(),
          .unit = [this, tile](Value*) { return Unit{.tile = e_.Load(tile)}; },
          .advance = [this, tile, step](const Unit& unit) { e_.Store(tile, b_.CreateAdd(unit.tile, step)); },
          .more = more};
}

// The slices of the tiles of the incomplete wave, then waves of whole tiles.
WorkLoop::Source WorkLoop::Slices() {
  Value* most = e_.C32(static_cast<uint32_t>(attrs_.slices));
  Value* slices = b_.CreateSelect(b_.CreateICmpULT(blocks_, most), blocks_, most);
  Value* waves = b_.CreateUDiv(total_, clusters_);
  Value* rest = b_.CreateURem(total_, clusters_);
  Value* cut = b_.CreateMul(rest, slices);
  // Slices own, own + clusters, …: those of one wave have one number, or two, so that CTAs which share an operand read
  // the same part of K at the same time.
  Value* after = b_.CreateUDiv(b_.CreateSub(b_.CreateSub(cut, own_), e_.C32(1)), clusters_);
  Value* slice_units = b_.CreateSelect(b_.CreateICmpULT(own_, cut), b_.CreateAdd(after, e_.C32(1)), e_.C32(0));
  Value* divisor = b_.CreateSelect(b_.CreateICmpEQ(rest, e_.C32(0)), e_.C32(1), rest);
  const auto unit = [=, this](Value* i) {
    Value* is_cut = b_.CreateICmpULT(i, slice_units);
    const auto choose = [&](Value* of_slice, Value* of_whole) { return b_.CreateSelect(is_cut, of_slice, of_whole); };
    Value* slice_unit = b_.CreateAdd(b_.CreateMul(i, clusters_), own_);
    Value* number = b_.CreateURem(slice_unit, divisor);
    Value* slice = choose(b_.CreateUDiv(slice_unit, divisor), e_.C32(0));
    Value* wave = b_.CreateSub(i, slice_units);
    Value* tile = choose(number, b_.CreateAdd(rest, b_.CreateAdd(b_.CreateMul(wave, clusters_), own_)));
    const auto block = [&](Value* of) { return b_.CreateUDiv(b_.CreateMul(of, blocks_), slices); };
    Unit found{.tile = tile,
               .k_begin = choose(block(slice), e_.C32(0)),
               .k_end = choose(block(b_.CreateAdd(slice, e_.C32(1))), blocks_),
               .number = number,
               .slice = slice,
               .slices = choose(slices, e_.C32(1))};
    // Every CTA of a cluster has a separate tile.
    const int cluster = cx_.program.ClusterSize();
    if (cluster > 1) {
      Value* rank = b_.CreateURem(e_.CtaIndex(), e_.C32(cluster));
      found.number = b_.CreateAdd(b_.CreateMul(number, e_.C32(cluster)), rank);
    }
    return found;
  };
  return {.count = b_.CreateAdd(slice_units, waves), .unit = unit};
}

// The grid has a cluster for each tile: its own first, then those of clusters that it steals (CLC).
WorkLoop::Source WorkLoop::StolenTiles() {
  stolen_tile_ = e_.NewVariable(e_.I32(), own_);
  another_ = e_.NewVariable(e_.I32(), e_.C32(0));
  return {.unit = [this](Value*) { return Unit{.tile = e_.Load(stolen_tile_)}; },
          .more = [this] { return b_.CreateICmpNE(e_.Load(another_), e_.C32(0)); }};
}

Value* WorkLoop::LoadOfGroup(ir::Binding base, Value* index) const {
  Value* address = b_.CreateAdd(cx_.Param(base), b_.CreateShl(b_.CreateZExt(index, e_.I64()), 2));
  return e_.LoadGlobal(address, 1, e_.True())[0];
}

// Offsets count as no smaller than the one before, and at most as the rows of D, or as K, whatever is in memory.
void WorkLoop::LoadOffset(Value* index, const Variable& offset) const {
  Value* stored = LoadOfGroup(ir::Binding::kGroupOffsets, index);
  stored = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, stored, e_.Load(offset));
  const ir::Binding most = attrs_.source == ir::WorkSource::kPartsOfK ? ir::Binding::kK : ir::Binding::kM;
  e_.Store(offset, b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, stored, cx_.Param(most)));
}

// The first row of a group and its end, where the cursor has those of the one before.
void WorkLoop::FindRows(Value* group, const GroupCursor& at) const {
  if (attrs_.source != ir::WorkSource::kMaskedGroups) {
    e_.Store(at.first_row, e_.Load(at.end_row));
    return LoadOffset(b_.CreateAdd(group, e_.C32(1)), at.end_row);
  }
  Value* most = cx_.Param(ir::Binding::kGroupRows);
  Value* rows = LoadOfGroup(ir::Binding::kGroupSizes, group);
  rows = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, rows, e_.C32(0));
  rows = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, rows, most);
  Value* first = b_.CreateMul(group, most);
  e_.Store(at.first_row, first);
  e_.Store(at.end_row, b_.CreateAdd(first, rows));
}

// Rows of tiles of clusters that a group has; every part of K has those of a whole D.
Value* WorkLoop::TileRowsOf(Value* rows) const {
  if (attrs_.source == ir::WorkSource::kPartsOfK) return rows_;
  return CeilDiv(e_, rows, rows_);
}

// Groups are found in their order, each role by itself. REQUIRES: the tile is not before the group's.
void WorkLoop::FindGroup(const GroupCursor& at) const {
  const auto beyond = [&] {
    return b_.CreateAnd(b_.CreateICmpUGE(e_.Load(at.tile), e_.Load(at.end_tile)),
                        b_.CreateICmpULT(e_.Load(at.group), batches_));
  };
  e_.If(beyond(), [&] {
    e_.DoWhile([&] {
      e_.Store(at.first_tile, e_.Load(at.end_tile));
      if (scale_blocks_) e_.Store(*at.first_block, e_.Load(*at.end_block));
      Value* group = e_.Load(at.group);
      e_.Store(at.group, b_.CreateAdd(group, e_.C32(1)));
      FindRows(group, at);
      Value* rows = b_.CreateSub(e_.Load(at.end_row), e_.Load(at.first_row));
      Value* tiles = b_.CreateMul(TileRowsOf(rows), columns_);
      e_.Store(at.end_tile, b_.CreateAdd(e_.Load(at.first_tile), tiles));
      if (!scale_blocks_) return beyond();
      Value* stored = attrs_.source == ir::WorkSource::kGroups ? rows : cx_.Param(ir::Binding::kGroupRows);
      constexpr int kBlock = ir::ScaleBlock::kRows;
      Value* blocks = CeilDiv(e_, stored, kBlock);
      e_.Store(*at.end_block, b_.CreateAdd(e_.Load(*at.first_block), blocks));
      return beyond();
    });
  });
}

// An empty part has a block of zeros: a sum begins with a product.
Value* WorkLoop::BlocksOfPart(const GroupCursor& at) const {
  Value* length = b_.CreateSub(e_.Load(at.end_row), e_.Load(at.first_row));
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, CeilDiv(e_, length, block_), e_.C32(1));
}

// Goes on by so many tiles of this CTA, which other roles have. Their slots of a ring are as many as their blocks.
void WorkLoop::PassTiles(const GroupCursor& at, int tiles) const {
  e_.Store(*at.passed, e_.C32(0));
  for (int i = 0; i < tiles; ++i) {
    FindGroup(at);
    e_.Store(*at.passed, b_.CreateAdd(e_.Load(*at.passed), BlocksOfPart(at)));
    e_.Store(at.tile, b_.CreateAdd(e_.Load(at.tile), clusters_));
  }
}

// Every Nth tile as in WholeTiles, but how many there are shows only at the end of the last group. `group` counts the
// groups whose end is known.
WorkLoop::Source WorkLoop::TilesOfGroups() {
  const auto advance_of = [&](int count) { return b_.CreateMul(clusters_, e_.C32(static_cast<uint32_t>(count))); };
  const auto zero = [&] { return e_.NewVariable(e_.I32(), e_.C32(0)); };
  const bool parts = block_ != nullptr;
  const int index = attrs_.pingpong_index;
  GroupCursor at{.tile = e_.NewVariable(e_.I32(), parts ? own_ : b_.CreateAdd(own_, advance_of(index))),
                 .group = zero(),
                 .first_row = zero(),
                 .end_row = zero(),
                 .first_tile = zero(),
                 .end_tile = zero()};
  if (scale_blocks_) {
    at.first_block = zero();
    at.end_block = zero();
  }
  if (parts) at.passed = zero();
  Value* step = parts ? clusters_ : advance_of(attrs_.pingpong_roles);
  if (attrs_.source != ir::WorkSource::kMaskedGroups) LoadOffset(e_.C32(0), at.end_row);
  if (parts) PassTiles(at, index);
  FindGroup(at);
  const auto more = [this, at] { return b_.CreateICmpULT(e_.Load(at.tile), e_.Load(at.end_tile)); };
  return {.any = more(),
          .unit =
              [this, at](Value*) {
                Unit unit{.tile = e_.Load(at.tile)};
                unit.group = b_.CreateSub(e_.Load(at.group), e_.C32(1));
                unit.first_row = e_.Load(at.first_row);
                unit.end_row = e_.Load(at.end_row);
                unit.first_tile = e_.Load(at.first_tile);
                if (scale_blocks_) unit.first_block = e_.Load(*at.first_block);
                Value* rows = b_.CreateSub(unit.end_row, unit.first_row);
                unit.tile_rows = TileRowsOf(rows);
                if (block_ == nullptr) return unit;
                unit.k_blocks = BlocksOfPart(at);
                unit.k_passed = e_.Load(*at.passed);
                return unit;
              },
          .advance =
              [this, at, step](const Unit& unit) {
                e_.Store(at.tile, b_.CreateAdd(unit.tile, step));
                if (block_ != nullptr) PassTiles(at, attrs_.pingpong_roles - 1);
                FindGroup(at);
              },
          .more = more};
}

void WorkLoop::Steal(const Emitter::ClcResponse& response) {
  e_.Store(another_, response.canceled);
  e_.Store(stolen_tile_, OfCluster(cx_, response.first_cta));
}

}  // namespace laneshift::compiler
