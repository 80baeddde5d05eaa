// Rows of any alignment, copied to rows of 16-byte chunks by 16-byte accesses.
#include <vector>

#include "base/check.h"
#include "compiler/emit/emit_program.h"
#include "compiler/plan/packing.h"

namespace laneshift::compiler {
namespace {

constexpr int kPieceBytes = 16;
constexpr int kPieceWords = 4;

// The chunks that a lane copies of a tile: one of each row of its warp, all at the same offset in the row. A chunk is
// `shift` bytes after an aligned chunk of the row in memory, and consists of bytes of that and the next one.
class PackEmitter {
 public:
  PackEmitter(const RoleContext& cx, const ir::PackAttrs& attrs, Value* row, Value* column, Value* batch, Value* line)
      : cx_(cx),
        e_(cx.e),
        b_(cx.e.ir()),
        bytes_(static_cast<int>(DataTypeBytes(cx.program.operand_type))),
        rows_(cx.Param(SizeAlong(attrs.outer))),
        columns_(cx.Param(SizeAlong(attrs.inner))) {
    LS_CHECK(cx.program.tile_n * bytes_ == 32 * kPieceBytes, "a warp packs ", 32 * kPieceBytes, " bytes of a row");
    row_ = b_.CreateAdd(row, cx.warp);
    column_ = b_.CreateAdd(column, b_.CreateMul(cx.lane, e_.C32(kPieceBytes / bytes_)));
    column_bytes_ = Bytes(column_);
    row_bytes_ = Bytes(columns_);
    pitch_ = b_.CreateMul(cx.Param(ir::PitchOf(attrs.operand)), e_.C64(bytes_));
    Value* stride = b_.CreateMul(cx.Param(ir::StrideOf(attrs.operand)), e_.C64(bytes_));
    from_ = b_.CreateAdd(cx.Param(ir::BaseOf(attrs.operand)), b_.CreateMul(Wide(batch), stride));
    // Rows of the copy are whole memory lines, those of all matrices one after another.
    constexpr int kLine = ir::kPackedLine;
    to_pitch_ = b_.CreateAnd(b_.CreateAdd(row_bytes_, e_.C64(kLine - 1)), e_.C64(~uint64_t{kLine - 1}));
    Value* first = b_.CreateAdd(cx.Param(ir::Binding::kWorkspace), b_.CreateMul(Wide(line), e_.C64(kLine)));
    to_ = b_.CreateAdd(first, b_.CreateMul(b_.CreateMul(Wide(batch), Wide(rows_)), to_pitch_));
  }

  void Emit() {
    const int warps = cx_.threads / 32;
    // All loads are in flight before the first is waited for.
    std::vector<Piece> pieces;
    for (int i = 0; i < cx_.program.tile_m; i += warps) pieces.push_back(LoadPiece(b_.CreateAdd(row_, e_.C32(i))));
    for (const Piece& piece : pieces) StorePiece(piece);
  }

 private:
  struct Piece {
    Value *row, *start;         // its row, and its first byte in memory
    Value *inside, *whole;      // whether it is part of the matrix, and both aligned chunks part of its row
    Value* shift;               // bytes
    std::vector<Value*> words;  // of both aligned chunks
  };

  Value* Wide(Value* number) { return b_.CreateZExt(number, e_.I64()); }
  Value* Bytes(Value* elements) { return b_.CreateMul(Wide(elements), e_.C64(bytes_)); }
  Value* RowStart(Value* matrix, Value* pitch, Value* row) {
    return b_.CreateAdd(matrix, b_.CreateMul(Wide(row), pitch));
  }

  // Nothing outside of the row is read: its ends are loaded element by element.
  Piece LoadPiece(Value* row) {
    Piece piece{};
    piece.row = row;
    Value* row_start = RowStart(from_, pitch_, row);
    piece.start = b_.CreateAdd(row_start, column_bytes_);
    piece.inside = b_.CreateAnd(b_.CreateICmpULT(row, rows_), b_.CreateICmpULT(column_, columns_));
    Value* shift = b_.CreateAnd(piece.start, e_.C64(kPieceBytes - 1));
    Value* aligned = b_.CreateSub(piece.start, shift);
    piece.shift = b_.CreateTrunc(shift, e_.I32());
    Value* crosses = b_.CreateICmpNE(piece.shift, e_.C32(0));
    Value* end = b_.CreateAdd(aligned, b_.CreateSelect(crosses, e_.C64(2 * kPieceBytes), e_.C64(kPieceBytes)));
    Value* in_row =
        b_.CreateAnd(b_.CreateICmpUGE(aligned, row_start), b_.CreateICmpULE(end, b_.CreateAdd(row_start, row_bytes_)));
    piece.whole = b_.CreateAnd(piece.inside, in_row);
    piece.words = e_.LoadGlobal(aligned, kPieceWords, piece.whole);
    const std::vector<Value*> next =
        e_.LoadGlobal(b_.CreateAdd(aligned, e_.C64(kPieceBytes)), kPieceWords, b_.CreateAnd(piece.whole, crosses));
    piece.words.insert(piece.words.end(), next.begin(), next.end());
    return piece;
  }

  // Four words from `shift` bytes on.
  std::vector<Value*> Shifted(const Piece& piece) {
    std::vector<Value*> words = piece.words;
    for (const int step : {2, 1}) {
      Value* moves = b_.CreateICmpNE(b_.CreateAnd(piece.shift, e_.C32(4 * step)), e_.C32(0));
      for (size_t i = 0; i + step < words.size(); ++i) words[i] = b_.CreateSelect(moves, words[i + step], words[i]);
      words.resize(words.size() - step);
    }
    Value* bits = b_.CreateShl(b_.CreateAnd(piece.shift, e_.C32(3)), 3);
    std::vector<Value*> shifted;
    for (size_t i = 0; i < kPieceWords; ++i) shifted.push_back(e_.FunnelShiftRight(words[i + 1], words[i], bits));
    return shifted;
  }

  // The same chunk by elements, zeros after the end of the row.
  std::vector<Value*> LoadElements(const Piece& piece) {
    std::vector<Value*> elements;
    for (int i = 0; i < kPieceBytes / bytes_; ++i) {
      Value* inside = b_.CreateAnd(piece.inside, b_.CreateICmpULT(b_.CreateAdd(column_, e_.C32(i)), columns_));
      elements.push_back(e_.LoadGlobalElement(bytes_, piece.start, inside, i * bytes_));
    }
    return e_.JoinElements(bytes_, elements);
  }

  void StorePiece(const Piece& piece) {
    std::vector<Variable> words;
    for (Value* word : Shifted(piece)) words.push_back(e_.NewVariable(e_.I32(), word));
    e_.If(b_.CreateAnd(piece.inside, b_.CreateNot(piece.whole)), [&] {
      const std::vector<Value*> loaded = LoadElements(piece);
      for (size_t i = 0; i < words.size(); ++i) e_.Store(words[i], loaded[i]);
    });
    std::vector<Value*> stored;
    for (const Variable& word : words) stored.push_back(e_.Load(word));
    Value* to = b_.CreateAdd(RowStart(to_, to_pitch_, piece.row), column_bytes_);
    e_.StoreGlobal(to, stored, piece.inside);
  }

  const RoleContext& cx_;
  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const int bytes_;
  Value *const rows_, *const columns_;  // of a matrix
  Value *row_, *column_;                // of the lane's first chunk
  Value *column_bytes_, *row_bytes_;
  Value *from_, *pitch_;   // the matrix, and the stride of its rows
  Value *to_, *to_pitch_;  // the same of the copy
};

}  // namespace

void EmitPackRows(const RoleContext& cx, const ir::PackAttrs& attrs, Value* row, Value* column, Value* batch,
                  Value* line) {
  PackEmitter(cx, attrs, row, column, batch, line).Emit();
}

}  // namespace laneshift::compiler
