// Reduces partial rows: a lane has four adjacent columns of every sixteenth row. The lanes of a warp combine
// their sums at the end, always in the same order.
#include <array>
#include <vector>

#include "compiler/emit/emit_place.h"
#include "compiler/emit/emit_program.h"

namespace laneshift::compiler {
namespace {

constexpr int kLaneColumns = 4;                                // columns of a lane
constexpr int kQuads = ir::PartialRows::kUnit / kLaneColumns;  // of a warp
constexpr int kStreams = kWarpThreads / kQuads;                // partial rows that it reads at once
constexpr int kAhead = 8;                                      // loads of a lane in flight

class PartialRowReducer {
 public:
  PartialRowReducer(const RoleContext& cx, const ir::ReducePartialRowsAttrs& attrs, Value* column, Value* group)
      : cx_(cx), e_(cx.e), b_(cx.e.ir()), attrs_(attrs), group_(group) {
    length_ = cx.Param(ir::LengthOfPartialRows(attrs.reduction));
    lines_ = cx.Param(ir::CountOfPartialRows(attrs.reduction));
    pitch_bytes_ = b_.CreateMul(Wide(LinePitch(e_, length_)), e_.C64(4));
    stream_ = b_.CreateUDiv(cx.lane, e_.C32(kQuads));
    Value* quad = b_.CreateURem(cx.lane, e_.C32(kQuads));
    column_ = b_.CreateAdd(column, b_.CreateMul(cx.warp, e_.C32(ir::PartialRows::kUnit)));
    column_ = b_.CreateAdd(column_, b_.CreateMul(quad, e_.C32(kLaneColumns)));
    from_ = b_.CreateAdd(cx.Param(ir::BaseOfPartialRows(attrs.reduction)), b_.CreateMul(Wide(column_), e_.C64(4)));
    for (Variable& sum : sums_) sum = e_.NewVariable(e_.F32(), Zero());
  }

  void Emit() {
    // Of the lanes that have the same columns at the end, four have one of them each.
    Value* own_column = b_.CreateAdd(column_, stream_);
    Value* stores =
        b_.CreateAnd(b_.CreateICmpULT(stream_, e_.C32(kLaneColumns)), b_.CreateICmpULT(own_column, length_));
    Value* to = b_.CreateAdd(cx_.Param(ir::EpilogueBase(attrs_.reduction)), b_.CreateMul(Wide(own_column), e_.C64(4)));
    Value* before = Zero();
    if (attrs_.fold > 0) {
      to = b_.CreateAdd(to, b_.CreateMul(Wide(group_), pitch_bytes_));
    } else {
      // In flight while partial rows are added.
      before = b_.CreateBitCast(e_.LoadGlobal(to, 1, stores)[0], e_.F32());
    }
    // What comes after the end of a partial row was never written.
    Value* whole = b_.CreateICmpULE(b_.CreateAdd(column_, e_.C32(kLaneColumns)), length_);
    e_.If(
        whole, [&] { AddLines(true); }, [&] { AddLines(false); });
    Value* sum = OwnOf(CombinedSums());
    if (attrs_.fold == 0) sum = b_.CreateFAdd(before, sum);
    e_.StoreGlobal(to, {b_.CreateBitCast(sum, e_.I32())}, stores);
  }

 private:
  Value* Wide(Value* number) { return b_.CreateZExt(number, e_.I64()); }
  llvm::Constant* Zero() { return llvm::ConstantFP::get(e_.F32(), 0); }

  void AddLines(bool whole) {
    Value *first = e_.C32(0), *end = lines_;
    if (attrs_.fold > 0) {
      Value* lines = e_.C32(attrs_.fold);
      first = b_.CreateMul(group_, lines);
      Value* rest = b_.CreateSub(lines_, first);
      end = b_.CreateAdd(first, b_.CreateSelect(b_.CreateICmpULT(rest, lines), rest, lines));
    }
    e_.For(first, end, kAhead * kStreams, [&](Value* round) {
      std::vector<Value*> loaded;
      for (int i = 0; i < kAhead; ++i) {
        Value* line = b_.CreateAdd(b_.CreateAdd(round, stream_), e_.C32(i * kStreams));
        const std::vector<Value*> words = LoadQuad(line, b_.CreateICmpULT(line, end), whole);
        loaded.insert(loaded.end(), words.begin(), words.end());
      }
      // After the last partial row zeros were loaded.
      for (size_t i = 0; i < loaded.size(); ++i) {
        const Variable& sum = sums_[i % kLaneColumns];
        e_.Store(sum, b_.CreateFAdd(e_.Load(sum), b_.CreateBitCast(loaded[i], e_.F32())));
      }
    });
  }

  std::vector<Value*> LoadQuad(Value* line, Value* there, bool whole) {
    Value* address = b_.CreateAdd(from_, b_.CreateMul(Wide(line), pitch_bytes_));
    if (whole) return e_.LoadGlobal(address, kLaneColumns, there);
    std::vector<Value*> words;
    for (int i = 0; i < kLaneColumns; ++i) {
      Value* inside = b_.CreateAnd(there, b_.CreateICmpULT(b_.CreateAdd(column_, e_.C32(i)), length_));
      words.push_back(e_.LoadGlobal(b_.CreateAdd(address, e_.C64(4 * i)), 1, inside)[0]);
    }
    return words;
  }

  // Both of two lanes add the same two numbers, so that all end with the same bits.
  std::array<Value*, kLaneColumns> CombinedSums() {
    std::array<Value*, kLaneColumns> sums{};
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = e_.Load(sums_[i]);
    for (int lanes = kQuads; lanes < kWarpThreads; lanes *= 2) {
      for (Value*& sum : sums) {
        Value* other = e_.ExchangeLanes(b_.CreateBitCast(sum, e_.I32()), lanes);
        sum = b_.CreateFAdd(sum, b_.CreateBitCast(other, e_.F32()));
      }
    }
    return sums;
  }

  Value* OwnOf(const std::array<Value*, kLaneColumns>& sums) {
    Value* own = sums[0];
    for (int i = 1; i < kLaneColumns; ++i) own = b_.CreateSelect(b_.CreateICmpEQ(stream_, e_.C32(i)), sums[i], own);
    return own;
  }

  const RoleContext& cx_;
  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const ir::ReducePartialRowsAttrs attrs_;
  Value* const group_;
  Value *length_, *lines_, *pitch_bytes_;  // of a partial row; of all; from one to the next
  Value *stream_, *column_;                // the lane's first partial row and column
  Value* from_;                            // its first element
  std::array<Variable, kLaneColumns> sums_{};
};

}  // namespace

void EmitReducePartialRows(const RoleContext& cx, const ir::ReducePartialRowsAttrs& attrs, Value* column,
                           Value* group) {
  PartialRowReducer(cx, attrs, column, group).Emit();
}

}  // namespace laneshift::compiler
