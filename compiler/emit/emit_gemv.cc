// A matrix times a few vectors on CUDA cores. A warp has some lines of the matrix and a part of each block of K, a lane
// adjacent elements of that part, in every line and vector. It loads the matrix some blocks ahead, and vectors when it
// multiplies: they are in L1. In the end the lanes of a warp add their sums in a tree.
#include <functional>
#include <utility>
#include <vector>

#include "compiler/emit/emit_place.h"
#include "compiler/emit/emit_role.h"
#include "ir/stored_tensor.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;
using ir::Operand;
using ir::ScaleBlock;

using Words = std::vector<Value*>;

class GemvEmitter {
 public:
  struct Place {
    Value *sums, *line, *first, *end, *batch;
  };
  GemvEmitter(const RoleContext& cx, const ir::SharedLayout& sums, const ir::GemvAttrs& attrs, const Place& place)
      : cx_(cx),
        e_(cx.e),
        b_(cx.e.ir()),
        layout_(sums),
        attrs_(attrs),
        place_(place),
        of_b_(cx.program.row_axis == ir::Axis::kN),
        accesses_(attrs.Run() * static_cast<int>(DataTypeBits(attrs.type)) / kAccessBits) {
    const auto groups = static_cast<uint32_t>(cx.threads / kWarpThreads / attrs.copies);
    copy_ = b_.CreateUDiv(cx.warp, e_.C32(groups));
    own_line_ = b_.CreateMul(b_.CreateURem(cx.warp, e_.C32(groups)), e_.C32(static_cast<uint32_t>(attrs.lines)));
    Value* of_warp = b_.CreateMul(copy_, e_.C32(static_cast<uint32_t>(kWarpThreads * attrs.Run())));
    own_k_ = b_.CreateAdd(of_warp, b_.CreateMul(cx.lane, e_.C32(static_cast<uint32_t>(attrs.Run()))));
    end_ = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, place.end, cx.Param(Binding::kK));
  }

  void Emit() {
    for (int i = 0; i < attrs_.vectors * attrs_.lines; ++i) sums_.push_back(e_.NewVariable(e_.F32(), Zero()));
    for (int i = 0; i < attrs_.stages * attrs_.lines * WordsOfLane(); ++i)
      loaded_.push_back(e_.NewVariable(e_.I32(), e_.C32(0)));
    for (const Variable& sum : sums_) e_.Store(sum, Zero());
    Value* first = b_.CreateAdd(place_.line, own_line_);
    for (int line = 0; line < attrs_.lines; ++line)
      lines_.push_back(FindRow(of_b_ ? Operand::kB : Operand::kA, Behind(first, line)));
    const int block = cx_.program.tile_k;
    for (int stage = 0; stage < attrs_.stages; ++stage) LoadLines(stage, Behind(place_.first, stage * block));
    if (attrs_.waits) e_.GridWait();
    for (int vector = 0; vector < attrs_.vectors; ++vector)
      vectors_.push_back(FindRow(of_b_ ? Operand::kA : Operand::kB, e_.C32(static_cast<uint32_t>(vector))));
    e_.For(place_.first, end_, attrs_.stages * block, [&](Value* k) {
      for (int stage = 0; stage < attrs_.stages; ++stage) {
        Multiply(stage, Behind(k, stage * block));
        LoadLines(stage, Behind(k, (stage + attrs_.stages) * block));
      }
    });
    StoreSums();
  }

 private:
  static constexpr int kAccessBits = 128;
  static constexpr size_t kWordsOfAccess = 4;

  // A line or a vector: whether it exists, where the lane's first element of it is in memory, and its first scale
  // factors.
  struct Row {
    Value *inside, *start, *factors;
  };

  bool IsScaled() const { return attrs_.scale_run > 0; }
  // With the word of scale factors.
  int WordsOfLane() const { return static_cast<int>(kWordsOfAccess) * accesses_ + (IsScaled() ? 1 : 0); }
  Value* Zero() const { return llvm::ConstantFP::get(e_.F32(), 0); }
  Value* Behind(Value* k, int elements) const { return b_.CreateAdd(k, e_.C32(static_cast<uint32_t>(elements))); }
  // Operands have elements of one size.
  Value* Bytes(Value* elements) const {
    const auto bits = static_cast<uint64_t>(DataTypeBits(attrs_.type));
    return bits < 8 ? b_.CreateLShr(elements, 1) : b_.CreateMul(elements, e_.C64(bits / 8));
  }

  Row FindRow(Operand operand, Value* index) const {
    const auto far = [&](Value* count, Binding distance) {
      return b_.CreateMul(b_.CreateZExt(count, e_.I64()), cx_.Param(distance));
    };
    Value* extent = cx_.Param(operand == Operand::kA ? Binding::kM : Binding::kN);
    Value* stored = index;
    if (operand == Operand::kB && attrs_.halves) {
      Value* of_second = b_.CreateMul(b_.CreateURem(index, e_.C32(2)), cx_.Param(Binding::kColumns));
      stored = b_.CreateAdd(b_.CreateUDiv(index, e_.C32(2)), of_second);
    }
    Value* offset = b_.CreateAdd(far(place_.batch, ir::StrideOf(operand)), far(stored, ir::PitchOf(operand)));
    offset = b_.CreateAdd(offset, b_.CreateZExt(own_k_, e_.I64()));
    return {.inside = b_.CreateICmpULT(index, extent),
            .start = b_.CreateAdd(cx_.Param(ir::BaseOf(operand)), Bytes(offset)),
            .factors = IsScaled() ? FindFactors(operand, stored, extent) : nullptr};
  }
  // In the 128x4 layout: four adjacent scale factors of a row are a word, the blocks of a row follow each other along
  // k.
  Value* FindFactors(Operand operand, Value* row, Value* extent) const {
    Value* rows = b_.CreateUDiv(b_.CreateAdd(extent, e_.C32(ScaleBlock::kRows - 1)), e_.C32(ScaleBlock::kRows));
    const auto of_block = static_cast<uint32_t>(attrs_.Run());
    Value* along_k = b_.CreateUDiv(b_.CreateAdd(cx_.Param(Binding::kK), e_.C32(of_block - 1)), e_.C32(of_block));
    Value* above = b_.CreateAdd(b_.CreateMul(place_.batch, rows), b_.CreateUDiv(row, e_.C32(ScaleBlock::kRows)));
    Value* block = b_.CreateAdd(b_.CreateMul(above, along_k), b_.CreateUDiv(own_k_, e_.C32(of_block)));
    Value* in_block = b_.CreateURem(row, e_.C32(ScaleBlock::kRows));
    Value* line = b_.CreateMul(b_.CreateURem(in_block, e_.C32(ScaleBlock::kLines)), e_.C32(ScaleBlock::kLineBytes));
    Value* word = b_.CreateMul(b_.CreateUDiv(in_block, e_.C32(ScaleBlock::kLines)), e_.C32(ScaleBlock::kFactors));
    Value* offset = b_.CreateMul(b_.CreateZExt(block, e_.I64()), e_.C64(ScaleBlock::kBytes));
    offset = b_.CreateAdd(offset, b_.CreateZExt(b_.CreateAdd(line, word), e_.I64()));
    return b_.CreateAdd(cx_.Param(operand == Operand::kA ? Binding::kBaseScaleA : Binding::kBaseScaleB), offset);
  }
  // Of the block of K from `k` on; zeros where it has ended. The last word has the scale factors.
  Words LoadRow(const Row& row, Value* k) const {
    Value* inside = b_.CreateAnd(row.inside, b_.CreateICmpULT(b_.CreateAdd(k, own_k_), end_));
    Value* far = b_.CreateZExt(k, e_.I64());
    Value* start = b_.CreateAdd(row.start, Bytes(far));
    Words words;
    for (int i = 0; i < accesses_; ++i) {
      Value* address = b_.CreateAdd(start, e_.C64(static_cast<uint64_t>(i * kAccessBits / 8)));
      for (Value* word : e_.LoadGlobal(address, kWordsOfAccess, inside)) words.push_back(word);
    }
    if (!IsScaled()) return words;
    Value* blocks = b_.CreateUDiv(far, e_.C64(static_cast<uint64_t>(attrs_.Run())));
    Value* factors = b_.CreateAdd(row.factors, b_.CreateMul(blocks, e_.C64(ScaleBlock::kBytes)));
    words.push_back(e_.LoadGlobal(factors, 1, inside)[0]);
    return words;
  }
  const Variable& Loaded(int stage, int line, size_t word) const {
    return loaded_[static_cast<size_t>((stage * attrs_.lines + line) * WordsOfLane()) + word];
  }
  void LoadLines(int stage, Value* k) {
    for (int line = 0; line < attrs_.lines; ++line) {
      const Words words = LoadRow(lines_[static_cast<size_t>(line)], k);
      for (size_t word = 0; word < words.size(); ++word) e_.Store(Loaded(stage, line, word), words[word]);
    }
  }
  // Adds to the sum of a vector and a line.
  void Add(int vector, int line, const std::function<Value*(Value*)>& add) {
    const Variable& sum = sums_[static_cast<size_t>(line * attrs_.vectors + vector)];
    e_.Store(sum, add(e_.Load(sum)));
  }
  Value* Fma(Value* a, Value* b, Value* c) const {
    return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
  }

  void Multiply(int stage, Value* k) {
    std::vector<Words> vectors;
    for (const Row& vector : vectors_) vectors.push_back(LoadRow(vector, k));
    if (IsScaled()) return MultiplyScaled(stage, vectors);
    const DataType of_vectors = of_b_ ? cx_.program.operand_type : attrs_.type;
    const DataType of_lines = of_b_ ? attrs_.type : cx_.program.operand_type;
    for (size_t word = 0; word < kWordsOfAccess; ++word) {
      std::vector<Words> wide;
      for (const Words& vector : vectors) wide.push_back(e_.WidenWords(of_vectors, {vector[word]}));
      for (int line = 0; line < attrs_.lines; ++line) {
        const Words elements = e_.WidenWords(of_lines, {e_.Load(Loaded(stage, line, word))});
        for (int vector = 0; vector < attrs_.vectors; ++vector) {
          Add(vector, line, [&](Value* sum) {
            for (size_t i = 0; i < elements.size(); ++i)
              sum = Fma(wide[static_cast<size_t>(vector)][i], elements[i], sum);
            return sum;
          });
        }
      }
    }
  }

  // Blocks of elements with one scale factor: products of e2m1 and the sums of eight are exact in f16, of which there
  // are two a block; so is their sum, and the product of the factors, in f32.
  void MultiplyScaled(int stage, const std::vector<Words>& vectors) {
    const auto blocks = static_cast<size_t>(attrs_.Run() / attrs_.scale_run);
    const size_t words = kWordsOfAccess * static_cast<size_t>(accesses_) / blocks;
    const auto factors_of = [&](Value* word) { return e_.WidenWords(DataType::kE4m3, {word}); };
    std::vector<Words> of_vectors, of_lines;
    for (const Words& vector : vectors) of_vectors.push_back(factors_of(vector.back()));
    for (int line = 0; line < attrs_.lines; ++line)
      of_lines.push_back(factors_of(e_.Load(Loaded(stage, line, blocks * words))));
    for (size_t block = 0; block < blocks; ++block) {
      const auto pairs_of = [&](const auto& word_at) {
        Words pairs;
        for (size_t word = block * words; word < (block + 1) * words; ++word) {
          for (Value* pair : e_.WidenFourPairs(word_at(word))) pairs.push_back(pair);
        }
        return pairs;
      };
      std::vector<Words> wide;
      for (const Words& vector : vectors) wide.push_back(pairs_of([&](size_t word) { return vector[word]; }));
      for (int line = 0; line < attrs_.lines; ++line) {
        const Words pairs = pairs_of([&](size_t word) { return e_.Load(Loaded(stage, line, word)); });
        for (int vector = 0; vector < attrs_.vectors; ++vector) {
          const auto v = static_cast<size_t>(vector);
          Value* factor = b_.CreateFMul(of_vectors[v][block], of_lines[static_cast<size_t>(line)][block]);
          Add(vector, line, [&](Value* sum) { return Fma(SumOfPairs(wide[v], pairs), factor, sum); });
        }
      }
    }
  }
  Value* SumOfPairs(const Words& a, const Words& b) const {
    Value* sum = nullptr;
    for (size_t i = 0; i < a.size(); ++i) {
      sum = sum == nullptr ? b_.CreateFMul(a[i], b[i]) : Fma(a[i], b[i], sum);
    }
    const auto half = [&](uint64_t i) { return b_.CreateFPExt(b_.CreateExtractElement(sum, i), e_.F32()); };
    return b_.CreateFAdd(half(0), half(1));
  }

  // Each exchange halves the sums of a lane, as long as it has several: of every two it keeps one and gets the other
  // half of it. A lane then has the sum of the index that its upper bits are.
  void StoreSums() {
    std::vector<Value*> sums;
    for (const Variable& sum : sums_) sums.push_back(e_.Load(sum));
    const auto exchange = [&](Value* value, int lanes) {
      return b_.CreateBitCast(e_.ExchangeLanes(b_.CreateBitCast(value, e_.I32()), lanes), e_.F32());
    };
    int shared = kWarpThreads;  // lanes that have the same sum
    for (int lanes = kWarpThreads / 2; lanes > 0; lanes /= 2) {
      const size_t half = sums.size() / 2;
      if (half == 0) {
        sums[0] = b_.CreateFAdd(sums[0], exchange(sums[0], lanes));
        continue;
      }
      shared = lanes;
      Value* upper = b_.CreateICmpNE(b_.CreateAnd(cx_.lane, e_.C32(static_cast<uint32_t>(lanes))), e_.C32(0));
      std::vector<Value*> kept;
      for (size_t i = 0; i < half; ++i) {
        Value* own = b_.CreateSelect(upper, sums[half + i], sums[i]);
        Value* other = b_.CreateSelect(upper, sums[i], sums[half + i]);
        kept.push_back(b_.CreateFAdd(own, exchange(other, lanes)));
      }
      sums = std::move(kept);
    }
    const auto c = [&](int value) { return e_.C32(static_cast<uint32_t>(value)); };
    e_.If(b_.CreateICmpEQ(b_.CreateURem(cx_.lane, c(shared)), c(0)), [&] {
      Value* index = b_.CreateUDiv(cx_.lane, c(shared));
      Value* vector = b_.CreateURem(index, c(attrs_.vectors));
      Value* line = b_.CreateAdd(own_line_, b_.CreateUDiv(index, c(attrs_.vectors)));
      Value* outer = b_.CreateAdd(b_.CreateMul(copy_, c(cx_.program.Columns())), vector);
      Value* byte = b_.CreateMul(line, c(layout_.ElementBytes()));
      e_.StoreShared(e_.Offset(place_.sums, e_.TileOffset(layout_, outer, byte)),
                     {b_.CreateBitCast(sums[0], e_.I32())});
    });
  }

  const RoleContext& cx_;
  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const ir::SharedLayout& layout_;
  const ir::GemvAttrs& attrs_;
  const Place place_;
  const bool of_b_;     // the lines are B's, and the vectors A's
  const int accesses_;  // of 16 bytes, that a lane makes to a line
  Value *copy_ = nullptr, *own_line_ = nullptr, *own_k_ = nullptr, *end_ = nullptr;
  std::vector<Row> lines_, vectors_;
  std::vector<Variable> sums_;    // line by line
  std::vector<Variable> loaded_;  // of each stage, of each line: the lane's words
};

}  // namespace

void RoleEmitter::Gemv(const ir::Op& op) {
  const auto& attrs = op.As<ir::GemvAttrs>();
  const Slot& slot = SlotOf(op);
  GemvEmitter(cx_, LayoutOf(slot, attrs.tile), attrs,
              {.sums = Tile(slot, attrs.tile),
               .line = Index(op, 1),
               .first = Index(op, 2),
               .end = Index(op, 3),
               .batch = Index(op, 4)})
      .Emit();
}

}  // namespace laneshift::compiler
