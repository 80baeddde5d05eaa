// Scale factors in rows, or of other rows, as blocks of 128 rows x 4 factors: a lane reads 16 factors of each of the
// four rows that a line of a block has factors of, and stores that line of four blocks.
#include <array>
#include <vector>

#include "compiler/emit/block_formulas.h"
#include "compiler/emit/emit_program.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;
using ir::ScaleBlock;

constexpr int kParts = ScaleBlock::kRows / ScaleBlock::kLines;  // rows of a line
constexpr int kWords = ir::kPackedFactors / ScaleBlock::kFactors;

class FactorPackEmitter {
 public:
  FactorPackEmitter(const RoleContext& cx, const ir::PackFactorsAttrs& attrs, Value* factor)
      : cx_(cx),
        attrs_(attrs),
        e_(cx.e),
        b_(cx.e.ir()),
        from_(cx.Param(ir::OfOperand(ir::BindingFamily::kBaseScale, attrs.operand))),
        rows_(cx.Param(attrs.operand == ir::Operand::kA ? Binding::kM : Binding::kN)),
        factors_(CeilDiv(cx.e, cx.Param(Binding::kK), attrs.run)),
        first_(b_.CreateAdd(factor, b_.CreateMul(cx.warp, cx.e.C32(ir::kPackedFactors)))) {}

  void Emit(Value* row, Value* batch, Value* block) {
    std::array<Piece, kParts> pieces;
    for (int part = 0; part < kParts; ++part) {
      Value* lines = e_.C32(static_cast<uint32_t>(part * ScaleBlock::kLines));
      pieces[static_cast<size_t>(part)] = Begin(b_.CreateAdd(b_.CreateAdd(row, cx_.lane), lines), batch);
    }
    std::array<std::vector<Value*>, kParts> words;
    for (size_t part = 0; part < kParts; ++part) words[part] = Finish(pieces[part]);
    Value* to = b_.CreateAdd(cx_.Param(Binding::kWorkspace), BlockOffset(row, batch, block));
    to = b_.CreateAdd(to, Wide(b_.CreateMul(cx_.lane, e_.C32(ScaleBlock::kLineBytes))));
    for (int i = 0; i < kWords; ++i) {
      std::vector<Value*> stored;
      for (const std::vector<Value*>& of_row : words) stored.push_back(of_row[static_cast<size_t>(i)]);
      Value* there = HasBlock(i);
      e_.StoreGlobal(b_.CreateAdd(to, e_.C64(static_cast<uint64_t>(i) * ScaleBlock::kBytes)), stored, there);
    }
  }

 private:
  // The factors of one row: by one access where there are 16 of them, aligned, else one by one.
  struct Piece {
    Value *address = nullptr, *inside = nullptr, *wide = nullptr;
    std::vector<Value*> words{};
  };
  Piece Begin(Value* row, Value* batch) {
    Piece piece;
    Value* stored = row;
    if (attrs_.halves) {
      Value* of_second = b_.CreateMul(b_.CreateURem(row, e_.C32(2)), b_.CreateUDiv(rows_, e_.C32(2)));
      stored = b_.CreateAdd(b_.CreateUDiv(row, e_.C32(2)), of_second);
    }
    if (attrs_.blocks) {
      piece.words = WordsOfBlocks(stored, batch, b_.CreateICmpULT(row, rows_));
      return piece;
    }
    Value* of_all = b_.CreateAdd(b_.CreateMul(Wide(batch), Wide(rows_)), Wide(stored));
    piece.address = b_.CreateAdd(from_, b_.CreateAdd(b_.CreateMul(of_all, Wide(factors_)), Wide(first_)));
    Value* has_row = b_.CreateICmpULT(row, rows_);
    piece.inside = b_.CreateAnd(has_row, b_.CreateICmpULT(first_, factors_));
    Value* end = b_.CreateAdd(first_, e_.C32(ir::kPackedFactors));
    Value* rest = b_.CreateAnd(piece.address, e_.C64(ir::kPackedFactors - 1));
    piece.wide = b_.CreateAnd(b_.CreateAnd(has_row, b_.CreateICmpULE(end, factors_)), b_.CreateICmpEQ(rest, e_.C64(0)));
    piece.words = e_.LoadGlobal(piece.address, kWords, piece.wide);
    return piece;
  }
  std::vector<Value*> Finish(const Piece& piece) {
    if (attrs_.blocks) return piece.words;
    std::vector<Variable> words;
    for (Value* word : piece.words) words.push_back(e_.NewVariable(e_.I32(), word));
    e_.If(b_.CreateAnd(piece.inside, b_.CreateNot(piece.wide)), [&] {
      std::vector<Value*> factors;
      for (int i = 0; i < ir::kPackedFactors; ++i) {
        Value* has = b_.CreateICmpULT(b_.CreateAdd(first_, e_.C32(static_cast<uint32_t>(i))), factors_);
        factors.push_back(e_.LoadGlobalElement(1, piece.address, has, i));
      }
      const std::vector<Value*> joined = e_.JoinElements(1, factors);
      for (size_t i = 0; i < words.size(); ++i) e_.Store(words[i], joined[i]);
    });
    std::vector<Value*> loaded;
    for (const Variable& word : words) loaded.push_back(e_.Load(word));
    return loaded;
  }

  // The four factors of the row in each of the lane's blocks.
  std::vector<Value*> WordsOfBlocks(Value* row, Value* batch, Value* has_row) {
    Value* in_block = b_.CreateURem(row, e_.C32(ScaleBlock::kRows));
    Value* line = b_.CreateMul(b_.CreateURem(in_block, e_.C32(ScaleBlock::kLines)), e_.C32(ScaleBlock::kLineBytes));
    Value* word = b_.CreateMul(b_.CreateUDiv(in_block, e_.C32(ScaleBlock::kLines)), e_.C32(ScaleBlock::kFactors));
    Value* block = b_.CreateAdd(from_, BlockOffset(row, batch, e_.C32(0)));
    Value* first = b_.CreateAdd(block, Wide(b_.CreateAdd(line, word)));
    std::vector<Value*> words;
    for (int i = 0; i < kWords; ++i) {
      Value* address = b_.CreateAdd(first, e_.C64(static_cast<uint64_t>(i) * ScaleBlock::kBytes));
      words.push_back(e_.LoadGlobal(address, 1, b_.CreateAnd(has_row, HasBlock(i)))[0]);
    }
    return words;
  }
  // Bytes to the lane's first block of the row's line, where the blocks of the operand begin with block `begin`.
  Value* BlockOffset(Value* row, Value* batch, Value* begin) {
    Value* along_k = BlocksAlongK();
    Value* of_rows = CeilDiv(e_, rows_, ScaleBlock::kRows);
    Value* line = b_.CreateAdd(b_.CreateMul(batch, of_rows), b_.CreateUDiv(row, e_.C32(ScaleBlock::kRows)));
    Value* number = b_.CreateUDiv(first_, e_.C32(ScaleBlock::kFactors));
    Value* at = b_.CreateAdd(b_.CreateMul(Wide(line), Wide(along_k)), Wide(b_.CreateAdd(begin, number)));
    return b_.CreateMul(at, e_.C64(ScaleBlock::kBytes));
  }
  // Whether K reaches the lane's `i`-th block.
  Value* HasBlock(int i) {
    Value* number = b_.CreateUDiv(first_, e_.C32(ScaleBlock::kFactors));
    return b_.CreateICmpULT(b_.CreateAdd(number, e_.C32(static_cast<uint32_t>(i))), BlocksAlongK());
  }
  Value* BlocksAlongK() { return CeilDiv(e_, factors_, ScaleBlock::kFactors); }
  Value* Wide(Value* number) { return b_.CreateZExt(number, e_.I64()); }

  const RoleContext& cx_;
  const ir::PackFactorsAttrs& attrs_;
  Emitter& e_;
  llvm::IRBuilder<>& b_;
  Value *const from_, *const rows_, *const factors_;  // of the operand, and of one of its rows
  Value* const first_;                                // factor of the lane
};

}  // namespace

void EmitPackFactors(const RoleContext& cx, const ir::PackFactorsAttrs& attrs, Value* row, Value* factor, Value* batch,
                     Value* block) {
  FactorPackEmitter(cx, attrs, factor).Emit(row, batch, block);
}

}  // namespace laneshift::compiler
