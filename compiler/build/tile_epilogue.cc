#include "compiler/build/tile_epilogue.h"

#include <algorithm>
#include <utility>

#include "base/integer_math.h"

namespace laneshift::compiler {

using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::ValueId;

void TileEpilogue::End(Builder& b, const Role& role) const {
  if (plan_.bulk_stores) b.BulkWait({}, {.pending = 0, .buffer = role.buffer});
}

std::vector<ValueId> TileEpilogue::WarpRows(Builder& b, const Corner& corner) const {
  std::vector<ValueId> rows = {
      b.Add({plan_.rows_along_n ? corner.column : corner.row, b.WarpRow({}, {.rows = steps_.RowsOfWarp()})})};
  for (int block = 1; block < plan_.blocks; ++block)
    rows.push_back(b.Add({rows.front(), b.Constant(block * kWarpRows * plan_.warps)}));
  return rows;
}

std::vector<ScaleStart> TileEpilogue::ScaleStarts(Builder& b, int rows_of_part) const {
  const ValueId first = b.WarpRow({}, {.rows = steps_.RowsOfWarp()});
  std::vector<ScaleStart> places;
  for (int block = 0; block < plan_.blocks; ++block) {
    const int begin = block * kWarpRows * plan_.warps, part = plan_.rows_along_n ? 0 : begin / rows_of_part;
    const int within = begin - part * rows_of_part;
    const ValueId row = within == 0 ? first : b.Add({first, b.Constant(within)});
    places.push_back(plan_.rows_along_n ? ScaleStart{ir::kNoValue, row} : ScaleStart{row, ir::kNoValue, part});
  }
  return places;
}

// Those with columns that the other accumulator has, too, are read first: the last ones of the first accumulator, the
// first ones of the second. Then the MMAs of the next tile may begin.
void TileEpilogue::ForEachPanelOfOverlap(Builder& b, const Accumulator& accumulator,
                                         const std::function<void(const Panel&)>& write) const {
  const int panel = plan_.staging.panel, all = plan_.columns / panel;
  const int common = base::CeilDiv(accumulator.overlap_columns, panel);
  const ValueId stage = b.SlotStage({accumulator.slot});
  const ValueId twice = b.Mul({stage, b.Constant(2)});
  const ValueId last = b.Mul({b.Sub({b.Constant(1), stage}), b.Constant(all - 1)});
  const auto panel_of = [&](ValueId turn) {
    const ValueId number = b.Sub({b.Add({last, b.Mul({twice, turn})}), turn});
    return Panel{.number = number, .first = b.Mul({number, b.Constant(panel)}), .turn = turn, .columns = panel};
  };
  const auto write_turns = [&](int first, int end) {
    const ValueId end_turn = b.Constant(end);
    ForEach(b, b.Constant(first), end_turn, [&](ValueId turn) { write(panel_of(turn)); });
  };
  if (plan_.reads_overlap_first) {
    std::vector<Panel> read;
    for (int turn = 0; turn < common; ++turn) {
      read.push_back(panel_of(b.Constant(turn)));
      std::vector<ValueId> fragments;
      ForEachPart(b, accumulator.slot, read.back(), [&](const Part& part) { fragments.push_back(part.fragment); });
      read.back().fragments = std::move(fragments);
    }
    b.Release({accumulator.overlap});
    for (const Panel& each : read) write(each);
  } else {
    write_turns(0, common);
    b.Release({accumulator.overlap});
  }
  if (common < all) write_turns(common, all);
}

void TileEpilogue::ForEachPanel(Builder& b, const Accumulator& accumulator,
                                const std::function<void(const Panel&)>& write) const {
  if (accumulator.overlap != ir::kNoValue) return ForEachPanelOfOverlap(b, accumulator, write);
  const int all = plan_.columns, panel = plan_.staging.panel;
  if (InLoop()) {
    const int whole = all / panel, rest = all % panel;
    ForEach(b, b.Constant(whole), [&](ValueId number) {
      write({.number = number, .first = b.Mul({number, b.Constant(panel)}), .turn = number, .columns = panel});
    });
    if (rest == 0) return;
    const ValueId number = b.Constant(whole);
    write({.number = number, .first = b.Constant(whole * panel), .turn = number, .columns = rest});
    return;
  }
  // Registers cannot be indexed at run time: unrolled. Blocks of the same columns follow each other, so that what is
  // known of columns is held for one panel only.
  int index = 0;
  for (int column = 0; column < all; column += panel) {
    for (int block = 0; block < plan_.blocks; ++block, ++index) {
      const ValueId number = b.Constant(index);
      write({.number = number,
             .first = b.Constant(block * all + column),
             .turn = number,
             .columns = std::min(panel, all - column),
             .block = block,
             .column = column,
             .index = index});
    }
  }
}

// Those that this CTA writes for its cluster: every one of `cluster_k_` panels, of each block.
void TileEpilogue::ForEachOwnPanel(Builder& b, ValueId sums, const std::function<void(const Panel&)>& write) const {
  const int all = plan_.columns, panel = plan_.staging.panel, panels = all / panel;
  const ValueId rank = b.ClusterIndex({}, {.axis = ir::Axis::kK});
  const ValueId step = b.Constant(cluster_k_);
  const ValueId count = panels % cluster_k_ == 0 ? b.Constant(panels / cluster_k_)
                                                 : b.Div({b.Sub({b.Constant(panels + cluster_k_ - 1), rank}), step});
  for (int block = 0; block < plan_.blocks; ++block) {
    ForEach(b, count, [&](ValueId round) {
      const ValueId number = b.Add({rank, b.Mul({round, step})});
      Panel own{.number = number, .first = b.Mul({number, b.Constant(panel)}), .turn = round, .columns = panel};
      own.block = block;
      own.sums = sums;
      own.start = own.first;
      if (block > 0) {
        own.first = b.Add({own.first, b.Constant(block * all)});
        own.turn = b.Add({round, b.Mul({count, b.Constant(block)})});
      }
      write(own);
    });
  }
}

void TileEpilogue::ForEachPart(Builder& b, ValueId accumulator, const Panel& panel,
                               const std::function<void(const Part&)>& write) const {
  int offset = 0, number = 0;
  for (const int columns : plan_.SubtilesOf(panel.columns)) {
    Part part{.fragment = ir::kNoValue, .first = panel.first, .offset = offset, .columns = columns, .number = number};
    if (offset > 0) part.first = b.Add({panel.first, b.Constant(offset)});
    const int column = panel.block * plan_.columns + panel.column + offset;
    if (!panel.fragments.empty()) {
      part.fragment = panel.fragments[static_cast<size_t>(number)];
    } else if (panel.sums != ir::kNoValue) {
      part.fragment = b.AddClusterSums({panel.sums, part.first}, {.columns = columns, .fragment = plan_.fragment});
    } else if (InLoop()) {
      part.fragment = b.AccRead({accumulator, part.first}, {.columns = columns, .fragment = plan_.fragment});
    } else if (terms_.promotes) {
      part.fragment = b.ReadPromoted({}, {.column = column, .columns = columns, .fragment = plan_.fragment});
    } else {
      part.fragment = b.AccRegisters({}, {.column = column, .columns = columns});
    }
    write(part);
    offset += columns;
    ++number;
  }
}

// Of a tile that is cut only one of its CTAs reads them.
void TileEpilogue::Prefetch(Builder& b, const std::function<Corner()>& corner_of) const {
  if (!steps_.Prefetches()) return;
  const Corner corner = corner_of();
  if (!corner.IsPart()) steps_.Prefetch(b, corner);
}

void TileEpilogue::WriteTile(Builder& b, const Role& role, const Accumulator& accumulator, const Corner& corner,
                             const std::vector<ValueId>& warp_rows) const {
  const Source source{role, accumulator, corner};
  if (sharing_.channel >= 0) return ExchangeSums(b, source, warp_rows);
  if (!corner.IsSlice()) {
    WritePanels(b, source, warp_rows);
  } else {
    StorePartials(b, source);
    // Whoever comes last writes the tile, so that nobody waits; the sum is always in the order of the sections. Where
    // another kernel adds the sections, only a tile of one section is written here.
    b.If({sharing_.slices_apart ? b.Less({corner.slices, b.Constant(2)})
                                : b.PartialArrive({corner.number, corner.slices}, {.sharers = plan_.staging.sharers})});
    b.InBody([&] { WritePanels(b, source, warp_rows); });
  }
  if (InLoop()) b.Release({accumulator.slot});
}

// Of a tile that is cut, the sums of this CTA's section.
void TileEpilogue::StorePartials(Builder& b, const Source& source) const {
  const Corner& corner = source.corner;
  b.If({b.Less({b.Constant(1), corner.slices})});
  b.InBody([&] {
    const ValueId partial = b.Add({b.Mul({corner.number, corner.slices}), corner.slice});
    ForEachPanel(b, source.accumulator, [&](const Panel& panel) {
      ForEachPart(b, source.accumulator.slot, panel, [&](const Part& part) {
        b.PartialStore({part.fragment, part.first, partial});
      });
    });
  });
}

// The sums of this CTA's part of K go to the others of its cluster, and of some panels those of all come from them.
void TileEpilogue::ExchangeSums(Builder& b, const Source& source, const std::vector<ValueId>& warp_rows) const {
  const ValueId own = b.Put({}, {.channel = sharing_.channel});
  ForEachPanel(b, source.accumulator, [&](const Panel& panel) {
    ForEachPart(b, source.accumulator.slot, panel, [&](const Part& part) {
      b.StoreClusterSums({own, part.fragment, part.first});
    });
  });
  b.Send({own});
  if (InLoop()) b.Release({source.accumulator.slot});
  const ValueId sums = b.Take({}, {.channel = sharing_.channel});
  WritePanels(b, {source.role, source.accumulator, source.corner, sums}, warp_rows);
  b.Release({sums});
}

// A tile begins with the first copy: where the panels of a loop are not a multiple of the copies, the last store of the
// tile before may still read that one. Where sums are in registers, the products of this tile came in between.
bool TileEpilogue::Alternates() const {
  const int panels = base::CeilDiv(plan_.columns, plan_.staging.panel);
  return InLoop() && sharing_.channel < 0 && panels % plan_.staging.copies == 0;
}

// Until the store that has read the copy at hand last has done so.
void TileEpilogue::AwaitCopy(Builder& b, const Role& role, const Panel& panel) const {
  const int copies = plan_.staging.copies;
  if (panel.index < 0 || panel.index >= copies) b.BulkWait({}, {.pending = copies - 1, .buffer = role.buffer});
}

void TileEpilogue::WritePanels(Builder& b, const Source& source, const std::vector<ValueId>& warp_rows) const {
  const std::vector<ValueId> owns = warp_rows.empty() ? WarpRows(b, source.corner) : warp_rows;
  std::vector<std::vector<ValueId>> starts(owns.size());
  for (size_t block = 0; block < owns.size() && plan_.bulk_stores && !plan_.rows_along_n; ++block) {
    starts[block] = output_.StoreStart(b, owns[block], source.corner);
  }
  if (plan_.bulk_stores && !Alternates()) b.BulkWait({}, {.pending = 0, .buffer = source.role.buffer});
  const auto write = [&](const Panel& panel) {
    const auto block = static_cast<size_t>(panel.block);
    WritePanel(b, source, panel, owns[block], starts[block]);
  };
  source.sums != ir::kNoValue ? ForEachOwnPanel(b, source.sums, write) : ForEachPanel(b, source.accumulator, write);
}

// `own`: where the accumulator's rows that the warp holds begin in D; `start`: the same for bulk stores, unless rows of
// D are columns of the accumulator.
void TileEpilogue::WritePanel(Builder& b, const Source& source, const Panel& panel, ValueId own,
                              std::vector<ValueId> start) const {
  const Corner& corner = source.corner;
  const Staging& staging = plan_.staging;
  const int buffer = source.role.buffer;
  ValueId copy = ir::kNoValue;
  Subtile first{};
  ForEachPart(b, source.accumulator.slot, panel, [&](const Part& part) {
    Subtile subtile = SubtileOf(b, panel, part, corner, own);
    if (plan_.bulk_stores && plan_.rows_along_n) start = output_.StoreStart(b, subtile.row, corner);
    steps_.Write(b, subtile, source.role.scales);
    if (store_ == StorePath::kDirect) {
      // The place of a column in a patch would be computed early for all of a tile.
      if (terms_.patches) subtile.column = b.Anew({subtile.column});
      b.GlobalStore(subtile.Operands(), steps_.AccessOf(Operand::kD, part.columns));
      return;
    }
    if (part.offset == 0) {
      first = subtile;
      copy = b.Rem({panel.turn, b.Constant(staging.copies)});
      if (plan_.bulk_stores) AwaitCopy(b, source.role, panel);
    }
    b.StageStore({subtile.fragment, copy}, {.buffer = buffer, .column = part.offset / plan_.columns_per_output});
  });
  if (plan_.bulk_stores) {
    const Binding map = panel.columns < staging.panel ? Binding::kMapDRest : Binding::kMapD;
    output_.BulkStore(b, copy, first.column, corner, start, {.buffer = buffer, .map = map});
  } else if (copy != ir::kNoValue) {
    const int whole = 16 / static_cast<int>(DataTypeBytes(terms_.type));
    const bool words = output_.AccessWidthOf(Operand::kD, whole) < whole;
    b.StoreRows({copy, first.row, first.column, corner.batch}, {.buffer = buffer, .rows = terms_.rows, .words = words});
  }
}

// A part of a panel at its place in the tile; of sections, their sum.
Subtile TileEpilogue::SubtileOf(Builder& b, const Panel& panel, const Part& part, const Corner& corner,
                                ValueId own) const {
  const bool along_n = plan_.rows_along_n;
  const bool in_cluster = panel.start != ir::kNoValue;
  ValueId first = part.first;
  if (panel.block > 0) {
    const ValueId offset = b.Constant(panel.column + part.offset);
    first = in_cluster ? b.Add({panel.start, offset}) : offset;
  }
  Subtile subtile{.fragment = part.fragment, .row = own, .column = own, .batch = corner.batch, .columns = part.columns};
  subtile.own = own;
  subtile.tile = along_n ? corner.row : corner.column;
  subtile.part = part.number;
  if (terms_.orders_reductions)
    subtile.panel = InLoop() || in_cluster ? panel.number : b.Constant(panel.column / plan_.staging.panel);
  (along_n ? subtile.row : subtile.column) = b.Add({subtile.tile, first});
  if (corner.IsSlice() && !sharing_.slices_apart) {
    subtile.fragment = b.PartialSum({part.fragment, part.first, b.Mul({corner.number, corner.slices}), corner.slices});
  }
  return subtile;
}

}  // namespace laneshift::compiler
