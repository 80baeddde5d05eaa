// HostThread: what a host thread keeps from one cluster of a launch to the next, to save work.
//
// Thread-safety: none; each host thread of a launch has its own. Invariant: nothing in it changes a result.
#pragma once

#include <memory>
#include <vector>

#include "emulator/cta_memory.h"
#include "emulator/plan_cache.h"
#include "emulator/units/operand_rows.h"
#include "emulator/units/tcgen05_mma.h"
#include "emulator/units/wgmma.h"

namespace laneshift::emulator {

struct HostThread {
  PlanCache<MmaRequest, PlannedMma> mma_plans;
  PlanCache<WgmmaRequest, PlannedWgmma> wgmma_plans;
  OperandBuffers operands;
  std::vector<std::unique_ptr<CtaMemory>> memories;  // of CTAs that have ended, not yet reset
};

}  // namespace laneshift::emulator
