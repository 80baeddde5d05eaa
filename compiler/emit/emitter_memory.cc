// How the emitter spells accesses of global and shared memory.
#include "base/check.h"
#include "base/text.h"
#include "compiler/emit/emitter.h"
#include "compiler/emit/ptx_words.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace laneshift::compiler {

using base::Cat;
using llvm::Type;
namespace nv = llvm::Intrinsic;

namespace {

// ".v4" of a vector access, or nothing for one word.
std::string_view VectorSuffix(size_t words) {
  LS_CHECK(words == 1 || words == 2 || words == 4, "no vector access of ", words, " words");
  return words == 1 ? "" : words == 2 ? ".v2" : ".v4";
}

std::string Braced(const std::string& operands, size_t words) { return words == 1 ? operands : "{" + operands + "}"; }

}  // namespace

std::vector<Value*> Emitter::LoadGlobal(Value* address, int words, Value* predicate) {
  std::string text;
  for (int i = 0; i < words; ++i) text += Cat("mov.b32 $", i, ", 0;\n\t");
  text += Cat("@$", words + 1, " ld.global", VectorSuffix(words), ".b32 ", Braced(AsmOperands(0, words), words), ", [$",
              words, "];");
  Type* result = words == 1 ? I32() : llvm::StructType::get(b_.getContext(), std::vector<Type*>(words, I32()));
  return Unpack(Asm(text, AsmConstraints("=&r", words) + ",l,b,~{memory}", result, {address, predicate}), words);
}

Value* Emitter::LoadGlobalElement(int bytes, Value* address, Value* predicate, int offset) {
  if (bytes == 4) return LoadGlobal(b_.CreateAdd(address, C64(offset)), 1, predicate)[0];
  return Asm(Cat("mov.b16 $0, 0;\n\t@$2 ld.global.", bytes == 1 ? "u8" : "b16", " $0, [$1 + ", offset, "];"),
             "=&h,l,b,~{memory}", I16(), {address, predicate});
}

// Into a register of 32 bits, so that nothing waits for it to be widened.
Value* Emitter::LoadGlobalByte(Value* address) {
  return Asm("ld.global.u8 $0, [$1];", "=r,l,~{memory}", I32(), {address});
}

void Emitter::StoreGlobal(Value* address, const std::vector<Value*>& words, Value* predicate) {
  const int count = static_cast<int>(words.size());
  std::vector<Value*> arguments = {predicate, address};
  arguments.insert(arguments.end(), words.begin(), words.end());
  Asm(Cat("@$0 st.global", VectorSuffix(count), ".b32 [$1], ", Braced(AsmOperands(2, count), count), ";"),
      "b,l," + AsmConstraints("r", count) + ",~{memory}", b_.getVoidTy(), arguments);
}

namespace {

// Past L1 where that is possible; L2 fetches whole lines, since the next block of K has the rest. $0: to, $1: from.
std::string AsyncCopy(int bytes, std::string_view inside) {
  return Cat("cp.async.", bytes == 16 ? "cg" : "ca", ".shared.global.L2::128B [$0], [$1], ", bytes, ", ", inside, ";");
}

}  // namespace

// ptxas makes a predicate of a choice between a whole copy and none; of another size it makes arithmetic on the
// address.
void Emitter::CopyAsync(Value* to, Value* from, int bytes, Value* predicate) {
  Asm(Cat("{\n\t.reg .b32 inside;\n\tselp.b32 inside, ", bytes, ", 0, $2;\n\t", AsyncCopy(bytes, "inside"), "\n\t}"),
      "r,l,b,~{memory}", b_.getVoidTy(), {SharedAddress(to), from, predicate});
}
void Emitter::CopyAsyncPart(Value* to, Value* from, int bytes, Value* inside) {
  Asm(AsyncCopy(bytes, "$2"), "r,l,r,~{memory}", b_.getVoidTy(), {SharedAddress(to), from, inside});
}
void Emitter::CopyCommit() { Intrinsic(nv::nvvm_cp_async_commit_group); }
void Emitter::CopyWait(int pending) { Intrinsic(nv::nvvm_cp_async_wait_group, {C32(static_cast<uint32_t>(pending))}); }

void Emitter::PrefetchGlobal(Value* address, Value* bytes, Value* predicate) {
  Asm("@$0 cp.async.bulk.prefetch.L2.global [$1], $2;", "b,l,r,~{memory}", b_.getVoidTy(), {predicate, address, bytes});
}

Value* Emitter::CountGlobal(Value* address, Value* last) {
  return Asm("atom.acq_rel.gpu.global.inc.u32 $0, [$1], $2;", "=r,l,r,~{memory}", I32(), {address, last});
}

void Emitter::ReduceGlobal(bool sum, Value* address, Value* word, Value* predicate) {
  Asm(Cat("@$0 red.relaxed.gpu.global.", sum ? "add.f32" : "max.u32", " [$1], $2;"),
      sum ? "b,l,f,~{memory}" : "b,l,r,~{memory}", b_.getVoidTy(),
      {predicate, address, sum ? b_.CreateBitCast(word, F32()) : word});
}

void Emitter::StoreGlobalElement(int bytes, Value* address, Value* element, Value* predicate) {
  Asm(Cat("@$0 st.global.", bytes == 1 ? "u8" : "b16", " [$1], $2;"), "b,l,h,~{memory}", b_.getVoidTy(),
      {predicate, address, element});
}

std::vector<Value*> Emitter::LoadShared(Value* pointer, int words) {
  if (words == 1) return {LoadSharedWord(pointer)};
  const auto count = static_cast<unsigned>(words);
  Value* loaded = b_.CreateAlignedLoad(llvm::FixedVectorType::get(I32(), count), pointer, llvm::Align(4 * count));
  std::vector<Value*> values;
  for (uint64_t i = 0; i < count; ++i) values.push_back(b_.CreateExtractElement(loaded, i));
  return values;
}
Value* Emitter::LoadSharedWord(Value* pointer) { return b_.CreateAlignedLoad(I32(), pointer, llvm::Align(4)); }

void Emitter::StoreShared(Value* pointer, const std::vector<Value*>& words) {
  if (words.size() == 1) {
    b_.CreateAlignedStore(words[0], pointer, llvm::Align(4));
    return;
  }
  Value* vector = llvm::PoisonValue::get(llvm::FixedVectorType::get(I32(), words.size()));
  for (size_t i = 0; i < words.size(); ++i) vector = b_.CreateInsertElement(vector, words[i], i);
  b_.CreateAlignedStore(vector, pointer, llvm::Align(4 * words.size()));
}

void Emitter::StoreShared16(Value* pointer, Value* half) { b_.CreateAlignedStore(half, pointer, llvm::Align(2)); }

void Emitter::StoreMatrices(Value* pointer, const std::vector<Value*>& words, bool transposed) {
  LS_CHECK(words.size() == 2 || words.size() == 4, "stmatrix of ", words.size(), " matrices");
  const bool four = words.size() == 4;
  std::vector<Value*> arguments = {pointer};
  arguments.insert(arguments.end(), words.begin(), words.end());
  Intrinsic(transposed ? four ? nv::nvvm_stmatrix_sync_aligned_m8n8_x4_trans_b16
                              : nv::nvvm_stmatrix_sync_aligned_m8n8_x2_trans_b16
            : four     ? nv::nvvm_stmatrix_sync_aligned_m8n8_x4_b16
                       : nv::nvvm_stmatrix_sync_aligned_m8n8_x2_b16,
            arguments, {Pointer(kSharedSpace)});
}

Value* Emitter::TileOffset(const ir::SharedLayout& layout, Value* row, Value* byte) {
  Value* line = b_.CreateMul(row, C32(layout.Span()));
  Value* phase = b_.CreateAnd(b_.CreateLShr(line, 7), C32(layout.SwizzleMask()));
  if (layout.Columns() > 1) {
    Value* column = b_.CreateUDiv(byte, C32(layout.Span()));
    line = b_.CreateAdd(line, b_.CreateMul(column, C32(layout.ColumnBytes())));
    byte = b_.CreateURem(byte, C32(layout.Span()));
  }
  return b_.CreateAdd(line, b_.CreateXor(byte, b_.CreateShl(phase, 4)));
}

}  // namespace laneshift::compiler
