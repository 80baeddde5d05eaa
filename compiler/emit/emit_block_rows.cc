// Rows of packed matrices, between numbers and blocks with scale factors. A lane has eight elements of each of its
// rows, the next lane the next ones, so that the lanes of a warp have whole blocks.
#include <algorithm>
#include <vector>

#include "compiler/emit/block_formulas.h"
#include "compiler/emit/emit_program.h"
#include "ir/element_type.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;
using ir::ScaleBlock;

constexpr int kPiece = ir::kBlockRowsPiece;
constexpr int kMostAccessBytes = 16;

// Eight elements of a row.
struct Piece {
  // The row, its first element in the row, and the same in the tensor, as 64 bits.
  Value *row = nullptr, *column = nullptr, *first = nullptr;
  Value *inside = nullptr, *whole = nullptr;  // whether the matrix has the first element, and all of them
};

// A packed tensor, accessed by pieces: by wide accesses where the piece is whole and aligned, else by elements or
// bytes. Nothing outside of a row is read or written.
class PackedTensor {
 public:
  PackedTensor(const RoleContext& cx, Binding base, DataType type)
      : e_(cx.e),
        b_(cx.e.ir()),
        base_(cx.Param(base)),
        columns_(cx.Param(Binding::kN)),
        bits_(ir::BitsOf(type)),
        bytes_(kPiece * bits_ / 8),
        unit_(std::max(1, bits_ / 8)) {}

  // Wide accesses that have begun; Finish returns their words, with zeros outside of the row.
  struct Begun {
    Value *address, *wide;
    std::vector<Value*> words;
  };
  Begun Begin(const Piece& piece) {
    Begun begun{.address = AddressOf(piece), .wide = nullptr, .words = {}};
    begun.wide = IsWide(piece, begun.address);
    for (int at = 0; at < bytes_; at += Access()) {
      for (Value* word : e_.LoadGlobal(b_.CreateAdd(begun.address, e_.C64(at)), Access() / 4, begun.wide))
        begun.words.push_back(word);
    }
    return begun;
  }
  std::vector<Value*> Finish(const Piece& piece, const Begun& begun) {
    std::vector<Variable> words;
    for (Value* word : begun.words) words.push_back(e_.NewVariable(e_.I32(), word));
    e_.If(b_.CreateAnd(piece.inside, b_.CreateNot(begun.wide)), [&] {
      std::vector<Value*> units;
      for (int i = 0; i < bytes_ / unit_; ++i)
        units.push_back(e_.LoadGlobalElement(unit_, begun.address, HasUnit(piece, i), i * unit_));
      const std::vector<Value*> joined = e_.JoinElements(unit_, units);
      for (size_t i = 0; i < words.size(); ++i) e_.Store(words[i], joined[i]);
    });
    std::vector<Value*> loaded;
    for (const Variable& word : words) loaded.push_back(e_.Load(word));
    return loaded;
  }

  void Store(const Piece& piece, const std::vector<Value*>& words) {
    Value* address = AddressOf(piece);
    Value* wide = IsWide(piece, address);
    const int count = Access() / 4;
    for (int i = 0; i < static_cast<int>(words.size()); i += count)
      e_.StoreGlobal(b_.CreateAdd(address, e_.C64(4 * i)), {words.begin() + i, words.begin() + i + count}, wide);
    e_.If(b_.CreateAnd(piece.inside, b_.CreateNot(wide)), [&] {
      for (int i = 0; i < bytes_ / unit_; ++i) StoreUnit(address, i, words, HasUnit(piece, i));
    });
  }

 private:
  int Access() const { return std::min(bytes_, kMostAccessBytes); }
  // Rows of elements of four bits are whole bytes.
  Value* AddressOf(const Piece& piece) {
    Value* bits = b_.CreateMul(piece.first, e_.C64(bits_));
    return b_.CreateAdd(base_, b_.CreateLShr(bits, 3));
  }
  Value* IsWide(const Piece& piece, Value* address) {
    Value* rest = b_.CreateAnd(address, e_.C64(static_cast<uint64_t>(Access()) - 1));
    return b_.CreateAnd(piece.whole, b_.CreateICmpEQ(rest, e_.C64(0)));
  }
  Value* HasUnit(const Piece& piece, int i) {
    Value* column = b_.CreateAdd(piece.column, e_.C32(static_cast<uint32_t>(i * unit_ * 8 / bits_)));
    return b_.CreateAnd(piece.inside, b_.CreateICmpULT(column, columns_));
  }
  void StoreUnit(Value* address, int i, const std::vector<Value*>& words, Value* inside) {
    Value* to = b_.CreateAdd(address, e_.C64(i * unit_));
    Value* word = words[static_cast<size_t>(i * unit_ / 4)];
    if (unit_ == 4) return e_.StoreGlobal(to, {word}, inside);
    Value* low = b_.CreateTrunc(b_.CreateLShr(word, static_cast<uint64_t>(i * unit_ % 4 * 8)), e_.I16());
    e_.StoreGlobalElement(unit_, to, low, inside);
  }

  Emitter& e_;
  llvm::IRBuilder<>& b_;
  Value *const base_, *const columns_;
  const int bits_, bytes_, unit_;  // of an element; of a piece, and of what is accessed where a piece is not wide
};

// What both directions share: the pieces of a lane, and where the factors of their blocks are.
class BlockRows {
 public:
  BlockRows(const RoleContext& cx, const ir::BlockRowsAttrs& attrs, Value* row, Value* column, Value* batch)
      : cx_(cx),
        e_(cx.e),
        b_(cx.e.ir()),
        attrs_(attrs),
        quantizer_(attrs.scaling, attrs.type),
        lanes_(quantizer_.run() / kPiece),
        rows_(cx.Param(Binding::kM)),
        columns_(cx.Param(Binding::kN)),
        row_(b_.CreateAdd(row, cx.warp)),
        column_(b_.CreateAdd(column, b_.CreateMul(cx.lane, e_.C32(kPiece)))),
        batch_(batch),
        scale_(attrs.scaling == OutputScaling::kNv ? EmitLoadScaleFactor(cx, Binding::kBaseScaleD) : nullptr),
        formulas_(cx.e, quantizer_, scale_),
        factors_(cx.e, cx.Param(Binding::kBaseBlockScaleD), rows_, columns_, quantizer_.run()) {}

  void Quantize() {
    PackedTensor from(cx_, Binding::kBaseA, attrs_.numbers), to(cx_, Binding::kBaseD, attrs_.type);
    const std::vector<Piece> pieces = Pieces();
    std::vector<PackedTensor::Begun> begun;
    for (const Piece& piece : pieces) begun.push_back(from.Begin(piece));
    for (size_t i = 0; i < pieces.size(); ++i) {
      std::vector<Value*> numbers = e_.WidenWords(attrs_.numbers, from.Finish(pieces[i], begun[i]));
      Value* factor = formulas_.FactorOf(LargestOfBlock(numbers));
      Value* multiplier = formulas_.MultiplierOf(factor);
      for (Value*& number : numbers) number = b_.CreateFMul(number, multiplier);
      to.Store(pieces[i], e_.NarrowWords(attrs_.type, numbers));
      StoreFactors(pieces[i], factor);
    }
  }

  void Dequantize() {
    PackedTensor from(cx_, Binding::kBaseA, attrs_.type), to(cx_, Binding::kBaseD, attrs_.numbers);
    const std::vector<Piece> pieces = Pieces();
    std::vector<PackedTensor::Begun> begun;
    std::vector<Value*> factors;
    for (const Piece& piece : pieces) {
      begun.push_back(from.Begin(piece));
      factors.push_back(StoredFactor(piece));
    }
    for (size_t i = 0; i < pieces.size(); ++i) {
      Value* factor = formulas_.NumberOf(factors[i]);
      std::vector<Value*> numbers = e_.WidenWords(attrs_.type, from.Finish(pieces[i], begun[i]));
      for (Value*& number : numbers) {
        number = b_.CreateFMul(number, factor);
        if (scale_ != nullptr) number = e_.Divide(number, scale_);
      }
      to.Store(pieces[i], e_.NarrowWords(attrs_.numbers, numbers));
    }
  }

 private:
  std::vector<Piece> Pieces() {
    std::vector<Piece> pieces;
    for (int i = 0; i < cx_.program.tile_m; i += cx_.threads / 32) {
      Piece piece{.row = b_.CreateAdd(row_, e_.C32(static_cast<uint32_t>(i))), .column = column_};
      Value* of_all = b_.CreateAdd(b_.CreateMul(Wide(batch_), Wide(rows_)), Wide(piece.row));
      piece.first = b_.CreateAdd(b_.CreateMul(of_all, Wide(columns_)), Wide(column_));
      Value* has_row = b_.CreateICmpULT(piece.row, rows_);
      piece.inside = b_.CreateAnd(has_row, b_.CreateICmpULT(column_, columns_));
      piece.whole = b_.CreateAnd(has_row, b_.CreateICmpULE(b_.CreateAdd(column_, e_.C32(kPiece)), columns_));
      pieces.push_back(piece);
    }
    return pieces;
  }

  Value* LargestOfBlock(const std::vector<Value*>& numbers) {
    Value* amax = MagnitudeOf(e_, numbers[0]);
    for (size_t i = 1; i < numbers.size(); ++i) amax = LargerOf(e_, amax, MagnitudeOf(e_, numbers[i]));
    for (int lanes = 1; lanes < lanes_; lanes *= 2) amax = LargerOf(e_, amax, e_.ExchangeLanes(amax, lanes));
    return amax;
  }

  FactorMatrices::Row RowOf(const Piece& piece) { return factors_.RowOf(batch_, piece.row); }
  Value* BlockOf(const Piece& piece) {
    return b_.CreateUDiv(piece.column, e_.C32(static_cast<uint32_t>(quantizer_.run())));
  }

  // Four blocks have their factors in one word, which the first of their lanes stores. What the matrix does not have
  // was read as zeros, whose factor is 0.
  void StoreFactors(const Piece& piece, Value* factor) {
    const auto lanes = static_cast<uint32_t>(lanes_), of_word = lanes * ScaleBlock::kFactors;
    Value* number = b_.CreateAnd(b_.CreateUDiv(cx_.lane, e_.C32(lanes)), e_.C32(ScaleBlock::kFactors - 1));
    Value* word = b_.CreateShl(factor, b_.CreateMul(number, e_.C32(8)));
    for (uint32_t other = lanes; other < of_word; other *= 2)
      word = b_.CreateOr(word, e_.ExchangeLanes(word, static_cast<int>(other)));
    const FactorMatrices::Row row = RowOf(piece);
    Value* own = b_.CreateICmpEQ(b_.CreateAnd(cx_.lane, e_.C32(of_word - 1)), e_.C32(0));
    Value* there = b_.CreateAnd(row.there, b_.CreateICmpULT(piece.column, columns_));
    e_.StoreGlobal(factors_.AddressOf(row, BlockOf(piece)), {word}, b_.CreateAnd(own, there));
  }

  Value* StoredFactor(const Piece& piece) {
    Value* address = factors_.AddressOf(RowOf(piece), BlockOf(piece));
    return b_.CreateZExt(e_.LoadGlobalElement(1, address, piece.inside), e_.I32());
  }

  Value* Wide(Value* number) { return b_.CreateZExt(number, e_.I64()); }

  const RoleContext& cx_;
  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const ir::BlockRowsAttrs& attrs_;
  const ir::BlockQuantizer quantizer_;
  const int lanes_;  // that have a block
  Value *const rows_, *const columns_;
  Value *const row_, *const column_, *const batch_;  // of the lane's first piece
  Value* const scale_;                               // null with ue8m0
  const BlockFormulas formulas_;
  const FactorMatrices factors_;
};

}  // namespace

void EmitQuantizeRows(const RoleContext& cx, const ir::BlockRowsAttrs& attrs, Value* row, Value* column, Value* batch) {
  BlockRows(cx, attrs, row, column, batch).Quantize();
}

void EmitDequantizeRows(const RoleContext& cx, const ir::BlockRowsAttrs& attrs, Value* row, Value* column,
                        Value* batch) {
  BlockRows(cx, attrs, row, column, batch).Dequantize();
}

}  // namespace laneshift::compiler
