// Simulation: the roles of a pipeline on one SM, step by step.
//
// Each role has its own clock. What roles share (the tensor core, the path from L2, the path to memory) is a resource
// that is busy until some time. Slots of rings carry time stamps from role to role. A role runs until it needs a slot
// that has not been filled or freed yet, then the next role runs: no event queue is needed, because the time stamp of a
// slot never changes.
//
// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "autotune/machine.h"
#include "autotune/moment.h"
#include "autotune/pipeline.h"

namespace laneshift::autotune {

// An SM's part of the shared resources, for one kernel.
struct SmShare {
  double load_rate = 0;      // bytes a clock, from L2
  double memory_clocks = 0;  // that memory is busy with this SM for each byte that it loads, on average
  bool in_step = true;       // all SMs are at the same point of their tiles
  double load_latency = 0;   // clocks
  double memory_queue = 0;   // clocks that a load waits longer while memory is always busy
  double outside_row = 0;    // clocks
  double store_rate = 0;     // bytes a clock
  Bound store_bound = Bound::kStore;
};

// A lower bound on the clocks of `tiles` output tiles, whatever is overlapped: the time for which the shared resources
// of an SM are busy, with what must come before their first use and after their last, and the time of the busiest role
// of a CTA, which does one thing after the other.
struct BusyClocks {
  double tensor = 0, loads = 0, stores = 0, role = 0;
  double products = 0;  // of the tensor core's, without head and tail
  double l2_part = 1;   // of the loads', what L2 is asked for: the data of a multicast once
  double memory = 0;    // which has a separate clock

  double Most() const { return std::max({tensor, loads, stores, role}); }
};
BusyClocks BusyOf(const Pipeline& pipeline, const Machine& machine, const SmShare& share, double tiles);

struct SmTime {
  Moment end;  // of the last tile
  BusyClocks busy;
};

// What is busy during a span of a trace.
enum class TraceUnit : uint8_t { kRole, kTensorCore, kLoads, kStores };

struct TracedSpan {
  TraceUnit unit{};
  int role = 0;  // of the pipeline, by whose step it is
  int cta = 0, tile = 0;
  StepKind step{};
  int ring = -1;
  bool of_b = false, waits = false;  // waits: the role does nothing else
  double begin = 0, end = 0;         // clocks
};

// The time of an SM that computes `tiles` output tiles in a row (each of its CTAs an equal part); never less than the
// clocks for which they keep it busy. `trace`: what it does during the tiles that are simulated; null: nobody looks.
SmTime SimulateSm(const Pipeline& pipeline, const Machine& machine, const SmShare& share, double tiles,
                  std::vector<TracedSpan>* trace = nullptr);

// Clocks for which an MMA occupies the tensor core of an SM, and whether the path of its operands is the reason.
struct ProductTime {
  double clocks = 0;
  Bound bound = Bound::kTensorCore;
};
ProductTime TimeOf(const Step& product, const Machine& machine);

}  // namespace laneshift::autotune
