// Simulation: the roles of a pipeline on one SM, step by step.
//
// Each role has its own time; what two of them share (the tensor core, the way from L2, the way out) is a resource that
// is busy until a moment. Slots of rings pass moments from role to role. A role runs until it needs a slot that nobody
// has filled or freed yet, then the next one does: no queue of events is needed, because a slot's moment never changes.
//
// Thread-safety: pure functions.
#pragma once

#include <algorithm>

#include "autotune/machine.h"
#include "autotune/moment.h"
#include "autotune/pipeline.h"

namespace laneshift::autotune {

// What one SM has of what all share, for one kernel.
struct SmShare {
  double load_rate = 0;      // bytes a clock, from L2
  double memory_clocks = 0;  // for which memory is busy with this SM for each byte that it loads, on average
  bool in_step = true;       // all SMs are at the same point of their tiles
  double load_latency = 0;   // clocks
  double memory_queue = 0;   // clocks that a load waits longer while memory is always busy
  double outside_row = 0;    // clocks
  double store_rate = 0;     // bytes a clock
  Bound store_bound = Bound::kStore;
};

// Clocks that `tiles` output tiles take at least, whatever is overlapped: what the CTAs of an SM share is busy for so
// long, with what comes before its first use and behind its last; and the busiest role of a CTA does one thing after
// the other.
struct BusyClocks {
  double tensor = 0, loads = 0, stores = 0, role = 0;
  double products = 0;  // of the tensor core's, without head and tail
  double memory = 0;    // which has a clock of its own

  double Most() const { return std::max({tensor, loads, stores, role}); }
};
BusyClocks BusyOf(const Pipeline& pipeline, const Machine& machine, const SmShare& share, double tiles);

struct SmTime {
  Moment end;  // of the last tile
  BusyClocks busy;
};

// The time of an SM that computes `tiles` output tiles in a row (each of its CTAs an equal part); at least the clocks
// for which they keep it busy.
SmTime SimulateSm(const Pipeline& pipeline, const Machine& machine, const SmShare& share, double tiles);

// Clocks that the tensor core of an SM is held by a product, and whether its operands' way is why.
struct ProductTime {
  double clocks = 0;
  Bound bound = Bound::kTensorCore;
};
ProductTime TimeOf(const Step& product, const Machine& machine);

}  // namespace laneshift::autotune
