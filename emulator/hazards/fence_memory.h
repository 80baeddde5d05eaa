// FenceMemory: how the fences of a warp order its relaxed accesses.
//
// A relaxed write after a fence releases what came before that fence, not what came after it; a relaxed read before a
// fence acquires what it saw once the fence is executed. Thread-safety: as the warp, whose member it is. It exists only
// with hazard checks.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "emulator/hazards/vector_clock.h"

namespace laneshift::emulator {

// How far an access or a fence reaches: its CTA, its cluster, or the device and more.
enum class FenceScope : uint8_t { kCta, kCluster, kDevice };
inline constexpr size_t kReaches = 3;

class FenceMemory {
 public:
  // A fence of the lanes in `mask`.
  void Fence(Knowledge& knowledge, uint32_t mask, uint32_t live, FenceScope reach);
  // A relaxed write of `mask`: adds to `to` what fences of sufficient scope let it release.
  void Release(uint32_t mask, FenceScope needed, VectorClock& to) const;
  // A relaxed read of `mask` observed what threads at `distance` released.
  void Observe(uint32_t mask, FenceScope distance, const VectorClock& told);

 private:
  struct Released {
    uint32_t lanes;
    FenceScope reach;
    VectorClock clock;
  };
  struct Observed {
    uint32_t lanes;
    std::array<VectorClock, kReaches> told;  // by distance
  };
  std::vector<Released> released_;  // each lane is in at most one of them; so below
  std::vector<Observed> observed_;
};

}  // namespace laneshift::emulator
