// ResidentOperand: B resident in shared memory for all tiles of a CTA (b_keep=).
//
// Thread-safety: pure functions.
#pragma once

#include <string_view>

#include "compiler/contraction/contraction.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"

namespace laneshift::compiler {

struct ResidentOperand {
  int64_t columns = 0;   // of all tiles
  int64_t blocks = 0;    // of K; for a convolution, of all taps
  int64_t matrices = 1;  // the value of the problem's key
  std::string_view matrices_key;
};

ResidentOperand ResidentOf(const Contraction& contraction, const Schedule& schedule);

// Whether the blocks that the schedule keeps are all of B, and the same for all tiles of a CTA.
Status CheckResident(const ResidentOperand& operand, const Schedule& schedule);

}  // namespace laneshift::compiler
