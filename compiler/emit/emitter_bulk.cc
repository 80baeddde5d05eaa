// How the emitter spells bulk tensor copies.
#include "base/check.h"
#include "compiler/emit/emitter.h"
#include "compiler/emit/ptx_words.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace laneshift::compiler {

namespace nv = llvm::Intrinsic;

void Emitter::PrefetchTensorMap(Value* map) {
  // As asm: the intrinsic emits the instruction twice, once for the parameter and once for its generic address.
  Asm("prefetch.tensormap [$0];", "l,~{memory}", b_.getVoidTy(), {b_.CreatePtrToInt(map, I64())});
}

Emitter::BulkLoad Emitter::BulkLoadOf(Value* to, LoadBarrier at, Value* map, Value* mask) {
  Value* barrier = at.own;
  if (mask == nullptr && !at.of_leader && target_.Has(target::Feature::kTmaToCta))
    return {true, {to, barrier, map}, {C64(0), False()}};
  if (at.of_leader) {
    // The pair's ranks differ in the last bit: without it the own barrier's address is that of the leader's.
    constexpr uint32_t kRankBit = 1u << 24;
    barrier = b_.CreateIntToPtr(b_.CreateAnd(SharedAddress(barrier), C32(~kRankBit)), barrier->getType());
  }
  Value* flag = mask == nullptr ? False() : True();
  if (mask == nullptr) mask = b_.getInt16(0);
  const uint32_t group = at.of_leader ? static_cast<uint32_t>(ctas_) : 0;
  return {false,
          {b_.CreateAddrSpaceCast(to, Pointer(kClusterSpace)), barrier, map},
          {mask, C64(0), flag, False(), C32(group)}};
}

void Emitter::TmaLoadTile(Value* to, LoadBarrier barrier, Value* map, const std::vector<Value*>& at, Value* mask) {
  constexpr size_t kLeast = 3;
  constexpr llvm::Intrinsic::ID kToCluster[] = {nv::nvvm_cp_async_bulk_tensor_g2s_tile_3d,
                                                nv::nvvm_cp_async_bulk_tensor_g2s_tile_4d,
                                                nv::nvvm_cp_async_bulk_tensor_g2s_tile_5d};
  constexpr llvm::Intrinsic::ID kToCta[] = {nv::nvvm_cp_async_bulk_tensor_g2s_cta_tile_3d,
                                            nv::nvvm_cp_async_bulk_tensor_g2s_cta_tile_4d,
                                            nv::nvvm_cp_async_bulk_tensor_g2s_cta_tile_5d};
  LS_CHECK(at.size() >= kLeast && at.size() < kLeast + std::size(kToCta), "a box at ", at.size(), " coordinates");
  BulkLoad load = BulkLoadOf(to, barrier, map, mask);
  std::vector<Value*>& arguments = load.place;
  arguments.insert(arguments.end(), at.begin(), at.end());
  arguments.insert(arguments.end(), load.flags.begin(), load.flags.end());
  const size_t rank = at.size() - kLeast;
  Intrinsic(load.to_cta ? kToCta[rank] : kToCluster[rank], arguments);
}

void Emitter::TmaLoadRows(Value* to, LoadBarrier barrier, Value* map, const std::vector<Value*>& at, Value* mask) {
  constexpr size_t kOfOneRow = 2, kOfFourRows = 5;
  LS_CHECK(at.size() == kOfOneRow || at.size() == kOfFourRows, "a copy of ", at.size() - 1, " rows");
  BulkLoad load = BulkLoadOf(to, barrier, map, mask);
  std::vector<Value*>& arguments = load.place;
  arguments.insert(arguments.end(), at.begin(), at.end());
  arguments.insert(arguments.end(), load.flags.begin(), load.flags.end());
  const bool four = at.size() == kOfFourRows;
  const auto in_cta =
      four ? nv::nvvm_cp_async_bulk_tensor_g2s_cta_tile_gather4_2d : nv::nvvm_cp_async_bulk_tensor_g2s_cta_tile_2d;
  const auto in_cluster =
      four ? nv::nvvm_cp_async_bulk_tensor_g2s_tile_gather4_2d : nv::nvvm_cp_async_bulk_tensor_g2s_tile_2d;
  Intrinsic(load.to_cta ? in_cta : in_cluster, arguments);
}

void Emitter::TmaStore3d(Value* from, Value* map, Value* inner, Value* outer, Value* batch) {
  Intrinsic(nv::nvvm_cp_async_bulk_tensor_s2g_tile_3d, {from, map, inner, outer, batch, C64(0), False()});
}
void Emitter::TmaLoadIm2col(Value* to, LoadBarrier barrier, Value* map, const std::vector<Value*>& at,
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

}  // namespace laneshift::compiler
