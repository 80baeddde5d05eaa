// Traffic: what the kernel of a schedule moves and multiplies for one problem, counted in its tile program.
//
// The counts are exact: they equal what the PTX executes, operation by operation, with the problem's sizes as trip
// counts. Zeros that the TMA fills outside of an image are counted as bytes loaded, because shared memory is written.
//
// The bounds are clocks of the busiest SM below which no kernel with these counts runs, each as if its resource were
// the only one. Sources:
//   MMA issue      Target::mma_macs_per_clock; a tcgen05.mma of 64 rows takes as long as one of 128. On a B200 the
//                  initiation interval of one CTA's MMA is N/2 clocks for 32 bytes of K.
//   shared reads   128 bytes a clock. Measured on a B200: MMAs with both operands in shared memory are issued every
//                  max(N/2, (M+N)/4) clocks (M=128, N=64: 48), those with A in Tensor Memory every N/2
//                  (SemiAnalysisAI/microbench-blackwell, umma_latency). No rate of tcgen05.cp has been published; its
//                  reads are counted on the same port.
//   fill           49 bytes a clock from L2 to one SM while all SMs load (same source, tma2dmcast: 14.2 TB/s in all).
// No rate of tcgen05.shift is published: it is assumed free, so the bounds of lane_shift are the most optimistic.
// For Hopper the same two memory rates are assumed, unmeasured.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "ir/program.h"
#include "laneshift/problem.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::compiler {

struct Traffic {
  int64_t bulk_bytes = 0;         // global to shared memory by the TMA
  int64_t thread_bytes = 0;       // shared memory filled by threads that copy or gather
  int64_t mma_instructions = 0;   // tcgen05.mma, or wgmma of each warpgroup
  int64_t idle_mmas = 0;          // of them: those that only enforce an order
  int64_t mma_shared_bytes = 0;   // that they read
  int64_t tensor_copies = 0;      // full tiles to Tensor Memory: tcgen05.cp.128x256b, 32 bytes of K each
  int64_t tensor_refreshes = 0;   // tcgen05.cp.4x256b
  int64_t tensor_shifts = 0;      // tcgen05.shift
  int64_t tensor_copy_bytes = 0;  // of copies and refreshes, and of stores by warps, each of which reads all
  int64_t mma_clocks = 0;         // of one tensor core that issues them all

  int64_t GlobalToSharedBytes() const { return bulk_bytes + thread_bytes; }
  // By MMAs and by copies to Tensor Memory.
  int64_t SharedReadBytes() const { return mma_shared_bytes + tensor_copy_bytes; }

  Traffic& operator+=(const Traffic& other);
  Traffic operator*(int64_t times) const;
  // One of `parts` equal parts of this traffic.
  Traffic Share(int64_t times, int64_t parts) const;
  bool operator==(const Traffic&) const = default;
};

// Of the whole problem, and of the SM with the most work.
struct KernelTraffic {
  Traffic all, busiest;
};

// REQUIRES: `program` is the schedule's for this problem, at any stage; the CTAs are at most `sm_count`, one an SM.
KernelTraffic CountTraffic(const Problem& problem, const Schedule& schedule, const ir::Program& program,
                           const target::Target& target, int sm_count);

// Clocks of one SM.
struct TrafficBound {
  double fill = 0, shared_reads = 0, mma = 0;

  double Clocks() const;
  std::string_view By() const;  // "fill", "shared_reads" or "mma": the largest
};
TrafficBound BoundOf(const Traffic& of_one_sm);

}  // namespace laneshift::compiler
