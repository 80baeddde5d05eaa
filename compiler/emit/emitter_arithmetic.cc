// How the emitter spells functions of one number, users' functions and conversions between element types.
#include <bit>

#include "base/check.h"
#include "base/text.h"
#include "compiler/emit/emitter.h"
#include "compiler/emit/ptx_words.h"
#include "ir/element_type.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace laneshift::compiler {

using llvm::Type;
namespace nv = llvm::Intrinsic;

Value* Emitter::Exp2(Value* x) { return PureAsm("ex2.approx.ftz.f32 $0, $1;", "=f,f", F32(), {x}); }
Value* Emitter::Reciprocal(Value* x) { return PureAsm("rcp.approx.ftz.f32 $0, $1;", "=f,f", F32(), {x}); }
Value* Emitter::Divide(Value* x, Value* y) { return PureAsm("div.rn.f32 $0, $1, $2;", "=f,f,f", F32(), {x, y}); }
Value* Emitter::RoundToInteger(Value* x) { return PureAsm("cvt.rni.f32.f32 $0, $1;", "=f,f", F32(), {x}); }
Value* Emitter::CutToHalf(Value* x) {
  return PureAsm("{ .reg .b16 half; cvt.rz.f16.f32 half, $1; cvt.f32.f16 $0, half; }", "=f,f", F32(), {x});
}
Value* Emitter::Tanh(Value* x) { return PureAsm("tanh.approx.f32 $0, $1;", "=f,f", F32(), {x}); }

std::vector<Value*> Emitter::UserFunction(const FunctionCode& code, Value* inside,
                                          const std::vector<Value*>& arguments) {
  // Early clobbers: a result may be written before all parameters are read.
  std::string constraints = AsmConstraints("=&f", code.results);
  std::vector<Value*> values;
  if (code.guarded) {
    constraints += ",b";
    values.push_back(inside);
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    constraints += code.wide[i] ? ",l" : ",f";
    values.push_back(arguments[i]);
  }
  const std::vector<Type*> types(static_cast<size_t>(code.results), F32());
  Type* result = code.results == 1 ? F32() : llvm::StructType::get(b_.getContext(), types);
  Value* call = code.pure ? PureAsm(code.statement, constraints, result, values)
                          : Asm(code.statement, constraints + ",~{memory}", result, values);
  return code.results == 1 ? std::vector<Value*>{call} : Unpack(call, code.results);
}

// ---- conversions

std::vector<Value*> Emitter::JoinHalves(const std::vector<Value*>& halves) {
  std::vector<Value*> words;
  for (size_t i = 0; i < halves.size(); i += 2) {
    Value* low = b_.CreateZExt(halves[i], I32());
    words.push_back(b_.CreateOr(low, b_.CreateShl(b_.CreateZExt(halves[i + 1], I32()), 16)));
  }
  return words;
}

Value* Emitter::AddSaturating(Value* a, Value* b) { return Intrinsic(llvm::Intrinsic::sadd_sat, {a, b}, {I32()}); }

Value* Emitter::FunnelShiftRight(Value* high, Value* low, Value* bits) {
  return Intrinsic(llvm::Intrinsic::fshr, {high, low, bits}, {I32()});
}

std::vector<Value*> Emitter::JoinElements(int bytes, const std::vector<Value*>& elements) {
  if (bytes == 4) return elements;
  if (bytes == 2) return JoinHalves(elements);
  std::vector<Value*> halves;
  for (size_t i = 0; i < elements.size(); i += 2) {
    halves.push_back(b_.CreateOr(elements[i], b_.CreateShl(elements[i + 1], 8)));
  }
  return JoinHalves(halves);
}

Value* Emitter::NarrowHalf(DataType type, const std::vector<Value*>& values) {
  if (ir::IsFloat8(type)) {
    const unsigned id = type == DataType::kE4m3 ? nv::nvvm_ff_to_e4m3x2_rn : nv::nvvm_ff_to_e5m2x2_rn;
    return Intrinsic(id, {values.size() > 1 ? values[1] : llvm::ConstantFP::get(F32(), 0), values[0]});
  }
  LS_CHECK(type != DataType::kF32 && values.size() == 1, values.size(), " of ", DataTypeName(type), " in 16 bits");
  Type* narrow = type == DataType::kF16 ? b_.getHalfTy() : b_.getBFloatTy();
  return b_.CreateBitCast(b_.CreateFPTrunc(values[0], narrow), I16());
}

// The conversion has 8-bit results, which inline PTX cannot return: four of them are joined in the statement.
Value* Emitter::PackFours(const std::vector<Value*>& values) {
  LS_CHECK(values.size() == kPackedInWord, values.size(), " elements of four bits in a word");
  if (!target_.Has(target::Feature::kFloat4)) return CountFours(values);
  std::string text = "{ .reg .b8 pair<4>; ";
  for (size_t i = 0; i < kPackedInWord / 2; ++i) {
    text += base::Cat("cvt.rn.satfinite.e2m1x2.f32 pair", i, ", $", 2 * i + 2, ", $", 2 * i + 1, "; ");
  }
  return PureAsm(text + "mov.b32 $0, {pair0, pair1, pair2, pair3}; }", "=r," + AsmConstraints("f", kPackedInWord),
                 I32(), values);
}

// Without that conversion: the code of a magnitude is how many boundaries it is above. At a tie the even code counts,
// so that every second boundary belongs to the code above it. NaN is above all, and has no sign.
Value* Emitter::CountFours(const std::vector<Value*>& values) {
  constexpr float kBoundaries[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5};
  constexpr uint32_t kSign = 0x80000000, kInfinity = 0x7f800000;
  Value* word = C32(0);
  for (size_t i = 0; i < values.size(); ++i) {
    Value* bits = b_.CreateBitCast(values[i], I32());
    Value* magnitude = b_.CreateAnd(bits, C32(~kSign));
    Value* code = b_.CreateLShr(b_.CreateAnd(bits, C32(kSign)), 28);
    code = b_.CreateSelect(b_.CreateICmpUGT(magnitude, C32(kInfinity)), C32(0), code);
    bool even_above = false;
    for (const float boundary : kBoundaries) {
      Value* limit = C32(std::bit_cast<uint32_t>(boundary));
      Value* above = even_above ? b_.CreateICmpUGE(magnitude, limit) : b_.CreateICmpUGT(magnitude, limit);
      code = b_.CreateAdd(code, b_.CreateZExt(above, I32()));
      even_above = !even_above;
    }
    word = b_.CreateOr(word, b_.CreateShl(code, 4 * i));
  }
  return word;
}

// Exponent and mantissa in the place of those of an f32 are the number times 2^-126; subnormal ones, too.
std::vector<Value*> Emitter::WidenFours(Value* word) {
  Value* const scale = llvm::ConstantFP::get(F32(), 0x1p126);
  std::vector<Value*> values;
  for (size_t i = 0; i < kPackedInWord; ++i) {
    Value* code = b_.CreateLShr(word, 4 * i);
    Value* magnitude = b_.CreateShl(b_.CreateAnd(code, C32(7)), 22);
    Value* sign = b_.CreateShl(b_.CreateAnd(code, C32(8)), 28);
    values.push_back(b_.CreateFMul(b_.CreateBitCast(b_.CreateOr(magnitude, sign), F32()), scale));
  }
  return values;
}

std::vector<Value*> Emitter::WidenFourPairs(Value* word) {
  constexpr int kPairs = kPackedInWord / 2;
  std::string text = "{ .reg .b8 pair<4>; mov.b32 {pair0, pair1, pair2, pair3}, $4; ";
  for (int i = 0; i < kPairs; ++i) text += base::Cat("cvt.rn.f16x2.e2m1x2 $", i, ", pair", i, "; ");
  auto* words = llvm::StructType::get(b_.getContext(), std::vector<Type*>(kPairs, I32()));
  std::vector<Value*> pairs = Unpack(PureAsm(text + "}", AsmConstraints("=&r", kPairs) + ",r", words, {word}), kPairs);
  for (Value*& pair : pairs) pair = b_.CreateBitCast(pair, llvm::FixedVectorType::get(b_.getHalfTy(), 2));
  return pairs;
}

std::vector<Value*> Emitter::NarrowWords(DataType type, const std::vector<Value*>& values) {
  std::vector<Value*> words;
  if (ir::BitsOf(type) == 32) {
    for (Value* value : values) words.push_back(b_.CreateBitCast(value, I32()));
    return words;
  }
  if (ir::IsFloat8(type)) {
    for (size_t i = 0; i < values.size(); i += 2) words.push_back(NarrowHalf(type, {values[i], values[i + 1]}));
    return JoinHalves(words);
  }
  if (type == DataType::kE2m1) {
    for (size_t i = 0; i < values.size(); i += kPackedInWord) {
      words.push_back(PackFours({values.begin() + static_cast<std::ptrdiff_t>(i),
                                 values.begin() + static_cast<std::ptrdiff_t>(i + kPackedInWord)}));
    }
    return words;
  }
  const unsigned id = type == DataType::kF16 ? nv::nvvm_ff2f16x2_rn : nv::nvvm_ff2bf16x2_rn;
  for (size_t i = 0; i < values.size(); i += 2) {
    words.push_back(b_.CreateBitCast(Intrinsic(id, {values[i + 1], values[i]}), I32()));
  }
  return words;
}

std::vector<Value*> Emitter::WidenHalf(DataType type, Value* half, int count) {
  if (ir::IsFloat8(type)) {
    const unsigned id = type == DataType::kE4m3 ? nv::nvvm_e4m3x2_to_f16x2_rn : nv::nvvm_e5m2x2_to_f16x2_rn;
    Value* pair = Intrinsic(id, {half});
    std::vector<Value*> values;
    for (int i = 0; i < count; ++i) {
      values.push_back(b_.CreateFPExt(b_.CreateExtractElement(pair, static_cast<uint64_t>(i)), F32()));
    }
    return values;
  }
  if (type == DataType::kBf16) return {b_.CreateBitCast(b_.CreateShl(b_.CreateZExt(half, I32()), 16), F32())};
  return {b_.CreateFPExt(b_.CreateBitCast(half, b_.getHalfTy()), F32())};
}

std::vector<Value*> Emitter::WidenWords(DataType type, const std::vector<Value*>& words) {
  std::vector<Value*> values;
  for (Value* word : words) {
    if (type == DataType::kF32) {
      values.push_back(b_.CreateBitCast(word, F32()));
      continue;
    }
    if (type == DataType::kE2m1) {
      for (Value* value : WidenFours(word)) values.push_back(value);
      continue;
    }
    for (int half = 0; half < 2; ++half) {
      for (Value* value : WidenHalf(type, Half(word, half), ir::IsFloat8(type) ? 2 : 1)) values.push_back(value);
    }
  }
  return values;
}

Value* Emitter::Half(Value* word, int index) {
  return b_.CreateTrunc(index == 0 ? word : b_.CreateLShr(word, 16), I16());
}

Value* CeilDiv(Emitter& e, Value* number, Value* unit) {
  return e.ir().CreateUDiv(e.ir().CreateAdd(number, e.ir().CreateSub(unit, e.C32(1))), unit);
}
Value* CeilDiv(Emitter& e, Value* number, int unit) { return CeilDiv(e, number, e.C32(static_cast<uint32_t>(unit))); }

}  // namespace laneshift::compiler
