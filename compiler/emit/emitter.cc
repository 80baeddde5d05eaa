#include "compiler/emit/emitter.h"

#include "base/check.h"
#include "base/text.h"
#include "compiler/emit/mma_descriptor.h"
#include "ir/element_type.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace laneshift::compiler {
namespace {

using base::Cat;
using llvm::ArrayRef;
using llvm::Type;
namespace nv = llvm::Intrinsic;

constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3, kTensorSpace = 6, kClusterSpace = 7;
constexpr int kTensorMapBytes = 128;

// "$first, $first+1, …" and "constraint,constraint,…".
std::string Operands(int first, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += Cat(i == 0 ? "$" : ", $", first + i);
  return text;
}
std::string Repeat(std::string_view constraint, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += Cat(i == 0 ? "" : ",", constraint);
  return text;
}

// ".v4" of a vector access, or nothing for one word.
std::string_view VectorSuffix(size_t words) {
  LS_CHECK(words == 1 || words == 2 || words == 4, "no vector access of ", words, " words");
  return words == 1 ? "" : words == 2 ? ".v2" : ".v4";
}

llvm::ConstantInt* KindOf(llvm::IRBuilder<>& b, const ir::MmaInstruction& instruction) {
  return b.getInt32(static_cast<uint32_t>(ir::InfoOf(instruction.kind).llvm));
}

std::string Braced(const std::string& operands, size_t words) { return words == 1 ? operands : "{" + operands + "}"; }

}  // namespace

Emitter::Emitter(llvm::Module& module, const target::Target& target)
    : module_(module), target_(target), b_(module.getContext()) {
  // Let fmul and fadd of the epilogue fuse.
  llvm::FastMathFlags flags;
  flags.setAllowContract();
  b_.setFastMathFlags(flags);
}

llvm::CallInst* Emitter::Intrinsic(unsigned id, ArrayRef<Value*> arguments, ArrayRef<Type*> types) {
  return b_.CreateCall(nv::getOrInsertDeclaration(&module_, static_cast<nv::ID>(id), types), arguments);
}

llvm::CallInst* Emitter::Asm(const std::string& text, const std::string& constraints, Type* result,
                             ArrayRef<Value*> arguments) {
  std::vector<Type*> types;
  for (Value* argument : arguments) types.push_back(argument->getType());
  auto* type = llvm::FunctionType::get(result, types, false);
  llvm::CallInst* call =
      b_.CreateCall(type, llvm::InlineAsm::get(type, text, constraints, /*hasSideEffects=*/true), arguments);
  call->addFnAttr(llvm::Attribute::NoUnwind);
  call->addFnAttr(llvm::Attribute::Convergent);
  return call;
}

// Of registers alone: may be moved, merged and dropped.
Value* Emitter::PureAsm(const std::string& text, const std::string& constraints, Type* result,
                        ArrayRef<Value*> arguments) {
  std::vector<Type*> types;
  for (Value* argument : arguments) types.push_back(argument->getType());
  auto* type = llvm::FunctionType::get(result, types, false);
  llvm::CallInst* call =
      b_.CreateCall(type, llvm::InlineAsm::get(type, text, constraints, /*hasSideEffects=*/false), arguments);
  call->addFnAttr(llvm::Attribute::NoUnwind);
  call->setDoesNotAccessMemory();
  return call;
}

llvm::BasicBlock* Emitter::NewBlock() { return llvm::BasicBlock::Create(b_.getContext(), "", function_); }

std::vector<Value*> Emitter::Unpack(Value* aggregate, int count) {
  if (count == 1) return {aggregate};
  std::vector<Value*> values;
  for (int i = 0; i < count; ++i) values.push_back(b_.CreateExtractValue(aggregate, i));
  return values;
}

// ----------------------------------------------------------------------------------------------------------------
// frame

llvm::Function* Emitter::BeginKernel(std::string_view name, const std::vector<Type*>& parameters, int threads,
                                     int cluster, int ctas) {
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), parameters, false);
  function_ = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, std::string(name), module_);
  function_->setCallingConv(llvm::CallingConv::PTX_Kernel);
  // reqntid with minctasm gives ptxas the register count at entry, without which it drops setmaxnreg.
  function_->addFnAttr("nvvm.reqntid", Cat(threads, ",1,1"));
  function_->addFnAttr("nvvm.minctasm", "1");
  if (cluster > 1) function_->addFnAttr("nvvm.cluster_dim", Cat(cluster, ",1,1"));
  ctas_ = ctas;
  function_->addFnAttr("no-jump-tables", "true");
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  function_->addFnAttr(llvm::Attribute::Convergent);
  b_.SetInsertPoint(NewBlock());
  return function_;
}

void Emitter::MarkTensorMap(int parameter) {
  llvm::LLVMContext& context = b_.getContext();
  // Without grid_constant LLVM copies the map to local memory and TMA gets a local address.
  function_->addParamAttr(
      parameter, llvm::Attribute::getWithByValType(context, llvm::ArrayType::get(b_.getInt8Ty(), kTensorMapBytes)));
  function_->addParamAttr(parameter, llvm::Attribute::getWithAlignment(context, llvm::Align(64)));
  function_->addParamAttr(parameter, llvm::Attribute::get(context, "nvvm.grid_constant"));
  function_->addParamAttr(parameter, llvm::Attribute::NoAlias);
  function_->addParamAttr(parameter, llvm::Attribute::ReadOnly);
}

Value* Emitter::DynamicShared() {
  auto* type = llvm::ArrayType::get(b_.getInt8Ty(), 0);
  auto* global = new llvm::GlobalVariable(module_, type, false, llvm::GlobalValue::ExternalLinkage, nullptr,
                                          "shared_memory", nullptr, llvm::GlobalValue::NotThreadLocal, kSharedSpace);
  global->setAlignment(llvm::Align(1024));
  return global;
}

// --------------------------------------------------------------------------------------------------------- control
// flow

void Emitter::If(Value* condition, const std::function<void()>& then, const std::function<void()>& otherwise) {
  llvm::BasicBlock* yes = NewBlock();
  llvm::BasicBlock* no = otherwise ? NewBlock() : nullptr;
  llvm::BasicBlock* end = NewBlock();
  b_.CreateCondBr(condition, yes, no != nullptr ? no : end);
  b_.SetInsertPoint(yes);
  then();
  b_.CreateBr(end);
  if (no != nullptr) {
    b_.SetInsertPoint(no);
    otherwise();
    b_.CreateBr(end);
  }
  b_.SetInsertPoint(end);
}

void Emitter::For(Value* low, Value* high, int step, const std::function<void(Value*)>& body) {
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* head = NewBlock();
  llvm::BasicBlock* inside = NewBlock();
  llvm::BasicBlock* end = NewBlock();
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::PHINode* index = b_.CreatePHI(low->getType(), 2);
  index->addIncoming(low, before);
  b_.CreateCondBr(b_.CreateICmpULT(index, high), inside, end);
  b_.SetInsertPoint(inside);
  body(index);
  index->addIncoming(b_.CreateNUWAdd(index, llvm::ConstantInt::get(low->getType(), step)), b_.GetInsertBlock());
  llvm::BranchInst* latch = b_.CreateBr(head);
  llvm::LLVMContext& context = b_.getContext();
  auto* rolled = llvm::MDNode::get(context, {llvm::MDString::get(context, "llvm.loop.unroll.disable")});
  llvm::MDNode* loop = llvm::MDNode::getDistinct(context, {nullptr, rolled});
  loop->replaceOperandWith(0, loop);
  latch->setMetadata(llvm::LLVMContext::MD_loop, loop);
  b_.SetInsertPoint(end);
}

void Emitter::DoWhile(const std::function<Value*()>& body) {
  llvm::BasicBlock* inside = NewBlock();
  b_.CreateBr(inside);
  b_.SetInsertPoint(inside);
  Value* again = body();
  llvm::BasicBlock* end = NewBlock();
  b_.CreateCondBr(again, inside, end);
  b_.SetInsertPoint(end);
}

void Emitter::IfElected(const std::function<void()>& body) {
  If(b_.CreateExtractValue(Intrinsic(nv::nvvm_elect_sync, {C32(~0u)}), 1), body);
  WarpSync();
}

Variable Emitter::NewVariable(Type* type, Value* initial) {
  llvm::BasicBlock& entry = function_->getEntryBlock();
  llvm::IRBuilder<> at_entry(&entry, entry.getFirstInsertionPt());
  Variable variable{at_entry.CreateAlloca(type)};
  Store(variable, initial);
  return variable;
}

// -------------------------------------------------------------------------------------------------------------
// identity

Value* Emitter::ThreadIndex() { return Intrinsic(nv::nvvm_read_ptx_sreg_tid_x); }
Value* Emitter::CtaIndex() { return Intrinsic(nv::nvvm_read_ptx_sreg_ctaid_x); }
Value* Emitter::SmIndex() { return Intrinsic(nv::nvvm_read_ptx_sreg_smid); }
Value* Emitter::CtaCount() { return Intrinsic(nv::nvvm_read_ptx_sreg_nctaid_x); }
Value* Emitter::ClusterRank() { return Intrinsic(nv::nvvm_read_ptx_sreg_cluster_ctarank); }
Value* Emitter::BroadcastLane0(Value* value) {
  return Intrinsic(nv::nvvm_shfl_sync_idx_i32, {C32(~0u), value, C32(0), C32(31)});
}

Value* Emitter::ExchangeLanes(Value* value, int lanes) {
  return Intrinsic(nv::nvvm_shfl_sync_bfly_i32, {C32(~0u), value, C32(static_cast<uint32_t>(lanes)), C32(31)});
}

// ------------------------------------------------------------------------------------------------------
// synchronisation

void Emitter::BarrierSync(int id) { Intrinsic(nv::nvvm_barrier_cta_sync_aligned_all, {C32(id)}); }
void Emitter::BarrierSync(Value* id, int threads) {
  Intrinsic(nv::nvvm_barrier_cta_sync_aligned_count, {id, C32(threads)});
}
Value* Emitter::BarrierAny(Value* id, int threads, Value* any) {
  return Intrinsic(nv::nvvm_barrier_cta_red_or_aligned_count, {id, C32(threads), any});
}
void Emitter::WarpSync() { Intrinsic(nv::nvvm_bar_warp_sync, {C32(~0u)}); }
void Emitter::MbarrierInit(Value* barrier, int arrivals) {
  Intrinsic(nv::nvvm_mbarrier_init_shared, {barrier, C32(arrivals)});
}
void Emitter::FenceMbarrierInit() { Intrinsic(nv::nvvm_fence_mbarrier_init_release_cluster); }

void Emitter::MbarrierWait(Value* barrier, Value* parity) {
  llvm::BasicBlock* spin = NewBlock();
  llvm::BasicBlock* end = NewBlock();
  b_.CreateBr(spin);
  b_.SetInsertPoint(spin);
  b_.CreateCondBr(Intrinsic(nv::nvvm_mbarrier_try_wait_parity_scope_cta_space_cta, {barrier, parity}), end, spin);
  b_.SetInsertPoint(end);
}

void Emitter::MbarrierExpect(Value* barrier, int bytes) {
  Intrinsic(nv::nvvm_mbarrier_arrive_expect_tx_scope_cta_space_cta, {barrier, C32(bytes)});
}
void Emitter::MbarrierArrive(Value* barrier) {
  Intrinsic(nv::nvvm_mbarrier_arrive_scope_cta_space_cta, {barrier, C32(1)});
}
void Emitter::MbarrierArriveAt(Value* barrier, Value* rank) {
  Value* remote = Intrinsic(nv::nvvm_mapa_shared_cluster, {barrier, rank});
  Intrinsic(nv::nvvm_mbarrier_arrive_scope_cta_space_cluster, {remote, C32(1)});
}
void Emitter::ClusterSync() {
  Intrinsic(nv::nvvm_barrier_cluster_arrive_aligned);
  Intrinsic(nv::nvvm_barrier_cluster_wait_aligned);
}
void Emitter::GridWait() { Intrinsic(nv::nvvm_griddepcontrol_wait); }
void Emitter::LaunchDependents() { Intrinsic(nv::nvvm_griddepcontrol_launch_dependents); }
void Emitter::FenceProxyAsyncShared() { Intrinsic(nv::nvvm_fence_proxy_async_shared_cta); }

void Emitter::SetMaxRegisters(int registers, bool increase) {
  LS_CHECK(target_.Has(target::Feature::kSetMaxNReg), "setmaxnreg on ", target_.name);
  Intrinsic(increase ? nv::nvvm_setmaxnreg_inc_sync_aligned_u32 : nv::nvvm_setmaxnreg_dec_sync_aligned_u32,
            {C32(registers)});
}

// ------------------------------------------------------------------------------------------------------------------
// TMA

void Emitter::PrefetchTensorMap(Value* map) {
  // As asm: the intrinsic comes out twice, once for the parameter and once for its generic address.
  Asm("prefetch.tensormap [$0];", "l,~{memory}", b_.getVoidTy(), {b_.CreatePtrToInt(map, I64())});
}

Emitter::BulkLoad Emitter::BulkLoadOf(Value* to, Value* barrier, Value* map, Value* mask) {
  if (mask == nullptr && ctas_ == 1 && target_.Has(target::Feature::kTmaToCta))
    return {true, {to, barrier, map}, {C64(0), False()}};
  if (ctas_ > 1) {
    // The pair's ranks differ in the last bit: without it the own barrier's address is that of the leader's.
    constexpr uint32_t kRankBit = 1u << 24;
    barrier = b_.CreateIntToPtr(b_.CreateAnd(SharedAddress(barrier), C32(~kRankBit)), barrier->getType());
  }
  Value* flag = mask == nullptr ? False() : True();
  if (mask == nullptr) mask = b_.getInt16(0);
  const uint32_t group = ctas_ > 1 ? static_cast<uint32_t>(ctas_) : 0;
  return {false,
          {b_.CreateAddrSpaceCast(to, Pointer(kClusterSpace)), barrier, map},
          {mask, C64(0), flag, False(), C32(group)}};
}

void Emitter::TmaLoadTile(Value* to, Value* barrier, Value* map, const std::vector<Value*>& at, Value* mask) {
  LS_CHECK(at.size() == 3 || at.size() == 4, "a box at ", at.size(), " coordinates");
  BulkLoad load = BulkLoadOf(to, barrier, map, mask);
  std::vector<Value*>& arguments = load.place;
  arguments.insert(arguments.end(), at.begin(), at.end());
  arguments.insert(arguments.end(), load.flags.begin(), load.flags.end());
  if (at.size() == 3) {
    Intrinsic(load.to_cta ? nv::nvvm_cp_async_bulk_tensor_g2s_cta_tile_3d : nv::nvvm_cp_async_bulk_tensor_g2s_tile_3d,
              arguments);
  } else {
    Intrinsic(load.to_cta ? nv::nvvm_cp_async_bulk_tensor_g2s_cta_tile_4d : nv::nvvm_cp_async_bulk_tensor_g2s_tile_4d,
              arguments);
  }
}

void Emitter::TmaStore3d(Value* from, Value* map, Value* inner, Value* outer, Value* batch) {
  Intrinsic(nv::nvvm_cp_async_bulk_tensor_s2g_tile_3d, {from, map, inner, outer, batch, C64(0), False()});
}
void Emitter::TmaLoadIm2col(Value* to, Value* barrier, Value* map, const std::vector<Value*>& at,
                            const std::vector<Value*>& offsets, Value* mask) {
  LS_CHECK(at.size() == offsets.size() + 2 && (at.size() == 4 || at.size() == 5), "im2col load of ", at.size(),
           " coordinates");
  const bool planes = at.size() == 5;
  BulkLoad load = BulkLoadOf(to, barrier, map, mask);
  std::vector<Value*>& arguments = load.place;
  arguments.insert(arguments.end(), at.begin(), at.end());
  for (Value* offset : offsets) arguments.push_back(b_.CreateTrunc(offset, I16()));
  arguments.insert(arguments.end(), load.flags.begin(), load.flags.end());
  if (load.to_cta) {
    Intrinsic(
        planes ? nv::nvvm_cp_async_bulk_tensor_g2s_cta_im2col_5d : nv::nvvm_cp_async_bulk_tensor_g2s_cta_im2col_4d,
        arguments);
  } else {
    Intrinsic(planes ? nv::nvvm_cp_async_bulk_tensor_g2s_im2col_5d : nv::nvvm_cp_async_bulk_tensor_g2s_im2col_4d,
              arguments);
  }
}

void Emitter::TmaStoreIm2col(Value* from, Value* map, const std::vector<Value*>& at) {
  std::vector<Value*> arguments = {from, map};
  arguments.insert(arguments.end(), at.begin(), at.end());
  arguments.insert(arguments.end(), {C64(0), False()});
  Intrinsic(at.size() == 5 ? nv::nvvm_cp_async_bulk_tensor_s2g_im2col_5d : nv::nvvm_cp_async_bulk_tensor_s2g_im2col_4d,
            arguments);
}

void Emitter::BulkCommit() { Intrinsic(nv::nvvm_cp_async_bulk_commit_group); }
void Emitter::BulkWaitRead(int pending) { Intrinsic(nv::nvvm_cp_async_bulk_wait_group_read, {C32(pending)}); }

// --------------------------------------------------------------------------------------------------------------
// cluster launch control

void Emitter::RequestCluster(Value* answer, Value* barrier, bool multicast) {
  LS_CHECK(target_.Has(target::Feature::kLaunchControl), "cluster launch control on ", target_.name);
  Intrinsic(multicast ? nv::nvvm_clusterlaunchcontrol_try_cancel_async_multicast_shared
                      : nv::nvvm_clusterlaunchcontrol_try_cancel_async_shared,
            {answer, barrier});
}
Emitter::Grant Emitter::ReadAnswer(Value* pointer) {
  auto* words = llvm::FixedVectorType::get(I64(), 2);
  Value* answer = b_.CreateAlignedLoad(words, pointer, llvm::Align(16));
  // One statement: the first CTA of a request that was refused is undefined, and LLVM would ask for it in any case.
  auto* result = llvm::StructType::get(b_.getContext(), {I32(), I32()});
  const std::vector<Value*> read =
      Unpack(Asm("{\n\t.reg .b128 answer;\n\t.reg .pred granted;\n\tmov.b128 answer, {$2, $3};\n\t"
                 "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 granted, answer;\n\t"
                 "selp.b32 $0, 1, 0, granted;\n\tmov.b32 $1, 0;\n\t"
                 "@granted clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 $1, answer;\n\t}",
                 "=&r,=&r,l,l,~{memory}", result,
                 {b_.CreateExtractElement(answer, uint64_t{0}), b_.CreateExtractElement(answer, uint64_t{1})}),
             2);
  return {read[0], read[1]};
}

// --------------------------------------------------------------------------------------------------------------
// tcgen05

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
                                   C32(DescriptorOf(instruction).Bits()), accumulate};
  if (disabled != nullptr) {
    LS_CHECK(ctas_ == 1, "lanes of one CTA are left out of a pair's product");
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
                                   C32(DescriptorOf(instruction).Bits()), accumulate};
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
    LS_CHECK(ctas_ == 1, "a pair commits to both of its CTAs");
    Intrinsic(nv::nvvm_tcgen05_commit_shared_cg1, {barrier});
    return;
  }
  Intrinsic(ctas_ == 1 ? nv::nvvm_tcgen05_commit_mc_shared_cg1 : nv::nvvm_tcgen05_commit_mc_shared_cg2,
            {barrier, mask});
}

std::vector<Value*> Emitter::TensorLoad(Value* address, const ir::FragmentLayout& layout) {
  const bool rows = layout.kind == ir::FragmentKind::kRowPerLane;
  const int count = layout.Registers();
  const int repeat = rows ? count : count / 4;
  const std::string load = Cat("tcgen05.ld.sync.aligned.", rows ? "32x32b" : "16x256b", ".x", repeat, ".b32 {",
                               Operands(0, count), "}, [$", count, "];");
  // One statement: between the load and its wait nothing may touch the registers, and LLVM would move things there.
  auto* result = llvm::StructType::get(b_.getContext(), std::vector<Type*>(count, F32()));
  return Unpack(
      Asm(load + "\n\ttcgen05.wait::ld.sync.aligned;", Repeat("=f", count) + ",r,~{memory}", result, {address}), count);
}

// ----------------------------------------------------------------------------------------------------------------
// wgmma

void Emitter::DeclareAccumulators(int count) {
  LS_CHECK(target_.Has(target::Feature::kWgmma), "wgmma on ", target_.name);
  accumulator_ += accumulator_.empty() ? "acc" : "_";
  accumulators_ = count;
  Asm(Cat(".reg .f32 ", accumulator_, "<", count, ">;"), "", b_.getVoidTy(), {});
}
void Emitter::WgmmaFence() { Intrinsic(nv::nvvm_wgmma_fence_sync_aligned); }
void Emitter::WgmmaCommit() { Intrinsic(nv::nvvm_wgmma_commit_group_sync_aligned); }
void Emitter::WgmmaWait(int pending) { Intrinsic(nv::nvvm_wgmma_wait_group_sync_aligned, {C64(pending)}); }

void Emitter::Wgmma(const ir::MmaInstruction& instruction, int first, Value* a_descriptor, Value* b_descriptor,
                    Value* accumulate) {
  const auto& [kind, a, b, m, n, k] = instruction;
  LS_CHECK(first + n / 2 <= accumulators_, "wgmma n=", n, " from ", first, " on with ", accumulators_, " accumulators");
  std::string text = Cat("wgmma.mma_async.sync.aligned.m", m, "n", n, "k", k, ".f32.", DataTypeName(a.type), ".",
                         DataTypeName(b.type), " {");
  for (int i = 0; i < n / 2; ++i) text += Cat(i == 0 ? "" : ", ", accumulator_, first + i);
  text += "}, $0, $1, $2, 1, 1";
  // The form for 8-bit types has no transpositions.
  if (!ir::IsEightBit(a.type)) text += Cat(", ", a.mn_major ? 1 : 0, ", ", b.mn_major ? 1 : 0);
  LS_CHECK(!ir::IsEightBit(a.type) || (!a.mn_major && !b.mn_major), "wgmma reads 8-bit operands along k");
  Asm(text + ";", "l,l,b,~{memory}", b_.getVoidTy(), {a_descriptor, b_descriptor, accumulate});
}

std::vector<Value*> Emitter::ReadAccumulators(int first, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += Cat(i == 0 ? "" : "\n\t", "mov.f32 $", i, ", ", accumulator_, first + i, ";");
  auto* result = llvm::StructType::get(b_.getContext(), std::vector<Type*>(count, F32()));
  return Unpack(Asm(text, Repeat("=f", count), result, {}), count);
}

// ---------------------------------------------------------------------------------------------------------------
// memory

std::vector<Value*> Emitter::LoadGlobal(Value* address, int words, Value* predicate) {
  std::string text;
  for (int i = 0; i < words; ++i) text += Cat("mov.b32 $", i, ", 0;\n\t");
  text += Cat("@$", words + 1, " ld.global", VectorSuffix(words), ".b32 ", Braced(Operands(0, words), words), ", [$",
              words, "];");
  Type* result = words == 1 ? I32() : llvm::StructType::get(b_.getContext(), std::vector<Type*>(words, I32()));
  return Unpack(Asm(text, Repeat("=&r", words) + ",l,b,~{memory}", result, {address, predicate}), words);
}

Value* Emitter::LoadGlobalElement(int bytes, Value* address, Value* predicate, int offset) {
  return Asm(Cat("mov.b16 $0, 0;\n\t@$2 ld.global.", bytes == 1 ? "u8" : "b16", " $0, [$1 + ", offset, "];"),
             "=&h,l,b,~{memory}", I16(), {address, predicate});
}

void Emitter::StoreGlobal(Value* address, const std::vector<Value*>& words, Value* predicate) {
  const int count = static_cast<int>(words.size());
  std::vector<Value*> arguments = {predicate, address};
  arguments.insert(arguments.end(), words.begin(), words.end());
  Asm(Cat("@$0 st.global", VectorSuffix(count), ".b32 [$1], ", Braced(Operands(2, count), count), ";"),
      "b,l," + Repeat("r", count) + ",~{memory}", b_.getVoidTy(), arguments);
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

std::vector<Value*> Emitter::LoadShared(Value* pointer) {
  auto* words = llvm::FixedVectorType::get(I32(), 4);
  Value* loaded = b_.CreateAlignedLoad(words, pointer, llvm::Align(16));
  std::vector<Value*> values;
  for (uint64_t i = 0; i < 4; ++i) values.push_back(b_.CreateExtractElement(loaded, i));
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

void Emitter::StoreMatricesTransposed(Value* pointer, const std::vector<Value*>& words) {
  LS_CHECK(words.size() == 2 || words.size() == 4, "stmatrix of ", words.size(), " matrices");
  std::vector<Value*> arguments = {pointer};
  arguments.insert(arguments.end(), words.begin(), words.end());
  Intrinsic(words.size() == 4 ? nv::nvvm_stmatrix_sync_aligned_m8n8_x4_trans_b16
                              : nv::nvvm_stmatrix_sync_aligned_m8n8_x2_trans_b16,
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

Value* Emitter::Exp2(Value* x) { return PureAsm("ex2.approx.ftz.f32 $0, $1;", "=f,f", F32(), {x}); }
Value* Emitter::Reciprocal(Value* x) { return PureAsm("rcp.approx.ftz.f32 $0, $1;", "=f,f", F32(), {x}); }
Value* Emitter::RoundToInteger(Value* x) { return PureAsm("cvt.rni.f32.f32 $0, $1;", "=f,f", F32(), {x}); }
Value* Emitter::CutToHalf(Value* x) {
  return PureAsm("{ .reg .b16 half; cvt.rz.f16.f32 half, $1; cvt.f32.f16 $0, half; }", "=f,f", F32(), {x});
}
Value* Emitter::Tanh(Value* x) { return PureAsm("tanh.approx.f32 $0, $1;", "=f,f", F32(), {x}); }

std::vector<Value*> Emitter::UserFunction(const FunctionCode& code, Value* inside,
                                          const std::vector<Value*>& arguments) {
  // Early clobbers: a result may be written while parameters are still to be read.
  std::string constraints = Repeat("=&f", code.results);
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

// ----------------------------------------------------------------------------------------------------------
// conversions

std::vector<Value*> Emitter::JoinHalves(const std::vector<Value*>& halves) {
  std::vector<Value*> words;
  for (size_t i = 0; i < halves.size(); i += 2) {
    Value* low = b_.CreateZExt(halves[i], I32());
    words.push_back(b_.CreateOr(low, b_.CreateShl(b_.CreateZExt(halves[i + 1], I32()), 16)));
  }
  return words;
}

Value* Emitter::FunnelShiftRight(Value* high, Value* low, Value* bits) {
  return Intrinsic(llvm::Intrinsic::fshr, {high, low, bits}, {I32()});
}

std::vector<Value*> Emitter::JoinElements(int bytes, const std::vector<Value*>& elements) {
  if (bytes == 2) return JoinHalves(elements);
  std::vector<Value*> halves;
  for (size_t i = 0; i < elements.size(); i += 2) {
    halves.push_back(b_.CreateOr(elements[i], b_.CreateShl(elements[i + 1], 8)));
  }
  return JoinHalves(halves);
}

Value* Emitter::NarrowHalf(DataType type, const std::vector<Value*>& values) {
  if (ir::IsEightBit(type)) {
    const unsigned id = type == DataType::kE4m3 ? nv::nvvm_ff_to_e4m3x2_rn : nv::nvvm_ff_to_e5m2x2_rn;
    return Intrinsic(id, {values.size() > 1 ? values[1] : llvm::ConstantFP::get(F32(), 0), values[0]});
  }
  LS_CHECK(type != DataType::kF32 && values.size() == 1, values.size(), " of ", DataTypeName(type), " in 16 bits");
  Type* narrow = type == DataType::kF16 ? b_.getHalfTy() : b_.getBFloatTy();
  return b_.CreateBitCast(b_.CreateFPTrunc(values[0], narrow), I16());
}

std::vector<Value*> Emitter::NarrowWords(DataType type, const std::vector<Value*>& values) {
  std::vector<Value*> words;
  if (type == DataType::kF32) {
    for (Value* value : values) words.push_back(b_.CreateBitCast(value, I32()));
    return words;
  }
  if (ir::IsEightBit(type)) {
    for (size_t i = 0; i < values.size(); i += 2) words.push_back(NarrowHalf(type, {values[i], values[i + 1]}));
    return JoinHalves(words);
  }
  const unsigned id = type == DataType::kF16 ? nv::nvvm_ff2f16x2_rn : nv::nvvm_ff2bf16x2_rn;
  for (size_t i = 0; i < values.size(); i += 2) {
    words.push_back(b_.CreateBitCast(Intrinsic(id, {values[i + 1], values[i]}), I32()));
  }
  return words;
}

std::vector<Value*> Emitter::WidenHalf(DataType type, Value* half, int count) {
  if (ir::IsEightBit(type)) {
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
    for (int half = 0; half < 2; ++half) {
      for (Value* value : WidenHalf(type, Half(word, half), ir::IsEightBit(type) ? 2 : 1)) values.push_back(value);
    }
  }
  return values;
}

Value* Emitter::Half(Value* word, int index) {
  return b_.CreateTrunc(index == 0 ? word : b_.CreateLShr(word, 16), I16());
}

}  // namespace laneshift::compiler
