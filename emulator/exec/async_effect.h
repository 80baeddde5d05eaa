// Parts of asynchronous instructions: creating the operation, resolving its destinations, and its effect on
// global memory and mbarriers.
//
// Thread-safety: as the warp.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "emulator/machine/access.h"
#include "emulator/machine/cluster.h"

namespace laneshift::emulator {

// An operation of `lane` (-1: of the whole warp), to be issued by Cluster::Issue.
OpHandle NewOperation(Warp& warp, AsyncKind kind, int lane);

// The CTAs that a multicast mask names; nothing after a fault.
std::vector<Cta*> CtasOfMask(Warp& warp, uint32_t mask, int lane);

// ---- inside effects; nullptr or false after a fault of the operation ----

// The bytes of global memory that the operation accesses. `cache` speeds up the next call.
uint8_t* GlobalBytesOf(AsyncOp& op, uint64_t address, uint64_t bytes, AccessKind kind, Allocation*& cache);
// complete_tx on the barrier at `offset` of `cta`, which covers `op`.
bool CompleteTransaction(AsyncOp& op, Cta& cta, uint32_t offset, int64_t bytes);

}  // namespace laneshift::emulator
