// Emitter: the only place that knows how a PTX instruction is spelled, as an LLVM intrinsic or as inline assembly.
//
// A thin layer over IRBuilder: one method per instruction, named after it. Structured control flow (If, For, IfElected)
// replaces basic blocks. Intrinsics are used wherever LLVM 22 models them soundly (nvptx_backend.cc hardens their
// declarations); results that an asynchronous instruction delivers later are tied to their wait in one asm statement.
//
// Thread-safety: none; one emitter writes one module.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compiler/functions/function_code.h"
#include "ir/layout.h"
#include "ir/mma.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "target/target.h"

namespace laneshift::compiler {

using llvm::Value;

// A variable of the kernel: an alloca that SROA turns into registers.
struct Variable {
  llvm::AllocaInst* slot;
};

class Emitter {
 public:
  Emitter(llvm::Module& module, const target::Target& target);

  // --- Kernel frame.
  // `cluster` CTAs run together, `ctas` of them multiply together: the cta_group of every tcgen05 instruction.
  llvm::Function* BeginKernel(std::string_view name, const std::vector<llvm::Type*>& parameters, int threads,
                              int cluster = 1, int ctas = 1);
  void MarkTensorMap(int parameter);
  Value* Parameter(int index) { return function_->getArg(index); }
  // Dynamic shared memory, aligned to 1024 bytes.
  Value* DynamicShared();
  void Return() { b_.CreateRetVoid(); }

  // --- Types and constants.
  llvm::Type* I16() { return b_.getInt16Ty(); }
  llvm::Type* I32() { return b_.getInt32Ty(); }
  llvm::Type* I64() { return b_.getInt64Ty(); }
  llvm::Type* F32() { return b_.getFloatTy(); }
  // The type in which fragments of f32 or s32 are held.
  llvm::Type* Register(DataType type) { return type == DataType::kF32 ? F32() : I32(); }
  llvm::Type* Pointer(unsigned space) { return llvm::PointerType::get(b_.getContext(), space); }
  Value* C32(uint32_t value) { return b_.getInt32(value); }
  Value* C64(uint64_t value) { return b_.getInt64(value); }
  Value* True() { return b_.getTrue(); }
  Value* False() { return b_.getFalse(); }

  // --- Structured control flow.
  void If(Value* condition, const std::function<void()>& then, const std::function<void()>& otherwise = {});
  // for (i = low; i < high; i += step), rolled.
  void For(Value* low, Value* high, Value* step, const std::function<void(Value*)>& body);
  void For(Value* low, Value* high, int step, const std::function<void(Value*)>& body) {
    For(low, high, llvm::ConstantInt::get(low->getType(), static_cast<uint64_t>(step)), body);
  }
  // `body` gives the condition on which it runs again.
  void DoWhile(const std::function<Value*()>& body);
  // One thread of the converged warp runs `body`; the warp reconverges after it.
  void IfElected(const std::function<void()>& body);
  Variable NewVariable(llvm::Type* type, Value* initial);
  Value* Load(Variable variable) { return b_.CreateLoad(variable.slot->getAllocatedType(), variable.slot); }
  void Store(Variable variable, Value* value) { b_.CreateStore(value, variable.slot); }

  // The same 32 bits, opaque to LLVM: what is computed from them is recomputed, instead of being
  // kept in registers from an earlier place.
  Value* Anew(Value* value) { return Asm("mov.b32 $0, $1;", "=r,r", I32(), {value}); }

  // --- Thread identity.
  Value* ThreadIndex();
  Value* CtaIndex();
  Value* SmIndex();  // of the SM that runs the CTA
  // Now: the low word of the SM's clock; nanoseconds of the device's timer.
  Value* Clock();
  Value* GlobalTimer();
  Value* CtaCount();
  Value* ClusterRank();
  Value* BroadcastLane0(Value* value);            // shfl.sync.idx: makes warp-uniform values provably so
  Value* ExchangeLanes(Value* value, int lanes);  // shfl.sync.bfly: that of the lane whose number differs in these bits

  // --- Synchronisation.
  void BarrierSync(int id);
  // Of this many threads of the CTA, whole warps; whether `any` holds in one of them.
  void BarrierSync(Value* id, int threads);
  Value* BarrierAny(Value* id, int threads, Value* any);
  void WarpSync();
  void MbarrierInit(Value* barrier, int arrivals);
  void FenceMbarrierInit();
  Value* MbarrierTest(Value* barrier, Value* parity);  // acquire, if it holds
  enum class Scope : uint8_t { kCta, kCluster };
  void MbarrierWait(Value* barrier, Value* parity, Scope scope = Scope::kCta);  // acquire; spins on try_wait
  void MbarrierExpect(Value* barrier, Value* bytes);
  void MbarrierArrive(Value* barrier);
  // At the same barrier of another CTA of the cluster. With the scope of a CTA the arrival publishes that reads have
  // completed, and no writes.
  void MbarrierArriveAt(Value* barrier, Value* rank, Scope scope = Scope::kCta);
  // The same place in the shared memory of another CTA of the cluster.
  Value* SharedOf(Value* pointer, Value* rank);
  // Every thread of the cluster.
  void ClusterSync();
  // Until the grids that this one depends on have ended, and what they wrote is visible; grids that depend on this one
  // may start, and wait in the same way.
  void GridWait();
  void LaunchDependents();
  void FenceProxyAsyncShared();
  void SetMaxRegisters(int registers, bool increase);

  // --- TMA.
  void PrefetchTensorMap(Value* map);
  // Where the bytes of a bulk load are counted: at this barrier, or at the one at its offset in the leader of a pair.
  struct LoadBarrier {
    Value* own;
    bool of_leader;
  };
  // With `mask`, an i16, to the same offset in the CTAs whose bits are set, and to the same barrier there.
  void TmaLoadTile(Value* to, LoadBarrier barrier, Value* map, const std::vector<Value*>& at, Value* mask);
  // One row of a matrix, or four: `at` is the first element, then each row.
  void TmaLoadRows(Value* to, LoadBarrier barrier, Value* map, const std::vector<Value*>& at, Value* mask);
  void TmaStore3d(Value* from, Value* map, Value* inner, Value* outer, Value* batch);
  // Coordinates: channel, then 2 or 3 spatial starts, then the image; one 16-bit offset for each spatial dimension.
  void TmaLoadIm2col(Value* to, LoadBarrier barrier, Value* map, const std::vector<Value*>& at,
                     const std::vector<Value*>& offsets, Value* mask);
  void TmaStoreIm2col(Value* from, Value* map, const std::vector<Value*>& at);
  void BulkCommit();
  void BulkWaitRead(int pending);

  // --- Cluster launch control: a response is 16 bytes in shared memory, an i128.
  // With `multicast`, into the same offset of every CTA of the cluster, each of whose barriers gets 16 bytes.
  void RequestCluster(Value* response, Value* barrier, bool multicast);
  // Decodes a response: 1 and the index of the cluster's first CTA if a cluster was stolen, else 0 and 0.
  struct ClcResponse {
    Value* canceled;
    Value* first_cta;
  };
  ClcResponse ReadClcResponse(Value* pointer);

  // --- tcgen05.
  void TensorAlloc(Value* slot, int columns);
  void TensorRelinquish();
  void TensorDealloc(Value* address, int columns);
  void TensorFence(bool after);
  // `disabled`: four words of lanes of D that are not written, or null.
  void TensorMma(const ir::MmaInstruction& instruction, Value* d, Value* a_descriptor, Value* b_descriptor,
                 Value* accumulate, Value* disabled);
  // A in Tensor Memory. `shift`: .ashift.
  void TensorMmaA(const ir::MmaInstruction& instruction, Value* d, Value* a, Value* b_descriptor, Value* accumulate,
                  Value* disabled, bool shift);
  // With scale factors in Tensor Memory. `metadata`: of a sparse A, or null.
  void TensorMmaScaled(const ir::MmaInstruction& instruction, Value* d, Value* a_descriptor, Value* b_descriptor,
                       Value* accumulate, Value* metadata, Value* a_scales, Value* b_scales);
  // With a sparse A, whose metadata is from the cell on that the instruction's selector counts from.
  void TensorMmaSparse(const ir::MmaInstruction& instruction, Value* d, Value* a_descriptor, Value* b_descriptor,
                       Value* accumulate, Value* metadata);
  // Lines of 16 bytes: 32, by cp.32x128b to all four partitions, or 128, by cp.128x128b to as many lanes.
  void BlockCopy(Value* address, Value* descriptor, int lines);
  // Four words of each lane of the warp, one a column (st.32x32b); and the wait for all such stores of the thread.
  void TensorStore(Value* address, const std::vector<Value*>& words);
  void TensorStoreWait();
  void TensorCopy(Value* address, Value* descriptor);     // cp.128x256b
  void TensorRefresh(Value* address, Value* descriptor);  // cp.4x256b into the last lane of each partition
  void TensorShift(Value* address, int partition = 0);    // at the first lane of a partition
  void TensorCommit(Value* barrier,
                    Value* mask = nullptr);  // `mask`, an i16: at that barrier of those CTAs; or nullptr
  // tcgen05.ld and its wait, as one: 32x32b of `columns` columns, or 16x256b, of f32 or s32.
  std::vector<Value*> TensorLoad(Value* address, const ir::FragmentLayout& layout, DataType type);

  // --- wgmma. Accumulators are PTX registers that LLVM does not see: declared once a role, named in its later
  // statements.
  void DeclareAccumulators(int count, DataType type);
  // Sets them to 0. ptxas keeps registers that nothing has defined alive from the kernel's entry on, around every loop:
  // an epilogue that has copied the accumulators cannot have their registers unless each tile defines them anew.
  void ClearAccumulators();
  void WgmmaFence();
  // Words of metadata of a sparse A, PTX registers of the same kind: MMAs read them until they are done, and LLVM would
  // copy its own after the first that does.
  void DeclareMetadata(int count);
  // From `bytes` after an address in shared memory into `words` (1 or 2) of them from `first` on.
  void LoadMetadata(int first, int words, Value* address, int bytes);
  // Into the accumulators from `first` on. `metadata`: which word, of a sparse A.
  void Wgmma(const ir::MmaInstruction& instruction, int first, Value* a_descriptor, Value* b_descriptor,
             Value* accumulate, int metadata = 0);
  void WgmmaCommit();
  void WgmmaWait(int pending);
  std::vector<Value*> ReadAccumulators(int first, int count);

  // --- Memory. Predicated accesses are one instruction, no branch; a false predicate loads zeros.
  // `words` 32-bit registers (1, 2 or 4), or one element: of 1 or 2 bytes in the low end of 16 bits, of 4 in 32.
  std::vector<Value*> LoadGlobal(Value* address, int words, Value* predicate);
  Value* LoadGlobalElement(int bytes, Value* address, Value* predicate, int offset = 0);
  Value* LoadGlobalByte(Value* address);
  void StoreGlobal(Value* address, const std::vector<Value*>& words, Value* predicate);
  // Asynchronously to shared memory: `bytes` (4, 8 or 16), or zeros where the predicate does not hold; or the first
  // `inside` of them and then zeros. The groups in which the thread closes its copies, and the wait until at most
  // `pending` of them are incomplete.
  void CopyAsync(Value* to, Value* from, int bytes, Value* predicate);
  void CopyAsyncPart(Value* to, Value* from, int bytes, Value* inside);
  void CopyCommit();
  void CopyWait(int pending);
  // `bytes`, a multiple of 16, from a multiple of 16 on, into L2.
  void PrefetchGlobal(Value* address, Value* bytes, Value* predicate);
  // Returns the old value, and stores it plus one or, from `last` on, 0. Orders what comes before and after
  // it.
  Value* CountGlobal(Value* address, Value* last);
  // f32 added to what is there, or the larger of two u32.
  void ReduceGlobal(bool sum, Value* address, Value* word, Value* predicate);
  void StoreGlobalElement(int bytes, Value* address, Value* element, Value* predicate);
  void StoreShared(Value* pointer, const std::vector<Value*>& words);
  void StoreShared16(Value* pointer, Value* half);
  // stmatrix[.trans] of 2 or 4 matrices of 8 x 8 16-bit elements; each lane's pointer is a row of one.
  void StoreMatrices(Value* pointer, const std::vector<Value*>& words, bool transposed);
  std::vector<Value*> LoadShared(Value* pointer, int words = 4);  // 1, 2 or 4, from a multiple of them on
  Value* LoadSharedWord(Value* pointer);
  // Byte offset of byte `byte` of row `row` in a tile, after the XOR of its swizzle: SharedLayout::Offset on run-time
  // indices. Rows begin at multiples of a span, so that the XOR depends only on their numbers.
  Value* TileOffset(const ir::SharedLayout& layout, Value* row, Value* byte);
  Value* SharedAddress(Value* pointer) { return b_.CreatePtrToInt(pointer, I32()); }
  Value* Offset(Value* pointer, Value* bytes) { return b_.CreatePtrAdd(pointer, bytes); }

  // The low word of high:low, shifted right by `bits`, below 32.
  Value* AddSaturating(Value* a, Value* b);  // s32
  Value* FunnelShiftRight(Value* high, Value* low, Value* bits);

  // --- Conversions. Elements of 1 or 2 bytes are in 16 bits, the upper of which are 0.
  // f32 values as elements of the type: 1, or as many as fill 2 bytes, in an i16; a multiple of 4 bytes in words.
  Value* NarrowHalf(DataType type, const std::vector<Value*>& values);
  std::vector<Value*> NarrowWords(DataType type, const std::vector<Value*>& values);
  // The elements of the type in an i16 (the first `count` of them) and in words, as f32.
  std::vector<Value*> WidenHalf(DataType type, Value* half, int count);
  std::vector<Value*> WidenWords(DataType type, const std::vector<Value*>& words);
  // The eight e2m1 of a word as pairs of f16. REQUIRES: Feature::kFloat4.
  std::vector<Value*> WidenFourPairs(Value* word);
  // A user's function of one element: its results, 0 where the predicate of a guarded one is false.
  std::vector<Value*> UserFunction(const FunctionCode& code, Value* inside, const std::vector<Value*>& arguments);
  // Elements of `bytes` -> b32, the first one low.
  std::vector<Value*> JoinElements(int bytes, const std::vector<Value*>& elements);

  // --- Functions of one f32, as the chip approximates them: 2^x and 1/x to about an ulp, tanh to 2^-11.
  Value* Exp2(Value* x);
  Value* Reciprocal(Value* x);
  Value* Tanh(Value* x);
  Value* Divide(Value* x, Value* y);  // to nearest, as IEEE 754 says
  Value* RoundToInteger(Value* x);    // to nearest even
  Value* CutToHalf(Value* x);         // toward zero to a number of f16

  llvm::IRBuilder<>& ir() { return b_; }

 private:
  llvm::CallInst* Intrinsic(unsigned id, llvm::ArrayRef<Value*> arguments = {}, llvm::ArrayRef<llvm::Type*> types = {});
  Value* PureAsm(const std::string& text, const std::string& constraints, llvm::Type* result,
                 llvm::ArrayRef<Value*> arguments);
  llvm::CallInst* Asm(const std::string& text, const std::string& constraints, llvm::Type* result,
                      llvm::ArrayRef<Value*> arguments);
  llvm::BasicBlock* NewBlock();
  // Arguments of a bulk tensor load after its coordinates, and its destination and barrier.
  struct BulkLoad {
    bool to_cta;
    std::vector<Value*> place, flags;
  };
  BulkLoad BulkLoadOf(Value* to, LoadBarrier barrier, Value* map, Value* mask);
  std::vector<Value*> Unpack(Value* aggregate, int count);
  Value* Half(Value* word, int index);                                // i16 half of a b32
  static constexpr size_t kPackedInWord = 8;                          // elements of four bits
  Value* PackFours(const std::vector<Value*>& values);                // e2m1
  Value* CountFours(const std::vector<Value*>& values);               // the same in arithmetic
  std::vector<Value*> WidenFours(Value* word);                        // their numbers
  std::vector<Value*> JoinHalves(const std::vector<Value*>& halves);  // pairs of i16 -> b32, the first one low

  llvm::Module& module_;
  const target::Target& target_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_ = nullptr;
  int accumulators_ = 0;
  DataType accumulator_type_ = DataType::kF32;
  std::string accumulator_, metadata_;  // the name before its number
  int ctas_ = 1;
};

// Rounded up. REQUIRES: the sum of both is less than 2^32.
Value* CeilDiv(Emitter& e, Value* number, Value* unit);
Value* CeilDiv(Emitter& e, Value* number, int unit);

}  // namespace laneshift::compiler
