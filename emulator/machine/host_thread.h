// HostThread: what a host thread keeps from one cluster to the next, of one launch or of several, to save work.
//
// Thread-safety: none; each host thread has its own. Invariant: nothing in it changes a result.
#pragma once

#include <memory>
#include <vector>

#include "emulator/machine/cta_memory.h"
#include "emulator/machine/plan_cache.h"
#include "emulator/units/operand_rows.h"
#include "emulator/units/tcgen05_mma.h"
#include "emulator/units/wgmma.h"

namespace laneshift::emulator {

struct HostThread {
  // Drops what a launch with so much shared memory, and such checks, cannot use.
  void Prepare(uint32_t shared_bytes, bool checks) {
    if (shared_bytes == shared_bytes_ && checks == checks_) return;
    shared_bytes_ = shared_bytes;
    checks_ = checks;
    mma_plans = {};
    wgmma_plans = {};
    memories.clear();
  }

  PlanCache<MmaRequest, PlannedMma> mma_plans;
  PlanCache<WgmmaRequest, PlannedWgmma> wgmma_plans;
  OperandBuffers operands;
  std::vector<std::unique_ptr<CtaMemory>> memories;  // of CTAs that have ended, not yet reset

 private:
  uint32_t shared_bytes_ = 0;  // of each of them, and what plans go by
  bool checks_ = false;
};

}  // namespace laneshift::emulator
