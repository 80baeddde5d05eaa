// Rows of a staged copy to D, by the threads of a warp: in 16-byte chunks where rows of D are whole, aligned ones,
// else in words at multiples of four bytes, wherever a row begins.
#include <algorithm>
#include <vector>

#include "compiler/emit/emit_place.h"
#include "compiler/emit/emit_program.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;

// How the lanes of a warp divide the rows of a copy: adjacent lanes have adjacent chunks of one row.
class RowLanes {
 public:
  // `sharers` warps divide the rows among them.
  RowLanes(const RoleContext& cx, const ir::SharedLayout& layout, int sharers, ir::RowMap rows, Value* copy_base,
           Value* row, Value* column, Value* batch, int piece_bytes)
      : cx_(cx),
        e_(cx.e),
        b_(cx.e.ir()),
        layout_(layout),
        bytes_(layout.ElementBytes()),
        pieces_(layout.Span() / piece_bytes),
        row_map_(rows),
        copy_base_(copy_base),
        row_(row),
        column_(column),
        batch_(batch),
        at_once_(sharers * kWarpThreads / pieces_),
        piece_(b_.CreateURem(cx.lane, e_.C32(pieces_))),
        first_(FirstOf(sharers)) {}

 protected:
  // Where a row of the copy is in D from a column on: its address, and whether it is inside.
  struct Place {
    Value *address, *inside;
  };
  Place PlaceOf(Value* own, Value* column) {
    const RowPlace place = PlaceRow(cx_, ir::Operand::kD, row_map_, b_.CreateAdd(row_, own), batch_);
    Value* element = b_.CreateAdd(place.offset, b_.CreateZExt(column, e_.I64()));
    Value* address = b_.CreateAdd(cx_.Param(Binding::kBaseD), b_.CreateMul(element, e_.C64(bytes_)));
    return {address, InLiveRow(cx_, own, place.inside)};
  }
  // Of a row of the copy, from a byte on.
  Value* Staged(Value* own, Value* byte) { return e_.Offset(copy_base_, e_.TileOffset(layout_, own, byte)); }

  // Rows that the warps store at once.
  int RowsAtOnce() const { return at_once_; }
  // Calls `store` with the lane's row, where the copy has it.
  template <typename StoreRow>
  void StoreIfThere(Value* own, const StoreRow& store) {
    if (layout_.outer % RowsAtOnce() == 0) return store(own);
    // A copy of fewer rows than are stored at once, or whose last ones are fewer.
    e_.If(b_.CreateICmpULT(own, e_.C32(layout_.outer)), [&] { store(own); });
  }

  const RoleContext& cx_;
  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const ir::SharedLayout& layout_;
  const int bytes_, pieces_;  // of an element; of a row
  const ir::RowMap row_map_;
  Value* const copy_base_;
  Value *const row_, *const column_, *const batch_;
  const int at_once_;
  Value* const piece_;  // of the lane, in its row
  Value* const first_;  // row of the lane

 private:
  Value* FirstOf(int sharers) {
    Value* of_warp = b_.CreateUDiv(cx_.lane, e_.C32(pieces_));
    if (sharers == 1) return of_warp;
    Value* warp = b_.CreateURem(cx_.warp, e_.C32(sharers));
    return b_.CreateAdd(b_.CreateMul(warp, e_.C32(kWarpThreads / pieces_)), of_warp);
  }
};

class PieceStore : RowLanes {
 public:
  static constexpr int kBytes = 16;
  PieceStore(const RoleContext& cx, const ir::SharedLayout& layout, int sharers, ir::RowMap rows, Value* copy_base,
             Value* row, Value* column, Value* batch)
      : RowLanes(cx, layout, sharers, rows, copy_base, row, column, batch, kBytes) {}

  // The first `row_bytes` of each row.
  void Emit(int row_bytes) {
    if (row_bytes == layout_.Span()) return EmitRows();
    e_.If(b_.CreateICmpULT(piece_, e_.C32(static_cast<uint32_t>(row_bytes / kBytes))), [&] { EmitRows(); });
  }

 private:
  void EmitRows() {
    Value* at = b_.CreateAdd(column_, b_.CreateMul(piece_, e_.C32(kBytes / bytes_)));
    Value* column_inside = b_.CreateICmpULT(at, ColumnsOfD(cx_));
    for (int i = 0; i < layout_.outer; i += RowsAtOnce()) {
      StoreIfThere(b_.CreateAdd(first_, e_.C32(i)), [&](Value* own) {
        const std::vector<Value*> words = e_.LoadShared(Staged(own, b_.CreateShl(piece_, 4)));
        const Place place = PlaceOf(own, at);
        e_.StoreGlobal(place.address, words, b_.CreateAnd(place.inside, column_inside));
      });
    }
  }
};

// A row of D begins `shift` bytes after a word. Word w of it consists of the bytes of the copy from 4 * w - shift on;
// before the first whole word and after the last one are elements, fewer than two words of them.
class WordStore : RowLanes {
 public:
  static constexpr int kBytes = 4;
  WordStore(const RoleContext& cx, const ir::SharedLayout& layout, ir::RowMap rows, Value* copy_base, Value* row,
            Value* column, Value* batch)
      : RowLanes(cx, layout, 1, rows, copy_base, row, column, batch, kBytes) {
    Value* columns = ColumnsOfD(cx);
    Value* left = b_.CreateSelect(b_.CreateICmpULT(column, columns), b_.CreateSub(columns, column), e_.C32(0));
    Value* most = e_.C32(layout.Span() / bytes_);
    row_bytes_ = b_.CreateMul(b_.CreateSelect(b_.CreateICmpULT(left, most), left, most), e_.C32(bytes_));
    byte_ = b_.CreateShl(piece_, 2);
  }

  // Rolled, since addresses of all rows would be kept for the next panels of a tile. The loads of two rows overlap.
  void Emit() {
    const int loads = std::clamp(layout_.outer / RowsAtOnce(), 1, 2);
    e_.For(e_.C32(0), e_.C32(layout_.outer), loads * RowsAtOnce(), [&](Value* i) {
      StoreIfThere(b_.CreateAdd(first_, i), [&](Value* own) {
        std::vector<Stored> stored;
        for (int j = 0; j < loads; ++j) stored.push_back(LoadRow(b_.CreateAdd(own, e_.C32(j * RowsAtOnce()))));
        for (const Stored& row : stored) StoreRow(row);
      });
    });
  }

 private:
  struct Stored {
    Value *address, *word, *whole;                                    // the lane's word
    Value *end_address = nullptr, *end = nullptr, *is_end = nullptr;  // its element at an end
  };

  Value* Wide(Value* number) { return b_.CreateZExt(number, e_.I64()); }

  Stored LoadRow(Value* own) {
    const Place place = PlaceOf(own, column_);
    Value* shift = bytes_ == kBytes ? e_.C32(0) : b_.CreateAnd(b_.CreateTrunc(place.address, e_.I32()), e_.C32(3));
    Value* word_end = b_.CreateAdd(byte_, e_.C32(kBytes));
    Value* fits = b_.CreateICmpULE(word_end, b_.CreateAdd(row_bytes_, shift));
    Stored stored{};
    stored.address = b_.CreateAdd(b_.CreateSub(place.address, Wide(shift)), Wide(byte_));
    stored.whole = b_.CreateAnd(place.inside, b_.CreateAnd(b_.CreateICmpUGE(byte_, shift), fits));
    Value* high = e_.LoadSharedWord(Staged(own, byte_));
    if (bytes_ == kBytes) {
      stored.word = high;
      return stored;
    }
    // The first lane of a row has no word before its own, and then stores none.
    Value* back = b_.CreateAnd(b_.CreateICmpNE(shift, e_.C32(0)), b_.CreateICmpNE(byte_, e_.C32(0)));
    Value* low = e_.LoadSharedWord(Staged(own, b_.CreateSub(byte_, b_.CreateSelect(back, e_.C32(4), e_.C32(0)))));
    stored.word =
        e_.FunnelShiftRight(high, low, b_.CreateAnd(b_.CreateShl(b_.CreateSub(e_.C32(4), shift), 3), e_.C32(31)));
    LoadEnd(own, place, shift, stored);
    return stored;
  }

  void LoadEnd(Value* own, const Place& place, Value* shift, Stored& stored) {
    Value* head = b_.CreateAnd(b_.CreateSub(e_.C32(4), shift), e_.C32(3));
    head = b_.CreateSelect(b_.CreateICmpULT(head, row_bytes_), head, row_bytes_);
    Value* tail = b_.CreateAnd(b_.CreateSub(row_bytes_, head), e_.C32(3));
    Value* first = b_.CreateMul(piece_, e_.C32(bytes_));
    Value* of_tail = b_.CreateAdd(b_.CreateSub(row_bytes_, b_.CreateAdd(head, tail)), first);
    Value* byte = b_.CreateSelect(b_.CreateICmpULT(first, head), first, of_tail);
    stored.is_end = b_.CreateAnd(place.inside, b_.CreateICmpULT(first, b_.CreateAdd(head, tail)));
    byte = b_.CreateSelect(stored.is_end, byte, e_.C32(0));
    Value* word = e_.LoadSharedWord(Staged(own, b_.CreateAnd(byte, e_.C32(~3u))));
    Value* element = b_.CreateLShr(word, b_.CreateShl(b_.CreateAnd(byte, e_.C32(3)), 3));
    if (bytes_ == 1) element = b_.CreateAnd(element, e_.C32(0xff));
    stored.end = b_.CreateTrunc(element, e_.I16());
    stored.end_address = b_.CreateAdd(place.address, Wide(byte));
  }

  void StoreRow(const Stored& stored) {
    e_.StoreGlobal(stored.address, {stored.word}, stored.whole);
    if (stored.end != nullptr) e_.StoreGlobalElement(bytes_, stored.end_address, stored.end, stored.is_end);
  }

  Value* row_bytes_;  // of the copy's rows, that D has
  Value* byte_;       // of the lane's word
};

}  // namespace

void EmitStoreRows(const RoleContext& cx, const ir::Buffer& buffer, const ir::StoreRowsAttrs& attrs, Value* copy_base,
                   Value* row, Value* column, Value* batch) {
  cx.e.WarpSync();  // all lanes have staged theirs
  if (attrs.words) {
    WordStore(cx, buffer.layout, attrs.rows, copy_base, row, column, batch).Emit();
  } else {
    PieceStore(cx, buffer.layout, 1, attrs.rows, copy_base, row, column, batch).Emit(buffer.layout.RowBytes());
  }
  cx.e.WarpSync();  // the copy may be written again
}

void EmitRowsOfBox(const RoleContext& cx, const ir::Buffer& buffer, const ir::BulkStoreAttrs& attrs, Value* copy_base,
                   Value* row, Value* column, Value* batch) {
  if (buffer.sharers > 1) {
    // Each warp has its own columns; the box begins with those of the first.
    auto& b = cx.e.ir();
    Value* before = b.CreateURem(cx.warp, cx.e.C32(buffer.sharers));
    column = b.CreateSub(column, b.CreateMul(before, cx.e.C32(buffer.layout.inner / buffer.sharers)));
  }
  PieceStore(cx, buffer.layout, buffer.sharers, attrs.rows, copy_base, row, column, batch)
      .Emit(cx.program.FindParam(attrs.map)->box.RowBytes());
}

}  // namespace laneshift::compiler
