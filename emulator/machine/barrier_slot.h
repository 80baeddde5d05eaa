// An mbarrier object of a CTA, with what its phases publish and who arrives at it.
//
// Thread-safety: none; it belongs to its cluster's host thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/pool.h"
#include "emulator/hazards/vector_clock.h"
#include "emulator/machine/warp.h"
#include "emulator/units/mbarrier.h"

namespace laneshift::emulator {

// Arrivals of single lanes at an mbarrier: whether the lanes of a warp keep step.
class LaneArrivals {
 public:
  // `lane` arrives in `phase`. True: it has waited for nothing since it arrived in an earlier phase, with other lanes.
  bool Arrive(const Warp& warp, int lane, uint32_t phase);
  // The warp completes the phase. True: a lane of it arrived twice, and another one that usually arrives has not.
  bool Complete(const Warp& warp, uint32_t phase);
  void Clear() { warps_.clear(); }

 private:
  struct Of {
    const Warp* warp;
    uint32_t phase, once, twice;           // the lanes that have arrived in this phase, and those that have twice
    uint32_t earlier, together;            // that arrived in an earlier phase, last and ever, each time with others
    std::array<uint32_t, kLanes> waits{};  // Warp::waits when they arrived last
  };
  Of& At(const Warp& warp, uint32_t phase);
  std::vector<Of> warps_;
};

// An mbarrier object and what its phases publish.
class BarrierSlot : public base::Pooled<BarrierSlot> {
 public:
  // As if it were new, except that its lists keep their memory.
  void Reset();

  Mbarrier state;
  // Operations whose completion a phase covers, by phase parity.
  std::array<std::vector<OpHandle>, 2> told;

  // The current phase will cover the completion of these operations. Call before the arrival or the bytes that may
  // end it.
  void Tell(std::span<const OpHandle> ops);
  // What arrivals of the current phase publish, from the object's own CTA or from others. Call before they arrive.
  VectorClock& Gathering(bool far = false);
  // What the last phase of this parity has published. REQUIRES: that phase is complete.
  const VectorClock& Told(uint32_t parity, bool far = false);

  uint16_t agent = 0;  // of its phases
  uint32_t past = 0;   // phases of earlier objects at this address
  Epoch initialised;
  bool init_fenced = false;     // by fence.mbarrier_init
  LaneArrivals lanes;           // of warps that arrive with several lanes
  std::vector<Warp*> arrivers;  // all that have ever arrived, or issued what arrives
  void NoteArriver(Warp* warp) {
    if (std::find(arrivers.begin(), arrivers.end(), warp) == arrivers.end()) arrivers.push_back(warp);
  }

 private:
  void Settle();
  uint32_t settled_ = 0;  // the phase to which clocks_ belong
  std::array<VectorClock, 2> clocks_, far_clocks_;
};
using BarrierRef = base::Counted<BarrierSlot>;

}  // namespace laneshift::emulator
