// Whether a stored trial is valid for a given laneshift, driver and assembler.
//
// A pass is valid wherever the same code runs: the generator, driver and assembler's version are equal; the assembler
// may be installed elsewhere, so that machines can share measurements. A failure may be caused by the machine and not
// by the candidate: it is valid only for the very same assembler file, and for kFailureSeconds.
// Thread-safety: pure functions.
#pragma once

#include "store/choice_standing.h"
#include "store/records.h"

namespace laneshift::store {

// A week: the longest time for which a wrong verdict excludes a candidate, and the interval at which one that hangs is
// tried again.
inline constexpr int64_t kFailureSeconds = int64_t{7} * 24 * 3600;

// Who asks, and when.
struct Circumstances {
  Revision revision;
  AssemblerRecord assembler;
  int64_t now = 0;  // seconds since 1970, UTC
};

bool Counts(const TrialRecord& trial, const Circumstances& asking);

}  // namespace laneshift::store
