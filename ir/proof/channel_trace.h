// What a role of a lowered program does to the barriers of its channels, in order, for given trip counts: all that
// channel_proof.h needs to know of it.
//
// Sizes of a problem are numbers of the trace: `k` and the extents of the filter follow from the trip counts, and the
// number of output tiles of the CTA is given. Everything else that varies with the problem (places of tiles, strides)
// is unknown; a loop or a condition around a barrier operation must not depend on it.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/program.h"

namespace laneshift::ir {

struct Trips {
  int tiles = 1;    // output tiles of a CTA, or slices of them
  int blocks = 1;   // of tile_k in `k`
  int rows = 1;     // taps of the filter along its height
  int columns = 1;  // along its width

  // "3 tiles of 2 blocks of K", and the filter if it is larger than one tap.
  std::string Text() const;
};

// One operation on the barriers of a slot, or the use of a resident slot (OpKind::kResidentSlot).
struct ChannelEvent {
  OpKind op{};
  int channel = 0;
  int64_t slot = 0;  // counted through all laps of the ring
  Side side = Side::kFull;
  MulticastScope to = MulticastScope::kOwn;
  int inverted = 0;       // of a wait
  int64_t amount = 0;     // arrivals, or bytes, for each barrier that is reached
  int leader_only = 0;    // of an expect
  bool whole = false;     // of a multicast: the first CTA that it reaches issues it
  bool in_order = false;  // of an arrival at several CTAs: at the first of them last
};

struct RoleTrace {
  std::vector<ChannelEvent> events;
  std::vector<int64_t> taken;    // per channel: one past the last slot that it takes; -1: it takes none
  bool reads_unawaited = false;  // the role reads a slot of a resident channel that it has not awaited
  bool overfills = false;        // a resident channel has fewer slots than are filled: no host launches this
};

// The role without everything that its barrier operations do not depend on: traced for one trip count after another.
Role ChannelsOnly(const Program& program, const Role& role);

// REQUIRES: Stage::kLowered; `role` is one of ChannelsOnly. kInternal names the op that depends on something that the
// trace does not know.
Result<RoleTrace> TraceRole(const Program& program, const Role& role, const Trips& trips);

}  // namespace laneshift::ir
