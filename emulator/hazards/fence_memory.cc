#include "emulator/hazards/fence_memory.h"

#include <algorithm>

namespace laneshift::emulator {

void FenceMemory::Fence(Knowledge& knowledge, uint32_t mask, uint32_t live, FenceScope reach) {
  for (Observed& seen : observed_) {
    const uint32_t lanes = seen.lanes & mask;
    if (lanes == 0) continue;
    for (size_t distance = 0; distance <= static_cast<size_t>(reach); ++distance) {
      if (!seen.told[distance].empty()) knowledge.Acquire(lanes, live, seen.told[distance]);
    }
    seen.lanes &= ~mask;
  }
  std::erase_if(observed_, [](const Observed& seen) { return seen.lanes == 0; });
  for (Released& old : released_) old.lanes &= ~mask;
  std::erase_if(released_, [](const Released& old) { return old.lanes == 0; });
  Released released{mask, reach, {}};
  knowledge.Release(mask, live, released.clock);
  released_.push_back(std::move(released));
}

void FenceMemory::Release(uint32_t mask, FenceScope needed, VectorClock& to) const {
  for (const Released& released : released_) {
    if ((released.lanes & mask) != 0 && released.reach >= needed) to.Join(released.clock);
  }
}

void FenceMemory::Observe(uint32_t mask, FenceScope distance, const VectorClock& told) {
  auto seen = std::find_if(observed_.begin(), observed_.end(), [&](const Observed& o) { return o.lanes == mask; });
  if (seen == observed_.end()) {
    // Lanes that observe separately from those that they observed with before continue with what all of these saw.
    Observed fresh{mask, {}};
    for (Observed& old : observed_) {
      if ((old.lanes & mask) == 0) continue;
      for (size_t d = 0; d < kReaches; ++d) fresh.told[d].Join(old.told[d]);
      old.lanes &= ~mask;
    }
    std::erase_if(observed_, [](const Observed& o) { return o.lanes == 0; });
    seen = observed_.insert(observed_.end(), std::move(fresh));
  }
  seen->told[static_cast<size_t>(distance)].Join(told);
}

}  // namespace laneshift::emulator
