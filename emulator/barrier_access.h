// Finding the mbarrier object that an address names.
//
// Thread-safety: as the warp.
#pragma once

#include "emulator/access.h"
#include "emulator/cluster.h"

namespace laneshift::emulator {

// nullptr after a fault.
BarrierSlot* FindBarrierAt(Warp& warp, Space space, uint64_t address, int lane, bool any_cta, Located& at);

}  // namespace laneshift::emulator
