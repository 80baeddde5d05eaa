// How the emitter spells matrix instructions and Tensor Memory: tcgen05 and wgmma.
#include "base/check.h"
#include "base/text.h"
#include "compiler/emit/emitter.h"
#include "compiler/emit/mma_descriptor.h"
#include "compiler/emit/ptx_words.h"
#include "ir/element_type.h"
#include "ir/op.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace laneshift::compiler {

using base::Cat;
using llvm::Type;
namespace nv = llvm::Intrinsic;

namespace {

llvm::ConstantInt* KindOf(llvm::IRBuilder<>& b, const ir::MmaInstruction& instruction) {
  return b.getInt32(static_cast<uint32_t>(ir::InfoOf(instruction.kind).llvm));
}

llvm::Intrinsic::ID ScaledMma(const ir::MmaInstruction& instruction) {
  const bool sparse = instruction.sparse;
  switch (instruction.kind) {
    case ir::MmaKind::kMxf8f6f4:
      return sparse ? nv::nvvm_tcgen05_mma_sp_shared_mxf8f6f4_block_scale
                    : nv::nvvm_tcgen05_mma_shared_mxf8f6f4_block_scale;
    case ir::MmaKind::kMxf4:
      // A factor for 32 elements, however many an instruction multiplies; without it there are two of them.
      if (instruction.HasLongRows()) return nv::nvvm_tcgen05_mma_shared_mxf4_block_scale_block32;
      return sparse ? nv::nvvm_tcgen05_mma_sp_shared_mxf4_block_scale : nv::nvvm_tcgen05_mma_shared_mxf4_block_scale;
    case ir::MmaKind::kMxf4nvf4:
      return sparse ? nv::nvvm_tcgen05_mma_sp_shared_mxf4nvf4_block_scale_block16
                    : nv::nvvm_tcgen05_mma_shared_mxf4nvf4_block_scale_block16;
    default:
      break;
  }
  LS_CHECK(false, "kind ", ir::InfoOf(instruction.kind).text, " has no scale factors");
}

std::string_view RegisterConstraint(DataType type) { return ir::IsInteger(type) ? "=r" : "=f"; }

}  // namespace

// ---- tcgen05

void Emitter::TensorAlloc(Value* slot, int columns) {
  LS_CHECK(target_.Has(target::Feature::kTensorMemory), "tcgen05 on ", target_.name);
  Intrinsic(ctas_ == 1 ? nv::nvvm_tcgen05_alloc_shared_cg1 : nv::nvvm_tcgen05_alloc_shared_cg2, {slot, C32(columns)});
}
void Emitter::TensorRelinquish() {
  Intrinsic(ctas_ == 1 ? nv::nvvm_tcgen05_relinq_alloc_permit_cg1 : nv::nvvm_tcgen05_relinq_alloc_permit_cg2);
}
void Emitter::TensorDealloc(Value* address, int columns) {
  Intrinsic(ctas_ == 1 ? nv::nvvm_tcgen05_dealloc_cg1 : nv::nvvm_tcgen05_dealloc_cg2,
            {b_.CreateIntToPtr(address, Pointer(kTensorSpace)), C32(columns)});
}
void Emitter::TensorFence(bool after) {
  Intrinsic(after ? nv::nvvm_tcgen05_fence_after_thread_sync : nv::nvvm_tcgen05_fence_before_thread_sync);
}

void Emitter::TensorMma(const ir::MmaInstruction& instruction, Value* d, Value* a_descriptor, Value* b_descriptor,
                        Value* accumulate, Value* disabled) {
  constexpr uint32_t kCollectorDiscard = 0;
  std::vector<Value*> arguments = {b_.CreateIntToPtr(d, Pointer(kTensorSpace)), a_descriptor, b_descriptor,
                                   C32(InstructionDescriptorBits(instruction)), accumulate};
  if (disabled != nullptr) {
    LS_CHECK(ctas_ == 1, "an MMA of a pair cannot disable lanes of one CTA");
    arguments.insert(arguments.end(), {disabled, KindOf(b_, instruction), C32(kCollectorDiscard)});
    Intrinsic(nv::nvvm_tcgen05_mma_shared_disable_output_lane_cg1, arguments);
    return;
  }
  arguments.insert(arguments.end(),
                   {KindOf(b_, instruction), C32(static_cast<uint32_t>(ctas_)), C32(kCollectorDiscard)});
  Intrinsic(nv::nvvm_tcgen05_mma_shared, arguments);
}
void Emitter::TensorMmaA(const ir::MmaInstruction& instruction, Value* d, Value* a, Value* b_descriptor,
                         Value* accumulate, Value* disabled, bool shift) {
  constexpr uint32_t kCtaGroup1 = 1, kCollectorDiscard = 0;
  LS_CHECK(ctas_ == 1, "A in Tensor Memory is for one CTA");
  std::vector<Value*> arguments = {b_.CreateIntToPtr(d, Pointer(kTensorSpace)),
                                   b_.CreateIntToPtr(a, Pointer(kTensorSpace)), b_descriptor,
                                   C32(InstructionDescriptorBits(instruction)), accumulate};
  if (disabled != nullptr) {
    arguments.insert(arguments.end(), {disabled, KindOf(b_, instruction), C32(kCollectorDiscard)});
    Intrinsic(shift ? nv::nvvm_tcgen05_mma_tensor_disable_output_lane_cg1_ashift
                    : nv::nvvm_tcgen05_mma_tensor_disable_output_lane_cg1,
              arguments);
    return;
  }
  arguments.insert(arguments.end(), {KindOf(b_, instruction), C32(kCtaGroup1), C32(kCollectorDiscard)});
  Intrinsic(shift ? nv::nvvm_tcgen05_mma_tensor_ashift : nv::nvvm_tcgen05_mma_tensor, arguments);
}
void Emitter::TensorMmaScaled(const ir::MmaInstruction& instruction, Value* d, Value* a_descriptor, Value* b_descriptor,
                              Value* accumulate, Value* metadata, Value* a_scales, Value* b_scales) {
  constexpr uint32_t kCollectorDiscard = 0;
  const auto cells = [&](Value* address) { return b_.CreateIntToPtr(address, Pointer(kTensorSpace)); };
  std::vector<Value*> arguments = {cells(d), a_descriptor, b_descriptor, C32(InstructionDescriptorBits(instruction)),
                                   accumulate};
  if (instruction.sparse) arguments.push_back(cells(metadata));
  arguments.insert(arguments.end(),
                   {cells(a_scales), cells(b_scales), C32(static_cast<uint32_t>(ctas_)), C32(kCollectorDiscard)});
  Intrinsic(ScaledMma(instruction), arguments);
}
void Emitter::TensorMmaSparse(const ir::MmaInstruction& instruction, Value* d, Value* a_descriptor, Value* b_descriptor,
                              Value* accumulate, Value* metadata) {
  constexpr uint32_t kCollectorDiscard = 0;
  const auto cells = [&](Value* address) { return b_.CreateIntToPtr(address, Pointer(kTensorSpace)); };
  Intrinsic(nv::nvvm_tcgen05_mma_sp_shared,
            {cells(d), a_descriptor, b_descriptor, C32(InstructionDescriptorBits(instruction)), accumulate,
             cells(metadata), KindOf(b_, instruction), C32(static_cast<uint32_t>(ctas_)), C32(kCollectorDiscard)});
}
void Emitter::BlockCopy(Value* address, Value* descriptor, int lines) {
  const bool pair = ctas_ == 2;
  const auto all_lanes = pair ? nv::nvvm_tcgen05_cp_128x128b_cg2 : nv::nvvm_tcgen05_cp_128x128b_cg1;
  const auto partitions = pair ? nv::nvvm_tcgen05_cp_32x128b_warpx4_cg2 : nv::nvvm_tcgen05_cp_32x128b_warpx4_cg1;
  Intrinsic(lines == ir::kTensorLanes ? all_lanes : partitions,
            {b_.CreateIntToPtr(address, Pointer(kTensorSpace)), descriptor});
}
void Emitter::TensorStore(Value* address, const std::vector<Value*>& words) {
  LS_CHECK(words.size() == 4, "a store of ", words.size(), " columns");
  Value* vector = llvm::PoisonValue::get(llvm::FixedVectorType::get(I32(), 4));
  for (size_t i = 0; i < words.size(); ++i) vector = b_.CreateInsertElement(vector, words[i], i);
  Intrinsic(nv::nvvm_tcgen05_st_32x32b_x4, {b_.CreateIntToPtr(address, Pointer(kTensorSpace)), vector, False()});
}
void Emitter::TensorStoreWait() { Intrinsic(nv::nvvm_tcgen05_wait_st); }
void Emitter::TensorCopy(Value* address, Value* descriptor) {
  Intrinsic(nv::nvvm_tcgen05_cp_128x256b_cg1, {b_.CreateIntToPtr(address, Pointer(kTensorSpace)), descriptor});
}
void Emitter::TensorRefresh(Value* address, Value* descriptor) {
  constexpr uint32_t kLastLane = 31u << 16;  // of each 32: the four rows go 32 lanes apart
  Value* lanes = b_.CreateOr(address, C32(kLastLane));
  Intrinsic(nv::nvvm_tcgen05_cp_4x256b_cg1, {b_.CreateIntToPtr(lanes, Pointer(kTensorSpace)), descriptor});
}
void Emitter::TensorShift(Value* address, int partition) {
  constexpr uint32_t kPartition = 32u << 16;
  if (partition != 0) address = b_.CreateAdd(address, C32(static_cast<uint32_t>(partition) * kPartition));
  Intrinsic(nv::nvvm_tcgen05_shift_down_cg1, {b_.CreateIntToPtr(address, Pointer(kTensorSpace))});
}
void Emitter::TensorCommit(Value* barrier, Value* mask) {
  if (mask == nullptr) {
    Intrinsic(ctas_ == 1 ? nv::nvvm_tcgen05_commit_shared_cg1 : nv::nvvm_tcgen05_commit_shared_cg2, {barrier});
    return;
  }
  Intrinsic(ctas_ == 1 ? nv::nvvm_tcgen05_commit_mc_shared_cg1 : nv::nvvm_tcgen05_commit_mc_shared_cg2,
            {barrier, mask});
}

std::vector<Value*> Emitter::TensorLoad(Value* address, const ir::FragmentLayout& layout, DataType type) {
  const bool rows = layout.kind == ir::FragmentKind::kRowPerLane;
  const int count = layout.Registers();
  const int repeat = rows ? count : count / 4;
  const std::string load = Cat("tcgen05.ld.sync.aligned.", rows ? "32x32b" : "16x256b", ".x", repeat, ".b32 {",
                               AsmOperands(0, count), "}, [$", count, "];");
  // One statement: between the load and its wait nothing may touch the registers, and LLVM would move things there.
  auto* result = llvm::StructType::get(b_.getContext(), std::vector<Type*>(count, Register(type)));
  return Unpack(Asm(load + "\n\ttcgen05.wait::ld.sync.aligned;",
                    AsmConstraints(RegisterConstraint(type), count) + ",r,~{memory}", result, {address}),
                count);
}

// ---- wgmma

void Emitter::DeclareAccumulators(int count, DataType type) {
  LS_CHECK(target_.Has(target::Feature::kWgmma), "wgmma on ", target_.name);
  accumulator_ += accumulator_.empty() ? "acc" : "_";
  accumulators_ = count;
  accumulator_type_ = type;
  Asm(Cat(".reg .", DataTypeName(type), " ", accumulator_, "<", count, ">;"), "", b_.getVoidTy(), {});
}
void Emitter::ClearAccumulators() {
  std::string text;
  for (int i = 0; i < accumulators_; ++i) text += Cat(i == 0 ? "" : "\n\t", "mov.b32 ", accumulator_, i, ", 0;");
  Asm(text, "~{memory}", b_.getVoidTy(), {});
}
void Emitter::DeclareMetadata(int count) {
  metadata_ += metadata_.empty() ? "meta" : "_";
  Asm(Cat(".reg .b32 ", metadata_, "<", count, ">;"), "", b_.getVoidTy(), {});
}
void Emitter::LoadMetadata(int first, int words, Value* address, int bytes) {
  LS_CHECK(words == 1 || words == 2, "a load of ", words, " words of metadata");
  const std::string to =
      words == 1 ? Cat(metadata_, first) : Cat("{", metadata_, first, ", ", metadata_, first + 1, "}");
  Asm(Cat("ld.shared", words == 1 ? "" : ".v2", ".b32 ", to, ", [$0+", bytes, "];"), "r,~{memory}", b_.getVoidTy(),
      {address});
}
void Emitter::WgmmaFence() { Intrinsic(nv::nvvm_wgmma_fence_sync_aligned); }
void Emitter::WgmmaCommit() { Intrinsic(nv::nvvm_wgmma_commit_group_sync_aligned); }
void Emitter::WgmmaWait(int pending) { Intrinsic(nv::nvvm_wgmma_wait_group_sync_aligned, {C64(pending)}); }

void Emitter::Wgmma(const ir::MmaInstruction& instruction, int first, Value* a_descriptor, Value* b_descriptor,
                    Value* accumulate, int metadata) {
  const auto& [kind, a, b, m, n, k, saturates, scale_byte, sparse, selector] = instruction;
  const DataType sums = instruction.accumulator();
  LS_CHECK(first + n / 2 <= accumulators_, "wgmma n=", n, " from ", first, " on with ", accumulators_, " accumulators");
  std::string text =
      Cat("wgmma.mma_async", sparse ? ".sp" : "", ".sync.aligned.m", m, "n", n, "k", k, ".", DataTypeName(sums), ".",
          DataTypeName(a.type), ".", DataTypeName(b.type), saturates ? ".satfinite {" : " {");
  for (int i = 0; i < n / 2; ++i) text += Cat(i == 0 ? "" : ", ", accumulator_, first + i);
  text += sparse ? Cat("}, $0, $1, ", metadata_, metadata, ", ", selector, ", $2") : "}, $0, $1, $2";
  if (!ir::IsInteger(sums)) text += ", 1, 1";  // neither operand is negated
  const bool transposes = ir::BitsOf(a.type) == 16;
  if (transposes) text += Cat(", ", a.mn_major ? 1 : 0, ", ", b.mn_major ? 1 : 0);
  LS_CHECK(transposes || (!a.mn_major && !b.mn_major), "wgmma reads ", DataTypeName(a.type), " along k");
  Asm(text + ";", "l,l,b,~{memory}", b_.getVoidTy(), {a_descriptor, b_descriptor, accumulate});
}

std::vector<Value*> Emitter::ReadAccumulators(int first, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text +=
        Cat(i == 0 ? "" : "\n\t", "mov.", DataTypeName(accumulator_type_), " $", i, ", ", accumulator_, first + i, ";");
  }
  auto* result = llvm::StructType::get(b_.getContext(), std::vector<Type*>(count, Register(accumulator_type_)));
  return Unpack(Asm(text, AsmConstraints(RegisterConstraint(accumulator_type_), count), result, {}), count);
}

}  // namespace laneshift::compiler
