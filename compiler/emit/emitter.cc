#include "compiler/emit/emitter.h"

#include "base/text.h"
#include "compiler/emit/ptx_words.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace laneshift::compiler {

using base::Cat;
using llvm::ArrayRef;
using llvm::Type;
namespace nv = llvm::Intrinsic;

namespace {

constexpr int kTensorMapBytes = 128;

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

// Uses only registers: may be moved, merged and dropped.
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

// ---- frame

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

// ---- control flow

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

void Emitter::For(Value* low, Value* high, Value* step, const std::function<void(Value*)>& body) {
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
  index->addIncoming(b_.CreateNUWAdd(index, step), b_.GetInsertBlock());
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

// ---- identity

Value* Emitter::ThreadIndex() { return Intrinsic(nv::nvvm_read_ptx_sreg_tid_x); }
Value* Emitter::CtaIndex() { return Intrinsic(nv::nvvm_read_ptx_sreg_ctaid_x); }
Value* Emitter::SmIndex() { return Intrinsic(nv::nvvm_read_ptx_sreg_smid); }
Value* Emitter::Clock() { return Asm("mov.u32 $0, %clock;", "=r,~{memory}", I32(), {}); }
Value* Emitter::GlobalTimer() { return Asm("mov.u64 $0, %globaltimer;", "=l,~{memory}", I64(), {}); }
Value* Emitter::CtaCount() { return Intrinsic(nv::nvvm_read_ptx_sreg_nctaid_x); }
Value* Emitter::ClusterRank() { return Intrinsic(nv::nvvm_read_ptx_sreg_cluster_ctarank); }
Value* Emitter::BroadcastLane0(Value* value) {
  return Intrinsic(nv::nvvm_shfl_sync_idx_i32, {C32(~0u), value, C32(0), C32(31)});
}

Value* Emitter::ExchangeLanes(Value* value, int lanes) {
  return Intrinsic(nv::nvvm_shfl_sync_bfly_i32, {C32(~0u), value, C32(static_cast<uint32_t>(lanes)), C32(31)});
}

}  // namespace laneshift::compiler
