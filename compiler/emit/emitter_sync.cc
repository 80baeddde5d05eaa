// How the emitter spells synchronisation of threads, CTAs and grids, and cluster launch control.
#include "base/check.h"
#include "compiler/emit/emitter.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace laneshift::compiler {

namespace nv = llvm::Intrinsic;

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

void Emitter::MbarrierWait(Value* barrier, Value* parity, Scope scope) {
  llvm::BasicBlock* spin = NewBlock();
  llvm::BasicBlock* end = NewBlock();
  b_.CreateBr(spin);
  b_.SetInsertPoint(spin);
  const auto wait = scope == Scope::kCluster ? nv::nvvm_mbarrier_try_wait_parity_scope_cluster_space_cta
                                             : nv::nvvm_mbarrier_try_wait_parity_scope_cta_space_cta;
  b_.CreateCondBr(Intrinsic(wait, {barrier, parity}), end, spin);
  b_.SetInsertPoint(end);
}

Value* Emitter::MbarrierTest(Value* barrier, Value* parity) {
  return Intrinsic(nv::nvvm_mbarrier_test_wait_parity_scope_cta_space_cta, {barrier, parity});
}

void Emitter::MbarrierExpect(Value* barrier, Value* bytes) {
  Intrinsic(nv::nvvm_mbarrier_arrive_expect_tx_scope_cta_space_cta, {barrier, bytes});
}
void Emitter::MbarrierArrive(Value* barrier) {
  Intrinsic(nv::nvvm_mbarrier_arrive_scope_cta_space_cta, {barrier, C32(1)});
}
void Emitter::MbarrierArriveAt(Value* barrier, Value* rank, Scope scope) {
  const auto arrive = scope == Scope::kCluster ? nv::nvvm_mbarrier_arrive_scope_cluster_space_cluster
                                               : nv::nvvm_mbarrier_arrive_scope_cta_space_cluster;
  Intrinsic(arrive, {SharedOf(barrier, rank), C32(1)});
}
Value* Emitter::SharedOf(Value* pointer, Value* rank) {
  return Intrinsic(nv::nvvm_mapa_shared_cluster, {pointer, rank});
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

void Emitter::RequestCluster(Value* response, Value* barrier, bool multicast) {
  LS_CHECK(target_.Has(target::Feature::kLaunchControl), "cluster launch control on ", target_.name);
  Intrinsic(multicast ? nv::nvvm_clusterlaunchcontrol_try_cancel_async_multicast_shared
                      : nv::nvvm_clusterlaunchcontrol_try_cancel_async_shared,
            {response, barrier});
}
Emitter::ClcResponse Emitter::ReadClcResponse(Value* pointer) {
  auto* words = llvm::FixedVectorType::get(I64(), 2);
  Value* response = b_.CreateAlignedLoad(words, pointer, llvm::Align(16));
  // One statement: the first CTA of a request that failed is undefined, and LLVM would query it in any case.
  auto* result = llvm::StructType::get(b_.getContext(), {I32(), I32()});
  const std::vector<Value*> read =
      Unpack(Asm("{\n\t.reg .b128 response;\n\t.reg .pred canceled;\n\tmov.b128 response, {$2, $3};\n\t"
                 "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 canceled, response;\n\t"
                 "selp.b32 $0, 1, 0, canceled;\n\tmov.b32 $1, 0;\n\t"
                 "@canceled clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 $1, response;\n\t}",
                 "=&r,=&r,l,l,~{memory}", result,
                 {b_.CreateExtractElement(response, uint64_t{0}), b_.CreateExtractElement(response, uint64_t{1})}),
             2);
  return {read[0], read[1]};
}

}  // namespace laneshift::compiler
