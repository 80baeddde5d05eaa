#include "compiler/emit/block_formulas.h"

namespace laneshift::compiler {
namespace {

using ir::ScaleBlock;

constexpr uint32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000, kNan = 0x7fffffff;
constexpr int kFractionBits = 23, kBias = 127;
constexpr uint32_t kNanFactor = 0xff;
constexpr uint32_t kLeastUe8m0 = 1u << (kFractionBits - 1);  // 2^-127, a subnormal f32

}  // namespace

Value* MagnitudeOf(Emitter& e, Value* number) {
  return e.ir().CreateAnd(e.ir().CreateBitCast(number, e.I32()), e.C32(kMagnitude));
}

Value* BlockFormulas::FactorOf(Value* amax) const {
  if (HasUe4m3()) {
    Value* scaled = b_.CreateFMul(b_.CreateBitCast(amax, e_.F32()), scale_d_);
    scaled = b_.CreateFMul(scaled, llvm::ConstantFP::get(e_.F32(), ir::BlockQuantizer::SixthOf()));
    return b_.CreateZExt(e_.NarrowHalf(DataType::kE4m3, {scaled}), e_.I32());
  }
  Value* exponent = b_.CreateLShr(b_.CreateAdd(amax, e_.C32(quantizer_.RoundUp())), kFractionBits);
  Value* least = e_.C32(static_cast<uint32_t>(quantizer_.LargestExponent()));
  Value* factor = b_.CreateSub(LargerOf(e_, exponent, least), least);
  return b_.CreateSelect(b_.CreateICmpUGT(amax, e_.C32(kInfinity)), e_.C32(kNanFactor), factor);
}

Value* BlockFormulas::MultiplierOf(Value* factor) const {
  if (HasUe4m3()) {
    Value* zero = llvm::ConstantFP::get(e_.F32(), 0);
    Value* value = e_.WidenHalf(DataType::kE4m3, b_.CreateTrunc(factor, e_.I16()), 1)[0];
    return b_.CreateSelect(b_.CreateICmpEQ(factor, e_.C32(0)), zero, e_.Divide(scale_d_, value));
  }
  Value* bits = b_.CreateShl(b_.CreateSub(e_.C32(2 * kBias), factor), kFractionBits);
  bits = b_.CreateSelect(b_.CreateICmpEQ(factor, e_.C32(kNanFactor)), e_.C32(kNan), bits);
  return b_.CreateBitCast(bits, e_.F32());
}

Value* BlockFormulas::NumberOf(Value* factor) const {
  // The sign bit of a ue4m3 does not count.
  if (HasUe4m3()) {
    Value* magnitude = b_.CreateAnd(factor, e_.C32(0x7f));
    return e_.WidenHalf(DataType::kE4m3, b_.CreateTrunc(magnitude, e_.I16()), 1)[0];
  }
  Value* bits = b_.CreateShl(factor, kFractionBits);
  bits = b_.CreateSelect(b_.CreateICmpEQ(factor, e_.C32(0)), e_.C32(kLeastUe8m0), bits);
  bits = b_.CreateSelect(b_.CreateICmpEQ(factor, e_.C32(kNanFactor)), e_.C32(kNan), bits);
  return b_.CreateBitCast(bits, e_.F32());
}

FactorMatrices::Row FactorMatrices::RowOf(Value* batch, Value* row) const {
  Value* of_rows = CeilDiv(e_, rows_, ScaleBlock::kRows);
  Value* number = b_.CreateAdd(b_.CreateMul(batch, of_rows), b_.CreateLShr(row, 7));
  Value* first = Bytes(b_.CreateMul(Wide(number), Wide(BlocksOfRow())));
  Value* line = b_.CreateMul(b_.CreateAnd(row, e_.C32(ScaleBlock::kLines - 1)), e_.C32(ScaleBlock::kLineBytes));
  Value* part = b_.CreateAnd(b_.CreateLShr(row, 3), e_.C32(ScaleBlock::kLineBytes - ScaleBlock::kFactors));
  Value* address = b_.CreateAdd(base_, first);
  return {b_.CreateAdd(address, Wide(b_.CreateOr(line, part))), b_.CreateICmpULT(row, rows_),
          b_.CreateICmpULT(row, b_.CreateMul(of_rows, e_.C32(ScaleBlock::kRows)))};
}

Value* FactorMatrices::AddressOf(const Row& row, Value* block) const {
  Value* of_four = Bytes(Wide(b_.CreateLShr(block, 2)));
  return b_.CreateAdd(row.address, b_.CreateOr(of_four, Wide(b_.CreateAnd(block, e_.C32(3)))));
}

// Of so many blocks of 128 x 4 factors.
Value* FactorMatrices::Bytes(Value* blocks) const { return b_.CreateMul(blocks, e_.C64(ScaleBlock::kBytes)); }

}  // namespace laneshift::compiler
