// Resolves the mbarrier object at an address.
//
// Thread-safety: as the warp.
#pragma once

#include "emulator/machine/access.h"
#include "emulator/machine/cluster.h"

namespace laneshift::emulator {

// nullptr after a fault.
BarrierSlot* FindBarrierAt(Warp& warp, StateSpace space, uint64_t address, int lane, bool any_cta, Located& at);

}  // namespace laneshift::emulator
