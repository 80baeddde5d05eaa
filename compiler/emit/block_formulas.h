// The formulas of ir/block_quantizer.h as instructions, and where the 128x4 layout has a scale factor: for the epilogue
// that quantises D, and for kernels that quantise tensors of the caller.
//
// Thread-safety: as the emitter that they write by.
#pragma once

#include "compiler/emit/emitter.h"
#include "ir/block_quantizer.h"

namespace laneshift::compiler {

class BlockFormulas {
 public:
  // `scale_d`: the f32 factor of all blocks; null with ue8m0.
  BlockFormulas(Emitter& e, const ir::BlockQuantizer& quantizer, Value* scale_d)
      : e_(e), b_(e.ir()), quantizer_(quantizer), scale_d_(scale_d) {}

  // The bits of the factor of a block, in 32 bits. `amax`: the bits of its largest magnitude as an f32; those of larger
  // numbers are larger, and NaN is above all.
  Value* FactorOf(Value* amax) const;
  // By which elements are multiplied.
  Value* MultiplierOf(Value* factor) const;
  // The number that a factor stands for.
  Value* NumberOf(Value* factor) const;

 private:
  bool HasUe4m3() const { return quantizer_.factors().type == DataType::kUe4m3; }

  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const ir::BlockQuantizer quantizer_;
  Value* const scale_d_;
};

// The magnitude of an f32, as bits.
Value* MagnitudeOf(Emitter& e, Value* number);
// The larger of two of them.
inline Value* LargerOf(Emitter& e, Value* x, Value* y) {
  return e.ir().CreateBinaryIntrinsic(llvm::Intrinsic::umax, x, y);
}

// The factors of matrices of `rows` rows, one for each `run` of `columns` columns.
class FactorMatrices {
 public:
  FactorMatrices(Emitter& e, Value* base, Value* rows, Value* columns, int run)
      : e_(e), b_(e.ir()), base_(base), rows_(rows), columns_(columns), run_(run) {}

  struct Row {
    Value *address, *inside, *there;  // of block 0 of the row; whether the matrix has the row, and the layout
  };
  Row RowOf(Value* batch, Value* row) const;
  Value* AddressOf(const Row& row, Value* block) const;

 private:
  Value* BlocksOfRow() const { return CeilDiv(e_, columns_, run_ * ir::ScaleBlock::kFactors); }
  Value* Bytes(Value* blocks) const;
  Value* Wide(Value* number) const { return b_.CreateZExt(number, e_.I64()); }

  Emitter& e_;
  llvm::IRBuilder<>& b_;
  Value *const base_, *const rows_, *const columns_;
  const int run_;
};

}  // namespace laneshift::compiler
