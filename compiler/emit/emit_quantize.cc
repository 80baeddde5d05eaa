// Quantises a fragment of D: the scale factors of its blocks, and its elements divided by them.
#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"
#include "compiler/emit/block_formulas.h"
#include "compiler/emit/emit_place.h"
#include "compiler/emit/emit_program.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;
using ir::ScaleBlock;

constexpr uint32_t kHalf = ScaleBlock::kRows / 2;

class FragmentQuantizer {
 public:
  FragmentQuantizer(const RoleContext& cx, const Fragment& fragment, const ir::QuantizeAttrs& attrs, Value* row,
                    Value* column, Value* batch, Value* scale_d)
      : cx_(cx),
        e_(cx.e),
        b_(cx.e.ir()),
        fragment_(fragment),
        quantizer_(attrs.scaling, attrs.type),
        index_(cx, fragment.layout, cx.e.Anew(row), cx.e.Anew(column)),
        first_block_(b_.CreateUDiv(column, cx.e.C32(quantizer_.run()))),
        batch_(batch),
        formulas_(cx.e, quantizer_, scale_d),
        factors_(cx.e, cx.Param(Binding::kBaseBlockScaleD), cx.Param(Binding::kM), ColumnsOfD(cx), quantizer_.run()) {
    FindBlocks();
  }

  Fragment Quantize() {
    for (auto& [key, block] : blocks_) {
      ReduceBlock(block);
      block.factor = formulas_.FactorOf(block.amax);
      block.multiplier = formulas_.MultiplierOf(block.factor);
    }
    StoreFactors();
    Fragment quantized{fragment_.layout, {}};
    for (int j = 0; j < fragment_.layout.Registers(); ++j) {
      const Block& block = blocks_.at(KeyOf(j));
      quantized.values.push_back(b_.CreateFMul(fragment_.values[static_cast<size_t>(j)], block.multiplier));
    }
    return quantized;
  }

 private:
  // A block of columns of one row: what this lane has of it.
  struct Block {
    Value *amax = nullptr, *factor = nullptr, *multiplier = nullptr;
  };
  using Key = std::pair<int, int>;  // the constant part of the row, and the block in the fragment

  // The column of a register is a constant plus the lane's part, which stays inside of a block.
  Key KeyOf(int j) const { return {index_.RowOf(j), index_.ColumnOf(j) / quantizer_.run()}; }

  // Columns that D does not have are left out.
  void FindBlocks() {
    Value* left = b_.CreateSub(ColumnsOfD(cx_), index_.first_column);
    for (int j = 0; j < fragment_.layout.Registers(); ++j) {
      Value* inside = b_.CreateICmpSGT(left, e_.C32(index_.ColumnOf(j)));
      Value* own = MagnitudeOf(e_, fragment_.values[static_cast<size_t>(j)]);
      own = b_.CreateSelect(inside, own, e_.C32(0));
      Value*& amax = blocks_[KeyOf(j)].amax;
      amax = amax == nullptr ? own : LargerOf(e_, amax, own);
    }
  }

  // Over the lanes that have columns of the block.
  void ReduceBlock(Block& block) {
    for (int lanes = 1; lanes < kWarpThreads; lanes *= 2) {
      if ((index_.ColumnLanes() & lanes) == 0) continue;
      block.amax = LargerOf(e_, block.amax, e_.ExchangeLanes(block.amax, lanes));
    }
  }

  using FactorRow = FactorMatrices::Row;
  FactorRow RowOf(Value* row) { return factors_.RowOf(batch_, row); }

  // Rows for which there are tiles, those of a cluster that lie outside of D among them.
  Value* RowsOfTiles() {
    const int unit = cx_.program.tile_m * cx_.program.cluster_m;
    return b_.CreateMul(CeilDiv(e_, cx_.Param(Binding::kM), unit), e_.C32(static_cast<uint32_t>(unit)));
  }

  // By one of the lanes that share a row. Rows that D does not have get zeros, and so do the rows of a block of 128 for
  // which there is no tile, and blocks after the last one of a row.
  void StoreFactors() {
    Value* own = b_.CreateICmpEQ(b_.CreateAnd(cx_.lane, e_.C32(index_.ColumnLanes())), e_.C32(0));
    std::map<int, std::vector<Value*>> rows;  // the factors of each, block by block
    for (const auto& [key, block] : blocks_) rows[key.first].push_back(block.factor);
    for (const auto& [key, factors] : rows) {
      Value* row = b_.CreateAdd(index_.first_row, e_.C32(key));
      FactorRow place = RowOf(row);
      place.there = b_.CreateAnd(place.there, own);
      std::vector<Value*> inside;
      for (Value* factor : factors) inside.push_back(b_.CreateSelect(place.inside, factor, e_.C32(0)));
      StoreRow(place, inside);
      if (cx_.program.tile_m % ScaleBlock::kRows == 0) continue;
      // Tiles that are not whole blocks of rows may end at half of one: their last rows store the other half.
      Value* covered = RowsOfTiles();
      Value* ends_within = b_.CreateICmpNE(b_.CreateAnd(covered, e_.C32(kHalf)), e_.C32(0));
      Value* last = b_.CreateICmpUGE(b_.CreateAdd(row, e_.C32(kHalf)), covered);
      FactorRow after = RowOf(b_.CreateAdd(row, e_.C32(kHalf)));
      after.there = b_.CreateAnd(b_.CreateAnd(after.there, own), b_.CreateAnd(ends_within, last));
      StoreRow(after, std::vector<Value*>(factors.size(), e_.C32(0)));
    }
  }

  // The adjacent scale factors of a row, as many at once as begin at a multiple of their number; the fragment with the
  // last block of D also stores what follows it in the layout.
  void StoreRow(const FactorRow& row, const std::vector<Value*>& factors) {
    const int count = static_cast<int>(factors.size()), at_once = AtOnce(count);
    Value* blocks = BlocksOfD();
    for (int i = 0; i < count; i += at_once) {
      Value* block = b_.CreateAdd(first_block_, e_.C32(i));
      Value* there = b_.CreateAnd(row.there, b_.CreateICmpULT(block, blocks));
      Value* word = factors[static_cast<size_t>(i)];
      for (int k = 1; k < at_once; ++k) {
        word = b_.CreateOr(word, b_.CreateShl(factors[static_cast<size_t>(i + k)], 8 * k));
      }
      Value* address = factors_.AddressOf(row, block);
      if (at_once == ScaleBlock::kFactors) {
        e_.StoreGlobal(address, {word}, there);
      } else {
        e_.StoreGlobalElement(at_once, address, b_.CreateTrunc(word, e_.I16()), there);
      }
    }
    if (at_once == ScaleBlock::kFactors) return;
    Value* last = b_.CreateSub(b_.CreateSub(blocks, e_.C32(1)), first_block_);
    e_.If(b_.CreateICmpULT(last, e_.C32(count)), [&] {
      Value* end = b_.CreateMul(CeilDiv(e_, blocks, ScaleBlock::kFactors), e_.C32(ScaleBlock::kFactors));
      for (int k = 0; k + 1 < ScaleBlock::kFactors; ++k) {
        Value* block = b_.CreateAdd(blocks, e_.C32(k));
        Value* there = b_.CreateAnd(row.there, b_.CreateICmpULT(block, end));
        e_.StoreGlobalElement(1, factors_.AddressOf(row, block), b_.getInt16(0), there);
      }
    });
  }

  // A power of two; fragments begin at multiples of what divides their width and that of the tile.
  int AtOnce(int count) const {
    const int of_tile = cx_.program.Columns() / cx_.program.ColumnsPerOutput();
    return std::gcd(std::gcd(count, of_tile / quantizer_.run()), ScaleBlock::kFactors);
  }
  Value* BlocksOfD() { return CeilDiv(e_, ColumnsOfD(cx_), quantizer_.run()); }

  const RoleContext& cx_;
  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const Fragment& fragment_;
  const ir::BlockQuantizer quantizer_;
  const ElementIndex index_;
  Value* const first_block_;
  Value* const batch_;
  const BlockFormulas formulas_;
  const FactorMatrices factors_;
  std::map<Key, Block> blocks_;
};

}  // namespace

Fragment EmitQuantize(const RoleContext& cx, const Fragment& fragment, const ir::QuantizeAttrs& attrs, Value* row,
                      Value* column, Value* batch, Value* scale_d) {
  return FragmentQuantizer(cx, fragment, attrs, row, column, batch, scale_d).Quantize();
}

}  // namespace laneshift::compiler
