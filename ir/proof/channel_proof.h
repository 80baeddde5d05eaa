// A proof that the channels of a lowered program neither deadlock nor miss a phase, for all timings and trip counts.
//
// Model. A process is a role in a CTA of one cluster; its trace (channel_trace.h) is the sequence of its operations on
// barriers. A barrier counts completed phases; a phase completes when the arrivals are those that the barrier counts
// and the bytes that came are those that were announced. Copies and commits arrive some time after they are issued. A
// wait on lap L of a ring is passed as soon as the count is L + 1 (L, if inverted).
//
// Every interleaving from one. Traces do not depend on timing and waits on counts stay true, so the network is
// confluent (Kahn): either all executions end or all stop at the same place. Its happens-before relation does not
// depend on the execution either. So one execution, which carries vector clocks, decides for all of them:
//   - no process waits forever (else the error says which one, at which barrier, and whose arrivals are missing);
//   - a parity wait is equivalent to a wait on counts: before it the count is known to be that of this phase or of the
//     one before, and the next phase completes only after the wait was passed, so that it is neither passed a lap early
//     nor missed;
//   - an arrival, or a byte, counts for the intended phase: the one before is known to have completed;
//   - a slot is filled only after all of its readers have released it, and released only after it was full; a role
//   sends
//     one that its threads fill by asynchronous copies after a wait for these;
//   - at the end every slot that was filled was taken and released, no phase has begun and not completed, and no CTA
//     exits while another CTA or a copy may still reach its barriers. An order channel may end with a slot that
//     no role takes.
//
// The warps of a role are one process, which arrives with the weight of all. In fact they run independently; but each
// arrival is by all of them, so an order that leaves the role by a barrier holds for every warp, and orders inside of
// the role are only used between operations of one warp.
//
// Every trip count from a few. Positions in rings differ by constants and an advance keeps (stage, phase) at position
// mod 2 * stages, so what an operation depends on does not change from one iteration to the next: operations of the
// same iteration, or of earlier ones, for each ring at most stages + 1 back. Let U = 2 + the sum of (stages + 1) over
// all rings. A path through this graph that visits a role twice can be shortened by that role's program order; so where
// there is a path from one operation to another (the cycle of a deadlock, or one of the orders above), there is one
// that crosses each ring at most once, and spans fewer than U iterations.
//   - A cycle is within one tile, since tiles depend only on earlier ones, and what a tile of few blocks of K depends
//     on, a tile of more depends on, too: one tile of U blocks shows every deadlock.
//   - An order holds for every instance of an operation if it holds for the operation in the first, a middle and the
//     last iteration of a tile, in the first lap of a ring and in a later one: tiles of 1, 2 and U blocks (and U + 1
//     for a loop that is unrolled by two), enough of them for more than U iterations. Resident slots limit the
//     blocks: all counts.
//   - Ping-pong roles end with the tile of either: one tile more. Loops over taps of a filter are loops over
//     blocks; a 2 x 2 filter of two blocks tests their nesting.
//   - A role that sends late sends slot i once it has filled as many after it as the ring leaves on their way, in
//     whichever tile: a difference of positions again, and what it drains at the end waits for nobody. A cycle may then
//     reach into the next tiles, and spans fewer than U iterations all the same, which the tiles of the point before
//     have.
// channel_proof_test.cc compares the verdict with that of every count in a wide range, for rings of any depth.
//
// Out of scope: what is in the slots (coordinates, layouts, sums), the order of accesses that no channel carries
// (fences, mma.wait and bulk.wait, the counters of split-K), and PTX: the emulator and its mutants judge these.
//
// Thread-safety: pure functions.
#pragma once

#include <vector>

#include "ir/program.h"
#include "ir/proof/channel_trace.h"

namespace laneshift::ir {

// A kernel that unrolls taps or blocks of K, or that keeps filters in slots, is one for certain counts of them, which
// it does not name: the least ones with which it reads only slots that stay and were filled. kInternal: there are none.
Result<Trips> LeastTrips(const Program& program);

// The trip counts from which all others follow.
std::vector<Trips> TripsOfProof(const Program& program, const Trips& least);

// Decides the above for one assignment of trip counts; kInternal with the counterexample. Counts for which no host
// launches the kernel are passed over. REQUIRES: Stage::kLowered.
Status ProveChannels(const Program& program, const Trips& trips);

// For all of TripsOfProof. REQUIRES: Stage::kLowered, and VerifyProgram found nothing.
Status ProveChannels(const Program& program);

}  // namespace laneshift::ir
