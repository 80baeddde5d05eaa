// Whether a stored trial still says something to the laneshift, the driver and the assembler that ask.
//
// A pass counts wherever the same code runs: its generator, driver and assembler's version are those that ask; the
// assembler may be installed elsewhere, so that machines can share what they measured. A failure may be the machine's
// and not the candidate's: it counts only where the assembler is the very file, and for kFailureSeconds.
// Thread-safety: pure functions.
#pragma once

#include "store/choice_standing.h"
#include "store/records.h"

namespace laneshift::store {

// A week: as long as a wrong verdict may keep a candidate out, and as rarely as one that hangs is tried again.
inline constexpr int64_t kFailureSeconds = int64_t{7} * 24 * 3600;

// Who asks, and when.
struct Circumstances {
  Revision revision;
  AssemblerRecord assembler;
  int64_t now = 0;  // seconds since 1970, UTC
};

bool Counts(const TrialRecord& trial, const Circumstances& asking);

}  // namespace laneshift::store
