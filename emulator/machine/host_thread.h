// HostThread: what a host thread reuses from one cluster to the next, of one launch or of several.
//
// Thread-safety: none; each host thread has its own. Invariant: nothing in it changes a result.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "emulator/machine/async_op.h"
#include "emulator/machine/barrier_slot.h"
#include "emulator/machine/cta_memory.h"
#include "emulator/machine/pending_ranges.h"
#include "emulator/machine/plan_cache.h"
#include "emulator/machine/tensor_map_cache.h"
#include "emulator/machine/warp_memory.h"
#include "emulator/units/operand_rows.h"
#include "emulator/units/tcgen05_mma.h"
#include "emulator/units/wgmma.h"

namespace laneshift::emulator {

// What a kernel has thousands of, with half a dozen short lists in each: allocating these again and again took a tenth
// of the time of kernels with small tiles.
struct ClusterPools {
  base::Pool<OpRecord> records;
  base::Pool<AsyncOp> operations;
  base::Pool<BarrierSlot> barriers;

  // Exchanges what the two have that nobody uses.
  void Refill(ClusterPools& other) {
    records.Refill(other.records);
    operations.Refill(other.operations);
    barriers.Refill(other.barriers);
  }
};

class HostThread {
 public:
  // Reusable by launches with this much shared memory, and these checks.
  struct Kept {
    uint32_t shared_bytes = 0;
    bool checks = false;
    PlanCache<MmaRequest, PlannedMma> mma_plans;
    PlanCache<WgmmaRequest, PlannedWgmma> wgmma_plans;
    std::vector<std::unique_ptr<CtaMemory>> memories;  // of CTAs that have ended, as new
  };

  HostThread() { kept_.push_back(std::make_unique<Kept>()); }
  // A launch with this much shared memory, and these checks, comes next: kept() is what earlier ones like it left. A
  // program often alternates between a few kernels, so the sizes of the last few are kept.
  void Prepare(uint32_t shared_bytes, bool checks) {
    constexpr size_t kSizes = 4;
    auto known = std::find_if(kept_.begin(), kept_.end(), [&](const auto& kept) {
      return kept->shared_bytes == shared_bytes && kept->checks == checks;
    });
    if (known == kept_.end()) {
      if (kept_.size() == kSizes) kept_.pop_back();
      known = kept_.insert(kept_.end(), std::make_unique<Kept>());
      (*known)->shared_bytes = shared_bytes;
      (*known)->checks = checks;
    }
    std::rotate(kept_.begin(), known, known + 1);
  }
  Kept& kept() { return *kept_.front(); }

  OperandBuffers operands;
  KeptWarps warps;
  ClusterPools pools;
  PendingRanges pending_global;  // none: the memory of some
  TensorMapCache tensor_maps;

 private:
  std::vector<std::unique_ptr<Kept>> kept_;  // most recently used first; never empty
};

}  // namespace laneshift::emulator
