// Shared by all tcgen05 instructions: the CTAs in which they work, and their operations.
//
// Thread-safety: as the warp.
#pragma once

#include "base/short_array.h"
#include "emulator/decode/binders.h"
#include "emulator/exec/async_effect.h"

namespace laneshift::emulator {

// The CTA of an instruction, or both of its pair.
using CtaGroup = base::ShortArray<Cta*, 2>;

// 1 or 2, from the suffix .cta_group::N.
int CtaGroupOf(const Match& match);

// The CTAs in which an instruction of this cta_group works, even rank first; empty after a fault.
CtaGroup CtasOfGroup(Warp& warp, int group, int lane);

OpHandle NewTensorOperation(Warp& warp, AsyncKind kind, int lane, int group);
// Declares what the operation reads and writes in `cta`.
void AddTouched(AsyncOp& op, Cta* cta, const Touched& touched);

// The lanes that issue an operation each: all active ones, unless the policy says that a warp issues one.
uint32_t IssuingLanes(Warp& warp, uint32_t mask);

}  // namespace laneshift::emulator
