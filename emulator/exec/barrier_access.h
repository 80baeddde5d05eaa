// Resolves the mbarrier object at an address.
//
// Thread-safety: as the warp.
#pragma once

#include "emulator/machine/access.h"
#include "emulator/machine/cluster.h"

namespace laneshift::emulator {

// For the lanes of one instruction, which mostly name one object.
class BarrierLookup {
 public:
  enum class Scope : uint8_t { kOwnCta, kAnyCta };
  BarrierLookup(Warp& warp, StateSpace space, Scope scope) : warp_(warp), space_(space), scope_(scope) {}

  // nullptr after a fault.
  BarrierSlot* Find(uint64_t address, int lane);
  // Where the last one is.
  const Located& at() const { return at_; }

 private:
  BarrierSlot* Locate(int lane);

  Warp& warp_;
  const StateSpace space_;
  const Scope scope_;
  uint64_t address_ = 0;
  BarrierSlot* slot_ = nullptr;  // at address_
  Located at_;
};

// The same for one lane.
BarrierSlot* FindBarrierAt(Warp& warp, StateSpace space, uint64_t address, int lane, bool any_cta, Located& at);

}  // namespace laneshift::emulator
