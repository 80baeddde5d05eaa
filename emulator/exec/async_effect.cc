#include "emulator/exec/async_effect.h"

#include "base/text.h"

namespace laneshift::emulator {

using base::Cat;

OpHandle NewOperation(Warp& warp, AsyncKind kind, int lane) {
  auto op = warp.cta().cluster().NewOperation();
  op->kind = kind;
  op->warp = &warp;
  op->lane = lane;
  return op;
}

std::vector<Cta*> CtasOfMask(Warp& warp, uint32_t mask, int lane) {
  std::vector<Cta*> ctas;
  for (uint32_t r = 0; r < 16; ++r) {
    if ((mask >> r & 1) == 0) continue;
    Cta* cta = warp.cta().cluster().CtaOfRank(r);
    if (cta == nullptr || cta->done()) {
      warp.Fault(FaultKind::kLaunchFailure, lane,
                 Cat("the multicast mask names CTA ", r, ", which ", cta == nullptr ? "does not exist" : "has ended"));
      return {};
    }
    ctas.push_back(cta);
  }
  if (ctas.empty()) warp.Fault(FaultKind::kLaunchFailure, lane, "the multicast mask names no CTA");
  return ctas;
}

uint8_t* GlobalBytesOf(AsyncOp& op, uint64_t address, uint64_t bytes, AccessKind kind, Allocation*& cache) {
  Cluster& cluster = op.warp->cta().cluster();
  if (cache == nullptr || !cache->Contains(address, bytes)) {
    cache = cluster.machine().memory->Find(address, bytes);
    if (cache == nullptr) {
      cluster.SetFault({FaultKind::kIllegalAddress, PlaceOf(op),
                        Cat(bytes, " bytes at global address ", HexAddress(address), ": ",
                            cluster.machine().memory->Describe(address))});
      return nullptr;
    }
  }
  if (kind != AccessKind::kWrite && cluster.checks() && !cache->Written(address, bytes)) {
    cluster.machine().hazards->Add(HazardKind::kUninitialisedGlobal, PlaceOf(op),
                                   Cat("this copy reads bytes at ", HexAddress(address), " that were never written"));
  }
  if (Writes(kind)) cache->MarkWritten(address, bytes);
  return cache->At(address);
}

bool CompleteTransaction(AsyncOp& op, Cta& cta, uint32_t offset, int64_t bytes) {
  Cluster& cluster = cta.cluster();
  BarrierSlot* slot = cluster.FindBarrier(cta, offset);
  if (slot == nullptr) {
    cluster.SetFault({FaultKind::kLaunchFailure, PlaceOf(op),
                      Cat("there is no mbarrier at shared offset ", offset, " to complete bytes on")});
    return false;
  }
  const OpHandle handle(&op);
  slot->Tell({&handle, 1});
  if (auto done = slot->state.CompleteBytes(bytes); !done.has_value()) {
    cluster.SetFault({FaultKind::kLaunchFailure, PlaceOf(op), done.error().message});
    return false;
  }
  cluster.Signal();
  return true;
}

}  // namespace laneshift::emulator
