// Slots that a role fills by asynchronous copies of its threads and sends late: while the copies into one are on their
// way, it issues those into the next ones.
//
// Thread-safety: pure functions.
#pragma once

#include "ir/program.h"

namespace laneshift::ir {

// How many slots of the channel are on their way when the next one has been filled: the oldest of more is sent. Half of
// the ring, so that the other half is full of what has come; and so few that a role that releases its slots late finds
// the slot after them full, without which it releases none. REQUIRES: Stage::kScheduled.
int SlotsOnTheirWay(const Program& program, int channel);

}  // namespace laneshift::ir
