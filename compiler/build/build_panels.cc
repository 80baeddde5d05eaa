// How the kernel builder writes what leaves of a tile: panels of the accumulator, each in pieces, through a staging
// buffer or straight to D.
#include <algorithm>

#include "compiler/build/kernel_builder.h"

namespace laneshift::compiler {

using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::ValueId;

// Of the whole accumulator, as many as are treated at once.
void KernelBuilder::ForEachColumns(const std::function<void(int column, int columns)>& write) const {
  int column = 0;
  for (int block = 0; block < Blocks(); ++block) {
    for (const int columns : staging_.PiecesOf(program_.Columns(), in_tensor_memory_)) {
      write(column, columns);
      column += columns;
    }
  }
}

void KernelBuilder::ForEachPanel(Builder& b, const std::function<void(const Panel&)>& write) const {
  const int all = program_.Columns(), panel = staging_.panel;
  if (InLoop()) {
    const int whole = all / panel, rest = all % panel;
    ForEach(b, b.Constant(whole), [&](ValueId number) {
      write({.number = number, .first = b.Mul({number, b.Constant(panel)}), .columns = panel});
    });
    if (rest > 0) write({.number = b.Constant(whole), .first = b.Constant(whole * panel), .columns = rest});
    return;
  }
  // Registers cannot be indexed at run time: unrolled. Blocks of the same columns follow each other, so that what is
  // known of columns is held for one panel alone.
  int index = 0;
  for (int column = 0; column < all; column += panel) {
    for (int block = 0; block < Blocks(); ++block, ++index) {
      write({.number = b.Constant(index),
             .first = b.Constant(block * all + column),
             .columns = std::min(panel, all - column),
             .block = block,
             .column = column,
             .index = index});
    }
  }
}

void KernelBuilder::ForEachPart(Builder& b, ValueId accumulator, const Panel& panel,
                                const std::function<void(const Part&)>& write) const {
  int offset = 0, number = 0;
  for (const int columns : staging_.PiecesOf(panel.columns, in_tensor_memory_)) {
    Part part{.fragment = ir::kNoValue, .first = panel.first, .offset = offset, .columns = columns, .number = number};
    if (offset > 0) part.first = b.Add({panel.first, b.Constant(offset)});
    const int column = panel.block * program_.Columns() + panel.column + offset;
    if (InLoop()) {
      part.fragment = b.AccRead({accumulator, part.first}, {.columns = columns, .fragment = fragment_});
    } else if (terms_.promotes) {
      part.fragment = b.ReadSums({}, {.column = column, .columns = columns, .fragment = fragment_});
    } else {
      part.fragment = b.AccRegisters({}, {.column = column, .columns = columns});
    }
    write(part);
    offset += columns;
    ++number;
  }
}

void KernelBuilder::WriteTile(Builder& b, ValueId accumulator, const Corner& corner) {
  if (!SharesTiles()) {
    WritePanels(b, accumulator, corner);
  } else {
    b.If({b.Less({b.Constant(1), corner.sections})});
    b.InBody([&] {
      const ValueId piece = b.Add({b.Mul({corner.number, corner.sections}), corner.section});
      ForEachPanel(b, [&](const Panel& panel) {
        ForEachPart(b, accumulator, panel, [&](const Part& part) {
          b.PartialStore({part.fragment, part.first, piece});
        });
      });
    });
    // Whoever comes last writes the tile, so that nobody waits; the sum is always in the order of the sections.
    const ValueId last = b.PartialArrive({corner.number, corner.sections}, {.sharers = staging_.sharers});
    b.If({last});
    b.InBody([&] { WritePanels(b, accumulator, corner); });
  }
  if (InLoop()) b.Release({accumulator});
}

// A tile begins with the first copy: where the panels of a loop are no multiple of the copies, the last store of the
// tile before may still read that one. Where sums are in registers, the products of this tile came in between.
bool KernelBuilder::Alternates() const {
  const int panels = (program_.Columns() + staging_.panel - 1) / staging_.panel;
  return InLoop() && panels % staging_.copies == 0;
}

// Until the store that has read the copy at hand last has done so.
void KernelBuilder::AwaitCopy(Builder& b, const Panel& panel) const {
  if (InLoop() || panel.index >= staging_.copies) b.BulkWait({}, {.pending = staging_.copies - 1, .buffer = out_});
}

void KernelBuilder::WritePanels(Builder& b, ValueId accumulator, const Corner& corner) {
  const ValueId first_own = terms_.promotes ? place_.row : FirstRow(b, corner);
  const bool bulk = schedule_.d_store == StorePath::kTma;
  std::vector<ValueId> owns = {first_own};
  for (int block = 1; block < Blocks(); ++block)
    owns.push_back(b.Add({first_own, b.Constant(block * kWarpRows * EpilogueWarps())}));
  std::vector<std::vector<ValueId>> starts;
  for (const ValueId own : owns) {
    if (bulk && !RowsAlongN()) starts.push_back(StoreStart(b, own, corner));
  }
  if (bulk && !Alternates()) b.BulkWait({}, {.pending = 0, .buffer = out_});
  ForEachPanel(b, [&](const Panel& panel) {
    const auto block = static_cast<size_t>(panel.block);
    WritePanel(b, accumulator, panel, corner, owns[block], starts.empty() ? std::vector<ValueId>{} : starts[block]);
  });
}

// `own`: where the accumulator's rows that the warp holds begin in D; `start`: the same for bulk stores, unless rows of
// D are columns of the accumulator.
void KernelBuilder::WritePanel(Builder& b, ValueId accumulator, const Panel& panel, const Corner& corner, ValueId own,
                               std::vector<ValueId> start) {
  const bool bulk = schedule_.d_store == StorePath::kTma;
  ValueId copy = ir::kNoValue;
  Piece first{};
  ForEachPart(b, accumulator, panel, [&](const Part& part) {
    Piece piece = PieceOf(b, panel, part, corner, own);
    if (bulk && RowsAlongN()) start = StoreStart(b, piece.row, corner);
    Finish(b, piece);
    if (schedule_.d_store == StorePath::kDirect) {
      b.GlobalStore(piece.Operands(), GlobalAccess(Operand::kD, part.columns));
      return;
    }
    if (part.offset == 0) {
      first = piece;
      copy = b.Rem({panel.number, b.Constant(staging_.copies)});
      if (bulk) AwaitCopy(b, panel);
    }
    b.StageStore({piece.fragment, copy}, {.buffer = out_, .column = part.offset / JoinedColumns()});
  });
  if (bulk) {
    const Binding map = panel.columns < staging_.panel ? Binding::kMapDRest : Binding::kMapD;
    WriteBulkStore(b, copy, first.column, corner, start, {.buffer = out_, .map = map});
  } else if (copy != ir::kNoValue) {
    const int whole = 16 / static_cast<int>(DataTypeBytes(terms_.type));
    const bool words = AccessWidthOf(Operand::kD, whole) < whole;
    b.StoreRows({copy, first.row, first.column, corner.batch}, {.buffer = out_, .rows = terms_.rows, .words = words});
  }
}

// A part of a panel at its place in the tile; of sections, their sum.
KernelBuilder::Piece KernelBuilder::PieceOf(Builder& b, const Panel& panel, const Part& part, const Corner& corner,
                                            ValueId own) const {
  const ValueId first = panel.block > 0 ? b.Constant(panel.column + part.offset) : part.first;
  Piece piece{.fragment = part.fragment, .row = own, .column = own, .batch = corner.batch, .columns = part.columns};
  piece.own = own;
  piece.tile = RowsAlongN() ? corner.row : corner.column;
  piece.part = part.number;
  if (terms_.orders_sums) piece.panel = InLoop() ? panel.number : b.Constant(panel.column / staging_.panel);
  (RowsAlongN() ? piece.row : piece.column) = b.Add({RowsAlongN() ? corner.row : corner.column, first});
  if (SharesTiles()) {
    piece.fragment =
        b.PartialSum({part.fragment, part.first, b.Mul({corner.number, corner.sections}), corner.sections});
  }
  return piece;
}

}  // namespace laneshift::compiler
